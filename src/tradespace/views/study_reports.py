"""Reports on resources (whatif) and on the devices that a run needs (size)."""

from __future__ import annotations

from collections.abc import Sequence

from tradespace.explore.size import Sized
from tradespace.explore.whatif import Whatif
from tradespace.inputs.model import Model
from tradespace.step import Step
from tradespace.views.documents import scalar, step_document
from tradespace.views.figures import short_text, subtitle
from tradespace.views.report import Picture, Report, assumed
from tradespace.views.sizing import size_document
from tradespace.views.sizing_figure import cheapest, sizing_figure, sizing_rows
from tradespace.views.step_report import numbers
from tradespace.views.tornado import curve_rows, tornado_rows
from tradespace.views.whatif import whatif_rows

PRICE = "a resource is worth what lets a token cost the same; at an equal price per device-hour otherwise"
SEARCHED = "the best strategy is searched anew for each variant"


def whatif_report(found: Whatif, command: str) -> Report:
    """What to buy next: the effect of each resource on the best step."""
    base, devices = found.base, f"{scalar(found.cluster.devices):,.0f} x {found.cluster.device.name}"
    rows = [*tornado_rows(found, doubled=False), *tornado_rows(found, doubled=True), *curve_rows(found)]
    first, *rest = found.effects
    second = f", then {rest[0].resource.name} ({rest[0].elasticity():+.2f})" if rest else ""
    none = [effect.resource.name for effect in found.effects if abs(effect.elasticity()) < 1e-3]
    idle = f" No effect: {', '.join(none)}." if none else ""
    return Report(
        question=f"What should {devices} have more of to train {found.model.name} faster?",
        answer=(
            f"{first.resource.name} first: 1 % more changes the step time by {first.elasticity():+.2f} %{second}.{idle}"
        ),
        command=command,
        setting=f"{subtitle(base)}; best strategy today: {short_text(base)}",
        numbers=numbers(base),
        pictures=[Picture("Each resource turned down and up", lambda dark: _tornado(found, dark), rows)],
        tables={"Effect and worth of each resource": whatif_rows(found)},
        assumptions=[PRICE, SEARCHED, *_assumed(base)],
        sources=[*step_document(base)["sources"], *_basis(base)],
    )


def _tornado(found: Whatif, dark: bool) -> object:
    from tradespace.views.tornado import whatif_figure

    return whatif_figure(found, dark=dark)


def size_report(model: Model, tokens: float, found: Sequence[Sized], command: str) -> Report:
    """How many devices of which type a run needs."""
    rows = sizing_rows(found)
    missed = [{"device": row["device"], "why not": row["reason"]} for row in size_document(found) if row["reason"]]
    best = cheapest(rows) or (rows[0] if rows else None)
    cost = f" for {best['M USD']:,.3g} M USD ({best['terms']})" if best and best["M USD"] is not None else ""
    steps = [sized.step for sized in found if sized.step is not None]
    return Report(
        question=f"How many devices train {model.name} on {tokens:.3g} tokens?",
        answer=f"{best['devices']:,} x {best['device']} in {best['days']:.3g} days{cost}."
        if best
        else "No type of device meets the goal; the reasons are below.",
        command=command,
        pictures=[Picture("Devices, days and money by type", lambda dark: sizing_figure(found, dark=dark), rows)]
        if rows
        else [],
        tables={"Answers": rows, **({"Types that do not meet the goal": missed} if missed else {})},
        assumptions=[
            SEARCHED,
            "days contain failures, restarts and checkpoints; money contains spare devices",
            "owning leaves out staff, building and interest, so it is not compared with renting",
            *(line for step in steps for line in _assumed(step)),
        ],
        sources=[line for step in steps for line in (*step_document(step)["sources"], *_basis(step))],
    )


def _assumed(step: Step) -> list[str]:
    """What the entries of a step's cluster, device and profile only assume."""
    cluster = step.cluster
    names = (f"devices/{cluster.device.key}", f"clusters/{cluster.key}", f"profiles/{step.strategy.profile.name}")
    return assumed(*names)


def _basis(step: Step) -> list[str]:
    """Where money, power and failure rates come from."""
    cost = step_document(step)["cost"]
    return [f"{step.cluster.device.key}, {name}: {text}" for name, text in cost["basis"].items()]
