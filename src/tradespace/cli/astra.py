"""ASTRA-sim's own model and files: astra collectives, astra replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from tradespace.cli.app import Devices, Seq, Set, Shown, app
from tradespace.cli.export import exportable
from tradespace.views.terminal import emit, noting

astra_app = App(name="astra", help="ASTRA-sim's analytical network model, exact to the nanosecond.")
app.command(astra_app)


@astra_app.command
def collectives(*, data: Path, format: Shown = "json") -> int:
    """Times of collectives as ASTRA-sim computes them, one per row of a CSV."""
    from tradespace import astra

    rows = noting(lambda: astra.collectives(data))
    emit(format, rows, lambda: rows, [])
    return 0


@astra_app.command
def replay(
    trace_dir: Path,
    *,
    network: Path,
    system: Path,
    memory: Path | None = None,
    comm_groups: Path | None = None,
    reading: Annotated[
        Literal["native", "converter"], Parameter(help="How a version-1 text workload is read.")
    ] = "native",
    format: Shown = "json",
) -> int:
    """Replay Chakra traces (NAME.RANK.et) or a text workload as ASTRA-sim's analytical backend does."""
    from tradespace import astra

    result = noting(lambda: astra.replay(trace_dir, network, system, memory, comm_groups, reading=reading))
    emit(format, {"schema": 1, **result}, lambda: [{"rank": rank, **row} for rank, row in result["ranks"].items()], [])
    return 0


@astra_app.command
def differences(
    model: str,
    cluster: str,
    strategy: str,
    *,
    devices: Devices = None,
    seq: Seq = None,
    set_: Set = None,
    format: Shown = "table",
) -> int:
    """Where ASTRA-sim's network model and the prediction differ: every collective of a step, with the reasons."""
    from tradespace.astra.differences import differences as compare
    from tradespace.views import differences as views

    step = exportable(model, cluster, strategy, devices, seq, set_)
    document = noting(lambda: compare(step))
    emit(format, document, lambda: views.flat(document), [views.lines(document)])
    return 0
