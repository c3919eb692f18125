"""The command line: verbs that load, call and show."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from tradespace import __version__
from tradespace.errors import InputError
from tradespace.inputs import load, settings
from tradespace.inputs.strategies import given
from tradespace.views.terminal import emit, note, progress_bar

FAULT, BAD_INPUT, NO_FIT, INTERRUPTED = 1, 2, 3, 130

Format = Literal["table", "json", "csv", "markdown"]
Set = Annotated[list[str] | None, Parameter(name="--set", help="Change one field: path=value (repeatable).")]
Devices = Annotated[float | None, Parameter(help="Devices of the job (default: one node or pod).")]
Seq = Annotated[float | None, Parameter(help="Sequence length in tokens (default: 4096, or the model's maximum).")]
Out = Annotated[Path | None, Parameter(help="Write the figure here (.png, .svg, .html) or its data (.json, .csv).")]
Shown = Annotated[Format, Parameter(name=["--format", "-f"], help="How the result is printed.")]

app = App(
    name="tradespace",
    version=__version__,
    help="Predict a training step, find the best strategy on a cluster, and see which cluster to build.",
    version_flags=["--version"],
    result_action="return_value",
)
astra_app = App(name="astra", help="ASTRA-sim's analytical network model, exact to the nanosecond.")
app.command(astra_app)


@app.command
def predict(
    model: str,
    cluster: str,
    strategy: str,
    *,
    devices: Devices = None,
    seq: Seq = None,
    set_: Set = None,
    measured_step: Annotated[
        str | None, Parameter(help="A measured step time, such as 12.3s, to compare with.")
    ] = None,
    explain: Annotated[bool, Parameter(negative="", help="Show the ladder from ideal FLOP time to the step.")] = False,
    out: Out = None,
    format: Shown = "table",
) -> int:
    """Time, memory and verdict of one training step.

    MODEL is a catalog key, a Hugging Face config.json or a TOML file; CLUSTER a catalog key or a TOML file; STRATEGY
    a string such as tp=8,pp=16,global_batch=512, MP8_DP128, or a TOML file.
    """
    from tradespace.inputs.fields import Quantity
    from tradespace.inputs.units import number
    from tradespace.predict import predict as run
    from tradespace.views import documents, tables

    inputs = _inputs(model, cluster, strategy, devices, seq, set_)
    step = run(*inputs)
    document = step.to_dict()
    if measured_step is not None:
        measured = number(measured_step, Quantity("s", "measured step time", 1e-9, 1e9, False), "--measured-step")
        document["gap"] = documents.gap(step, measured)
    if out is not None:
        _save(step.plot(), out)
    parts: list[Any] = [tables.step_table(step)]
    if explain or measured_step is not None:
        parts.append(tables.ladder_table(step))
    if measured_step is not None:
        gap = document["gap"]
        parts.append(f"Measured {gap['measured_s']:.4g} s: predicted / measured = {gap['ratio']:.3f}.")
    emit(format, document, lambda: tables.rows_of_step(step), parts)
    return 0 if document["fits"] else NO_FIT


@app.command
def plan(
    model: str,
    cluster: str,
    strategy: Annotated[str, Parameter(help="Keys to keep fixed, such as tp=8,recompute=full.")] = "",
    *,
    devices: Devices = None,
    global_batch: Annotated[float | None, Parameter(help="Sequences per step over all devices.")] = None,
    seq: Seq = None,
    top: Annotated[int, Parameter(help="How many strategies to show.")] = 10,
    objective: Annotated[str, Parameter(help="time, memory or cost.")] = "time",
    set_: Set = None,
    out: Out = None,
    format: Shown = "table",
) -> int:
    """Search every legal strategy of MODEL on CLUSTER and rank those that fit."""
    from tradespace.explore.plan import plan as search
    from tradespace.views import tables

    if not 1 <= top <= 1000:
        raise InputError(f"--top: {top}, but between 1 and 1000 strategies can be shown")
    kept = given(strategy)
    text = {**kept, "global_batch": _batch(kept, global_batch)}
    loaded = _inputs(model, cluster, text, devices, seq, set_)
    fixed = {name: value for name, value in kept.items() if isinstance(value, float) and name != "global_batch"}
    with progress_bar("searching") as progress:
        found = search(*loaded, fixed, top=top, objective=objective, progress=progress)
    if out is not None and found.top:
        _save(found.plot(), out)
        note(f"wrote {out}")
    emit(format, found.to_dict(), lambda: tables.rows_of_plan(found), [tables.plan_table(found)])
    return 0 if found.top else NO_FIT


def _batch(kept: dict[str, Any], option: float | None) -> float:
    """The global batch from the option or the strategy; both may be given if they agree."""
    stated = kept.get("global_batch")
    if option is None and stated is None:
        raise InputError(
            "plan: --global-batch is missing (sequences per step over all devices), such as --global-batch 512"
        )
    if option is not None and stated is not None and option != stated:
        raise InputError(f"plan: --global-batch {option:g} and global_batch={stated:g} in the strategy differ")
    batch = stated if option is None else option
    assert batch is not None
    return float(batch)


@app.command
def params(model: str, *, format: Shown = "table") -> int:
    """Exact parameter counts of a model, in total, active, and by part."""
    from tradespace.views import documents, tables

    document = documents.parameters_document(load.model(model))
    rows = [{"part": name, "parameters": count} for name, count in document["parts"].items()]
    emit(format, document, lambda: rows, [tables.parameters_table(document)])
    return 0


@app.command(name="list")
def list_(kind: str = "all", *, format: Shown = "table") -> int:
    """What the catalog holds: models, devices, clusters, profiles, precisions, optimizers, sources."""
    from tradespace.views import catalog

    emit(format, catalog.listing(kind), lambda: catalog.rows(kind), [catalog.listing_table(kind)])
    return 0


@app.command
def show(name: str, *, format: Shown = "table") -> int:
    """One catalog entry with its numbers, units, source and confidence."""
    from tradespace.views import catalog

    document = catalog.entry(name)
    emit(format, document, lambda: catalog.entry_rows(document), [catalog.entry_table(document)])
    return 0


@app.command
def schema(kind: str) -> int:
    """JSON Schema of an input file: model, cluster or strategy."""
    from tradespace.inputs.schemas import file_schema

    emit("json", file_schema(kind), list, [])
    return 0


@app.command
def validate(*, data: Path | None = None, format: Shown = "table") -> int:
    """Predict published measured runs and print predicted beside measured; worst first."""
    from tradespace.evidence import report

    document = report.validation(data)
    emit(format, document, lambda: report.rows(document), [report.table(document)])
    return 0


@app.command
def reproduce(
    name: Annotated[str, Parameter(help="A study; none lists them.")] = "",
    *,
    list_: Annotated[bool, Parameter(name="--list", negative="", help="List the studies.")] = False,
    format: Shown = "table",
) -> int:
    """Evaluate a published study's claims again: our value, the interval to reach, the verdict, what it rests on."""
    from tradespace import studies
    from tradespace.studies import terminal

    if list_ or not name:
        found = studies.names()
        emit(format, found, lambda: found, [terminal.listing(found)])
        return 0
    rows = studies.reproduce(name)
    emit(format, rows, lambda: terminal.flat(rows), [terminal.claims(rows)])
    return 0


@astra_app.command
def collectives(*, data: Path, format: Shown = "json") -> int:
    """Times of collectives as ASTRA-sim computes them, one per row of a CSV."""
    from tradespace import astra

    rows = _noting(lambda: astra.collectives(data))
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

    result = _noting(lambda: astra.replay(trace_dir, network, system, memory, comm_groups, reading=reading))
    emit(format, {"schema": 1, **result}, lambda: [{"rank": rank, **row} for rank, row in result["ranks"].items()], [])
    return 0


def _inputs(
    model: str,
    cluster: str,
    strategy: str | dict[str, Any],
    devices: float | None,
    seq: float | None,
    set_: list[str] | None,
) -> tuple[Any, Any, Any]:
    """Load and check the three inputs, then apply --set."""
    loaded_model = load.model(model, seq)
    loaded_cluster = load.cluster(cluster, devices)
    loaded = load.strategy(strategy, cluster=loaded_cluster)
    return settings.apply(set_ or [], loaded_model, loaded_cluster, loaded)


def _noting(work: Callable[[], Any]) -> Any:
    """Run and print the warnings on stderr, each once."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = work()
    for text in dict.fromkeys(str(warning.message) for warning in found):
        note(f"warning: {text}")
    return result


def _save(chart: Any, path: Path) -> None:
    from tradespace.views.figures import save

    save(chart, path)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every fault becomes one sentence on stderr and an exit code."""
    try:
        result = app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
        return int(result or 0)
    except InputError as error:
        note(f"error: {error}")
    except CycloptsError as error:
        note("error: " + " ".join(str(error).split()) + "; tradespace --help lists the commands")
    except (PermissionError, IsADirectoryError, FileNotFoundError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        note(f"error: {error.filename or 'file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        note("interrupted")
        return INTERRUPTED
    except Exception as error:
        note(f"internal fault ({type(error).__name__}: {error}); please report it with the command that you ran")
        if os.environ.get("TRADESPACE_DEBUG"):
            raise
        return FAULT
    return BAD_INPUT


def main() -> None:
    """Entry point of the `tradespace` command."""
    sys.exit(run())
