"""What a run needs and what to buy next: size, whatif."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tradespace.cli.app import NO_FIT, Devices, Out, Seq, Set, Shown, amount, app, command, inputs, write_out
from tradespace.cli.steps import batch_of
from tradespace.errors import InputError
from tradespace.inputs import load, settings
from tradespace.inputs.fields import Quantity
from tradespace.inputs.strategies import given
from tradespace.inputs.units import number
from tradespace.views.terminal import emit, progress_bar

FACTOR = Quantity("", "factor of a resource", 1e-6, 1e6, False)


@app.command
def size(
    model: str,
    strategy: Annotated[str, Parameter(help="Keys to keep fixed, such as tp=8,recompute=full.")] = "",
    *,
    tokens: Annotated[float, Parameter(help="Tokens to train on, such as 15e12.")],
    days: Annotated[float | None, Parameter(help="Fewest devices that finish in so many days.")] = None,
    budget: Annotated[float | None, Parameter(help="Fastest run for at most so many USD.")] = None,
    power: Annotated[float | None, Parameter(help="Fastest run within so many MW at the site's meter.")] = None,
    device: Annotated[list[str] | None, Parameter(help="A device, cluster or cluster file (repeatable).")] = None,
    global_batch: Annotated[float | None, Parameter(help="Sequences per step (default: about 16 M tokens).")] = None,
    seq: Seq = None,
    set_: Set = None,
    out: Out = None,
    format: Shown = "table",
) -> int:
    """How many devices of each type train MODEL on so many tokens in a time, a budget or a power."""
    from tradespace.explore import size as sizing
    from tradespace.views import sizing as views
    from tradespace.views.sizing_figure import sizing_figure
    from tradespace.views.study_reports import size_report

    goal = _goal(days, budget, power)
    clusters = [sizing.cluster_of(name) for name in device or load.sizing()["clusters"]]
    kept, loaded = given(strategy), load.model(model, seq)
    if global_batch is not None or "global_batch" in kept:
        kept["global_batch"] = batch_of(kept, global_batch)
    loaded, clusters = _with_settings(set_ or [], loaded, clusters)
    with progress_bar("sizing", "types of devices") as progress:
        found = sizing.size(loaded, amount(tokens, "--tokens"), goal, clusters, strategy=kept, progress=progress)
    write_out(out, lambda: size_report(loaded, tokens, found, command()), lambda: sizing_figure(found))
    document = views.size_document(found)
    emit(format, document, lambda: document, [views.size_table(found)])
    return 0 if any(row["devices"] for row in document) else NO_FIT


def _with_settings(texts: list[str], model: Any, clusters: list[Any]) -> tuple[Any, list[Any]]:
    """The model and every cluster with --set applied; a strategy is searched, its keys are arguments."""
    for text in texts:
        if text.startswith("strategy."):
            raise InputError(f"--set {text}: give strategies as an argument, such as tp=8,precision=fp8")
    changed = []
    for cluster in clusters:
        base = load.strategy({"global_batch": 1.0}, cluster=cluster)
        new, cluster, _ = settings.apply(texts, model, cluster, base)
        changed.append(cluster)
    return (new if clusters else model), changed


def _goal(days: float | None, budget: float | None, power: float | None) -> Any:
    """The one limit that is given."""
    from tradespace.explore.size import DAY, Goal

    stated = [value for value in (days, budget, power) if value is not None]
    if len(stated) != 1:
        raise InputError(
            f"size: {len(stated)} limits are given; give exactly one of --days, --budget (USD) and --power (MW)"
        )
    if days is not None:
        return Goal(seconds=amount(days, "--days") * DAY)
    if budget is not None:
        return Goal(usd=amount(budget, "--budget"))
    assert power is not None
    return Goal(watts=amount(power, "--power") * 1e6)


@app.command
def whatif(
    model: str,
    cluster: str,
    strategy: Annotated[str, Parameter(help="Keys to keep fixed, such as tp=8,recompute=full.")] = "",
    *,
    devices: Devices = None,
    global_batch: Annotated[float | None, Parameter(help="Sequences per step over all devices.")] = None,
    seq: Seq = None,
    curve: Annotated[
        list[str] | None, Parameter(help="A break-even curve: resource=factor,factor,... (repeatable).")
    ] = None,
    set_: Set = None,
    out: Out = None,
    format: Shown = "table",
) -> int:
    """What one more unit of each resource of CLUSTER does for MODEL, the strategy chosen anew each time."""
    from tradespace.explore.whatif import whatif as search
    from tradespace.views import whatif as views
    from tradespace.views.study_reports import whatif_report

    kept = given(strategy)
    loaded = inputs(model, cluster, {**kept, "global_batch": batch_of(kept, global_batch)}, devices, seq, set_)
    fixed = {name: value for name, value in kept.items() if isinstance(value, float) and name != "global_batch"}
    with progress_bar("searching", "variants") as progress:
        found = search(*loaded, fixed, curves=_curves(curve or []), progress=progress)
    write_out(out, lambda: whatif_report(found, command()), found.plot)
    document = found.to_dict()
    emit(format, document, lambda: views.whatif_rows(found), [views.whatif_table(found)])
    return 0


def _curves(texts: list[str]) -> dict[str, list[float]]:
    """The curves that are asked for: factors by name of a resource."""
    found: dict[str, list[float]] = {}
    for text in texts:
        name, _, factors = text.partition("=")
        found[name] = [number(factor, FACTOR, f"--curve {name}") for factor in factors.split(",")]
    return found
