"""One step and the search for the best one: predict, plan, params."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tradespace.cli.app import NO_FIT, Devices, Out, Seq, Set, Shown, Tokens, amount, app, command, inputs, write_out
from tradespace.errors import InputError
from tradespace.inputs import load
from tradespace.inputs.strategies import given
from tradespace.views.terminal import emit, progress_bar


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
    tokens: Tokens = None,
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
    from tradespace.views import documents, money, tables
    from tradespace.views.step_report import step_report

    loaded = inputs(model, cluster, strategy, devices, seq, set_)
    step = run(*loaded)
    document = step.to_dict()
    if measured_step is not None:
        measured = number(measured_step, Quantity("s", "measured step time", 1e-9, 1e9, False), "--measured-step")
        document["gap"] = documents.gap(step, measured)
    write_out(out, lambda: step_report(step, command()), step.plot)
    parts: list[Any] = [tables.step_table(step)]
    if tokens is not None:
        document["run"] = money.run_document(step, amount(tokens, "--tokens"))
        parts.append(money.run_line(document["run"]))
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
    from tradespace.views.report import is_report
    from tradespace.views.step_report import plan_report

    if not 1 <= top <= 1000:
        raise InputError(f"--top: {top}, but between 1 and 1000 strategies can be shown")
    kept = given(strategy)
    text = {**kept, "global_batch": batch_of(kept, global_batch)}
    loaded = inputs(model, cluster, text, devices, seq, set_)
    fixed = {name: value for name, value in kept.items() if isinstance(value, float) and name != "global_batch"}
    with progress_bar("searching") as progress:
        found = search(*loaded, fixed, top=top, objective=objective, progress=progress)
    write_out(out if found.top or is_report(out) else None, lambda: plan_report(found, command()), found.plot)
    emit(format, found.to_dict(), lambda: tables.rows_of_plan(found), [tables.plan_table(found)])
    return 0 if found.top else NO_FIT


def batch_of(kept: dict[str, Any], option: float | None) -> float:
    """The global batch from the option or the strategy; both may be given if they agree."""
    stated = kept.get("global_batch")
    if option is None and stated is None:
        raise InputError("--global-batch is missing (sequences per step over all devices), such as --global-batch 512")
    if option is not None and stated is not None and option != stated:
        raise InputError(f"--global-batch {option:g} and global_batch={stated:g} in the strategy differ")
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
