"""Where the network models differ: every collective of a step as `predict` prices it and as ASTRA-sim does."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tradespace.astra.chakra import COLLECTIVE, SEND, Node
from tradespace.astra.from_step import from_step
from tradespace.astra.prices import Case, Site
from tradespace.astra.reasons import reasons
from tradespace.astra.run import replay_traces
from tradespace.astra.tape import Group
from tradespace.step import Step

SENDERS = Group(("pipeline",), 2, label="pipeline")
Key = tuple[str, str, Group]
"""Kind, bytes to three digits, group: nodes that are one row."""


def differences(step: Step) -> dict[str, Any]:
    """The document of a step: its time in both models, and a row for every different collective, the one that differs
    most over the whole step first.

    A row: collective (or send), group, ranks, bytes (of the full tensor; all-to-all and send: what one rank sends),
    times (in one step, on the rank with most of them), physical_s and astra_s of one, ratio = astra / physical,
    reasons, operators that issue it. Shares that a profile hides are not taken off: both are the whole time.
    """
    found = from_step(step)
    site = Site.of(step, found)
    cases: dict[Key, Case] = {}
    times: dict[Key, Counter[int]] = {}
    names: dict[Key, dict[str, None]] = {}
    for stage, tape in enumerate(found.tapes.stages):
        for node in tape.nodes:
            if node.kind not in (COLLECTIVE, SEND):
                continue
            sent = node.kind == SEND
            group = SENDERS if sent else tape.groups[node.ref]
            key = (node.comm or "send", f"{node.size:.3g}", group)
            cases.setdefault(key, Case(site, node, stage, group))
            times.setdefault(key, Counter())[stage] += 1
            names.setdefault(key, {})[_issuer(node)] = None
    rows = [_row(case, max(times[key].values()), list(names[key])) for key, case in cases.items()]
    rows.sort(key=lambda row: -abs(row["astra_s"] - row["physical_s"]) * row["times"])
    total = replay_traces(found.traces, found.network, found.machine, found.groups)["total_ns"]
    return {"schema": 1, "step_time_s": float(step.step_time), "astra_step_time_s": total / 1e9, "collectives": rows}


def _issuer(node: Node) -> str:
    """The operator that issues a node, from its name."""
    return "pipeline" if node.kind == SEND else node.name.split()[0].split(".")[0]


def _row(case: Case, times: int, operators: list[str]) -> dict[str, Any]:
    physical, astra = case.physical(), case.astra()
    return {
        "collective": case.node.comm or "send",
        "group": case.group.label,
        "ranks": len(case.members),
        "bytes": case.bytes,
        "times": times,
        "physical_s": physical,
        "astra_s": astra,
        "ratio": astra / physical,
        "reasons": reasons(case),
        "operators": operators,
    }
