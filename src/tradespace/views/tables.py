"""Tables of results for a terminal of 80 columns, as rows, and as HTML for notebooks."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table

from tradespace.explore.plan import Plan
from tradespace.step import Step
from tradespace.views.documents import ladder, scalar, step_document, strategy_text
from tradespace.views.money import cost_lines

GIB = 2**30


def step_table(step: Step) -> Group:
    """One candidate: a sentence, time by part (s), memory of the worst stage by part (GB, GiB), what is wrong."""
    document = step_document(step)
    head = (
        f"{step.model.name} on {document['devices']} x {step.cluster.device.name}, {strategy_text(step)}\n"
        f"{document['step_time_s']:.4g} s per step (80 % band {document['low']:.4g} to {document['high']:.4g} s), "
        f"{document['tokens_per_s_per_device']:,.0f} {'samples' if 'samples_per_s' in document else 'tokens'}/s per "
        f"device, MFU {document['mfu']:.1%}: "
        f"{document['verdict']}"
    )
    time = Table(box=None, pad_edge=False)
    for name in ("time", "seconds", "share"):
        time.add_column(name, justify="left" if name == "time" else "right")
    for name, seconds in document["time"].items():
        if seconds:
            time.add_row(name, f"{seconds:.4g}", f"{seconds / document['step_time_s']:.1%}")
    memory = Table(box=None, pad_edge=False)
    for name in (f"memory, {document['stage']} stage", "GB", "GiB"):
        memory.add_column(name, justify="right" if name in ("GB", "GiB") else "left")
    shown = {name: document[name] for name in ("reserved", "driver", "capacity")}
    for name, size in {**document["memory"], **shown}.items():
        if size:
            memory.add_row(name, f"{size / 1e9:.2f}", f"{size / GIB:.2f}")
    fixes = ["would fit with:", *document["fixes"]] if document.get("fixes") else []
    return Group(head, "", time, "", memory, "", *cost_lines(document["cost"]), *document["reasons"], *fixes)


def ladder_table(step: Step) -> Table:
    """The ladder from the ideal FLOP time to the step, in seconds."""
    table = Table(box=None, pad_edge=False)
    for name in ("from ideal to predicted", "seconds", "total"):
        table.add_column(name, justify="left" if name.startswith("from") else "right")
    for rung in ladder(step):
        table.add_row(rung["rung"], f"{rung['seconds']:.4g}", f"{rung['total']:.4g}")
    return table


def plan_table(plan: Plan) -> Group:
    """The ranked strategies of a plan, or what comes nearest and what would make it fit."""
    counts = f"{plan.total:,} strategies, {plan.legal:,} legal, {plan.fitting:,} fit, searched in {plan.seconds:.2f} s"
    if not plan.top:
        return Group(counts, "nothing fits", *plan.fixes)
    table = Table(box=None, pad_edge=False)
    rate = "USD/M tok" if plan.objective == "cost" else "tok/s/dev"
    for name in ("#", "strategy", "step s", rate, "MFU", "GB"):
        table.add_column(name, justify="left" if name == "strategy" else "right")
    for rank, (step, loss) in enumerate(zip(plan.top, plan.losses, strict=True), 1):
        document = step_document(step)
        table.add_row(
            str(rank),
            strategy_text(step).replace(",", ", ") + (f"\n{loss}" if loss else ""),
            f"{document['step_time_s']:.4g}",
            _rate(document, plan.objective),
            f"{document['mfu']:.1%}",
            f"{document['memory']['total'] / 1e9:.1f}",
        )
    return Group(counts, table)


def _rate(document: dict[str, Any], objective: str) -> str:
    """What a plan compares: tokens per second and device, or USD per million tokens."""
    if objective == "cost":
        return next(f"{value:.4g}" for key, value in document["cost"].items() if key.startswith("usd_per_million"))
    return f"{document['tokens_per_s_per_device']:,.0f}"


def parameters_table(document: dict[str, Any]) -> Table:
    """Parameter counts by part, then the totals."""
    table = Table(box=None, pad_edge=False, title=document["model"])
    table.add_column("part")
    table.add_column("parameters", justify="right")
    for name, count in document["parts"].items():
        table.add_row(name, f"{count:,}")
    for name in ("total", "active", "active_excl_input_embedding"):
        table.add_row(name, f"{document[name]:,}")
    return table


def rows_of_step(step: Step) -> list[dict[str, Any]]:
    """One flat row of a candidate, units in the keys."""
    document = step_document(step)
    flat = {k: v for k, v in document.items() if isinstance(v, (int, float, str))}
    flat |= {k: v for k, v in document["cost"].items() if k != "basis"}
    flat |= {f"time_{k}_s": v for k, v in document["time"].items()}
    return [flat | {f"memory_{k}_bytes": v for k, v in document["memory"].items()}]


def rows_of_plan(plan: Plan) -> list[dict[str, Any]]:
    """One flat row per ranked strategy."""
    return [{"strategy": strategy_text(step), **rows_of_step(step)[0]} for step in plan.top]


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as CSV with a header."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue()


def as_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as a Markdown table."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([str(row[name]) for name in names] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def step_html(step: Step) -> str:
    """The time parts as an HTML table; names are escaped."""
    rows = "".join(f"<tr><td>{html.escape(k)}</td><td>{scalar(v):.4g} s</td></tr>" for k, v in step.time.items())
    return f"<table><caption>{html.escape(step.model.name)}</caption>{rows}</table>"


def plan_html(plan: Plan) -> str:
    """The ranked strategies as an HTML table."""
    rows = "".join(
        f"<tr><td>{html.escape(strategy_text(step))}</td><td>{scalar(step.step_time):.4g} s</td></tr>"
        for step in plan.top
    )
    return f"<table><caption>{html.escape(plan.model.name)}</caption>{rows}</table>"
