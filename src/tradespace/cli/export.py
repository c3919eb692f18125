"""A predicted step for other programs: export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tradespace.cli.app import Devices, Seq, Set, app, inputs
from tradespace.errors import InputError, nearest
from tradespace.step import Step
from tradespace.views.terminal import note, noting


def chakra(step: Step, out: Path | None) -> str:
    """One Chakra trace per rank in the folder `out`, with ASTRA-sim's network, system and group files."""
    from tradespace.astra.export import write_traces
    from tradespace.astra.from_step import from_step

    if out is None:
        raise InputError("export: --out is missing; Chakra traces are one file per device, so name a folder")
    found = noting(lambda: from_step(step))
    files = write_traces(found.traces, found.groups, out, found.network, found.machine)
    size = sum(path.stat().st_size for path in files)
    return (
        f"{len(found.traces)} traces ({size / 1e6:.3g} MB), network.yml, system.json and step.json in {out}\n"
        f"tradespace astra replay {out} --network {out}/network.yml --system {out}/system.json "
        f"--comm-groups {out}/step.json"
    )


TARGETS: Mapping[str, Callable[[Step, Path | None], str]] = {"chakra": chakra}
"""Target -> function that writes a step (to a path, if one is given) and returns what is printed."""


@app.command
def export(
    model: str,
    cluster: str,
    strategy: str,
    *,
    to: Annotated[str, Parameter(help="The program that reads it: chakra (ASTRA-sim and others).")],
    out: Annotated[Path | None, Parameter(help="Write there: a folder for chakra.")] = None,
    devices: Devices = None,
    seq: Seq = None,
    set_: Set = None,
) -> int:
    """Write a strategy for another program: a simulator's traces or a framework's configuration."""
    if to not in TARGETS:
        raise InputError(f"--to: unknown target '{to}'{nearest(to, TARGETS)}")
    print(TARGETS[to](exportable(model, cluster, strategy, devices, seq, set_), out))
    return 0


def exportable(
    model: str, cluster: str, strategy: str, devices: float | None, seq: float | None, set_: list[str] | None
) -> Step:
    """The predicted step; refused if it is not legal, noted if it does not fit."""
    from tradespace.predict import predict
    from tradespace.views.documents import reasons

    step = predict(*inputs(model, cluster, strategy, devices, seq, set_))
    for reason in reasons(step):
        if reason.startswith("not legal"):
            raise InputError(f"strategy: {reason}")
        note(f"warning: {reason}")
    return step
