"""What resources are worth: documents and tables."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

from tradespace.cost.price import network_capital, rate
from tradespace.explore.whatif import Effect, Point, Whatif, device_seconds, step_joule, worth
from tradespace.step import Step
from tradespace.views.documents import scalar, strategy_text

HOUR = 3600.0
SHOWN_DIGITS = 1e-4
"""Effects below this are shown as none."""


def whatif_document(found: Whatif) -> list[dict[str, Any]]:
    """One document per resource, largest effect first, those without any too.

    Elasticities are relative changes of the step time, of its cost at an equal price per device-hour, and of its energy
    per relative change of the resource. `worth` says by how much the price of a device may rise (a share, USD per
    device-hour, USD per device) for the resource at `change` until a token costs the same. `break_even` is the same
    along a curve of the resource, compared with the base or with the cluster without the tier; `pays_from` the value
    from which on it beats the latter.
    """
    return [_row(effect, found) for effect in found.effects]


def _row(effect: Effect, found: Whatif) -> dict[str, Any]:
    resource, base = effect.resource, effect.base
    curve = found.curves.get(resource.name)
    return {
        "resource": resource.name,
        "unit": resource.unit,
        "value": resource.value,
        "elasticity_time": effect.elasticity(),
        "elasticity_cost": effect.elasticity(device_seconds),
        "elasticity_energy": effect.elasticity(step_joule),
        "step_time_s": scalar(base.step_time),
        "down": _point(effect.down, resource.value, worth(base, effect.down.step)),
        "up": _point(effect.up, resource.value, effect.worth),
        "reoptimized": strategy_text(effect.up.step) if effect.up.step is not None else None,
        "worth": {"change": effect.up.factor, **_worth(effect.worth, base)},
        "break_even": [_point(point, resource.value, curve.worth(point)) for point in curve.points] if curve else [],
        "break_even_with": None if curve is None else "without the tier" if curve.without else "base",
        "pays_from": None if curve is None or curve.pays_from is None else resource.value * curve.pays_from,
    }


def _point(point: Point, value: float, share: float | None) -> dict[str, Any]:
    step = point.step
    return {
        "factor": point.factor,
        "value": value * point.factor,
        "step_time_s": None if step is None else scalar(step.step_time),
        "strategy": None if step is None else strategy_text(step),
        "worth": share,
    }


def _worth(share: float | None, base: Step) -> dict[str, float | None]:
    """A share of the price as USD per device-hour and, of an owned cluster, per device with its part of the network."""
    cluster = base.cluster
    hourly = scalar(rate(cluster)) * HOUR / scalar(cluster.devices)
    capital = scalar(cluster.economics.capital)
    whole = capital + scalar(network_capital(cluster)) if capital else 0.0
    return {
        "share": share,
        "usd_per_device_hour": share * hourly if share is not None and hourly else None,
        "usd_per_device": share * whole if share is not None and whole else None,
    }


def whatif_rows(found: Whatif) -> list[dict[str, Any]]:
    """One flat row per resource."""
    rows = []
    for row in whatif_document(found):
        flat = {key: value for key, value in row.items() if not isinstance(value, (dict, list))}
        flat |= {f"step_time_{end}_s": row[end]["step_time_s"] for end in ("down", "up")}
        rows.append(flat | {"worth_share": row["worth"]["share"]})
    return rows


def whatif_table(found: Whatif) -> Group:
    """One line per resource: elasticities, step time with less and more of it, what more of it may cost."""
    table = Table(box=None, pad_edge=False)
    for name in ("resource", "time", "cost", "energy", "less s", "more s", "worth"):
        table.add_column(name, justify="left" if name == "resource" else "right", overflow="fold")
    for row in whatif_document(found):
        table.add_row(
            f"{row['resource']} {_change(row)}",
            *(_elasticity(row[f"elasticity_{name}"]) for name in ("time", "cost", "energy")),
            _seconds(row["down"]["step_time_s"]),
            _seconds(row["up"]["step_time_s"]),
            _share(row["worth"]["share"]),
        )
    base = found.base
    head = (
        f"{found.model.name} on {scalar(base.cluster.devices):,.0f} x {base.cluster.device.name}: "
        f"{scalar(base.step_time):.4g} s per step with {strategy_text(base)}"
    )
    foot = (
        "Elasticity: relative change per relative change of the resource, the strategy chosen anew. Worth: by how much "
        "a device may cost more for more of the resource until a token costs the same."
    )
    return Group(head, "", table, "", foot, *curve_lines(found))


def curve_lines(found: Whatif) -> list[str]:
    """Each break-even curve as one line: value, step time, what a device may cost more."""
    lines = []
    for row in whatif_document(found):
        points = [point for point in row["break_even"] if point["step_time_s"] is not None]
        if points:
            shown = ", ".join(f"{p['value']:.4g}: {p['step_time_s']:.3g} s ({_share(p['worth'])})" for p in points)
            versus = " beside the cluster without it" if row["break_even_with"] == "without the tier" else ""
            lines.append(f"{row['resource']}{versus} {shown}")
            if versus:
                start = row["pays_from"]
                lines.append("It never pays." if start is None else f"It pays from about {start:.3g} {row['unit']} on.")
    return lines


def _change(row: dict[str, Any]) -> str:
    factor = row["up"]["factor"]
    return f"x {factor:g}" if factor >= 2.0 else f"{factor - 1.0:+.0%}"


def _elasticity(value: float) -> str:
    return "0" if abs(value) < SHOWN_DIGITS else f"{value:+.3f}"


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    return "0" if abs(value) < 5.0 * SHOWN_DIGITS else f"{value:+.1%}"


def _seconds(value: float | None) -> str:
    return "does not fit" if value is None else f"{value:.4g}"
