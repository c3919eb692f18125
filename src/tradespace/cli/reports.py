"""One self-contained page: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tradespace.cli.app import NO_FIT, Devices, Seq, Set, app, command, inputs, write_out
from tradespace.cli.steps import batch_of
from tradespace.errors import InputError
from tradespace.inputs.strategies import given
from tradespace.views.terminal import emit


@app.command
def report(
    model: Annotated[str, Parameter(help="A model, or the directory of a sweep.")],
    cluster: str = "",
    strategy: Annotated[str, Parameter(help="A whole strategy; without one the best is searched.")] = "",
    *,
    out: Annotated[Path, Parameter(help="The report: one HTML file.")],
    devices: Devices = None,
    global_batch: Annotated[float | None, Parameter(help="Sequences per step over all devices.")] = None,
    seq: Seq = None,
    set_: Set = None,
) -> int:
    """Write the answer for MODEL on CLUSTER as one HTML file that opens offline: figures, tables, sources.

    `tradespace report DIR --out FILE.html` reports on the finished sweep in DIR.
    """
    from tradespace.views.report import is_report

    if not is_report(out):
        raise InputError(f"--out {out}: a report is one HTML file, so its name ends in .html")
    if not cluster:
        return _swept(Path(model), out)
    kept = given(strategy)
    text: Any = (
        strategy if strategy and global_batch is None else {**kept, "global_batch": batch_of(kept, global_batch)}
    )
    loaded = inputs(model, cluster, text, devices, seq, set_)
    return _stepped(loaded, out) if strategy else _planned(loaded, out)


def _stepped(loaded: tuple[Any, Any, Any], out: Path) -> int:
    from tradespace.predict import predict
    from tradespace.views.step_report import step_report

    step = predict(*loaded)
    return _written(step_report(step, command()), out, step.to_dict()["fits"])


def _planned(loaded: tuple[Any, Any, Any], out: Path) -> int:
    from tradespace.explore.plan import plan
    from tradespace.views.step_report import plan_report

    found = plan(*loaded)
    return _written(plan_report(found, command()), out, found.best is not None)


def _swept(directory: Path, out: Path) -> int:
    from tradespace.views.sweep_report import sweep_report

    if not directory.is_dir():
        raise InputError(f"report {directory}: name a model and a cluster, or the directory of a finished sweep")
    return _written(sweep_report(directory, command()), out, True)


def _written(found: Any, out: Path, fits: bool) -> int:
    """Write the page and print its answer."""
    write_out(out, lambda: found)
    emit("table", None, list, [found.question, found.answer])
    return 0 if fits else NO_FIT
