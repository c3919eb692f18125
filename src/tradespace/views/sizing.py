"""The answers of `size` as documents and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table

from tradespace.cost.price import owning, paid
from tradespace.cost.run import Run
from tradespace.explore.size import Sized
from tradespace.step import Step
from tradespace.views.documents import scalar, step_document, strategy_text

DAY, HOUR, MWH = 86400.0, 3600.0, 3.6e9


def size_document(found: Sequence[Sized]) -> list[dict[str, Any]]:
    """One row per type of device; numbers are null and `reason` says why where the goal is not met.

    `usd` is at the rent where one is known, else that of owning (`terms`); `usd_owned` is that of owning, to compare
    types with and without a rent. Spare devices are paid for, not counted in `devices`.
    """
    return [_row(sized) for sized in found]


def _row(sized: Sized) -> dict[str, Any]:
    cluster, step, run = sized.cluster, sized.step, sized.run
    names = ("devices", "days", "usd", "terms", "usd_owned", "mwh", "megawatts", "step_time_s", "mfu", "goodput")
    row: dict[str, Any] = {"device": cluster.device.key, "cluster": cluster.key, **dict.fromkeys(names)}
    if step is not None and run is not None:
        row |= _answer(step, run)
    return row | {
        "spares": scalar(paid(cluster)) - 1.0 if step is None else scalar(paid(step.cluster)) - 1.0,
        "strategy": strategy_text(step) if step is not None else None,
        "price": step_document(step)["cost"]["basis"].get("rent", None) if step is not None else None,
        "reason": sized.reason,
    }


def _answer(step: Step, run: Run) -> dict[str, Any]:
    document = step_document(step)
    share = scalar(paid(step.cluster))
    owned = scalar(step.cluster.economics.capital) > 0.0
    return {
        "devices": document["devices"],
        "days": scalar(run.seconds) / DAY,
        "usd": scalar(run.usd) or None,
        "terms": document["cost"]["terms"],
        "usd_owned": scalar(run.seconds * owning(step.cluster)) * share if owned else None,
        "mwh": scalar(run.joule) / MWH or None,
        "megawatts": document["cost"]["megawatts"],
        "step_time_s": document["step_time_s"],
        "mfu": document["mfu"],
        "goodput": document["cost"]["goodput"],
    }


def size_table(found: Sequence[Sized]) -> Group:
    """One line per type of device with its strategy below, least cost first; then who cannot, and why."""
    table = Table(box=None, pad_edge=False)
    for name in ("device", "devices", "days", "M USD", "owned", "MWh", "MW", "MFU"):
        table.add_column(name, justify="left" if name == "device" else "right")
    missed = []
    for row in size_document(found):
        if row["devices"] is None:
            missed.append(f"{row['device']}: {row['reason']}")
            continue
        rented = row["usd"] if row["terms"] == "rented" else None
        table.add_row(
            row["device"],
            f"{row['devices']:,}",
            f"{row['days']:,.3g}",
            _million(rented),
            _million(row["usd_owned"]),
            "-" if row["mwh"] is None else f"{row['mwh']:,.4g}",
            "-" if row["megawatts"] is None else f"{row['megawatts']:,.3g}",
            f"{row['mfu']:.1%}",
        )
    return Group(table, "", *_strategies(found), *missed)


def _strategies(found: Sequence[Sized]) -> list[str]:
    """The strategy and the price row of each answer."""
    lines = []
    for row in size_document(found):
        if row["strategy"] is not None:
            price = (row["price"] or "no rent known").partition(" (")[0]
            spare = f"; {row['spares']:.1%} spare devices paid for" if row["spares"] else ""
            lines.append(f"{row['device']}: {row['strategy']}; {price}{spare}")
    return lines


def _million(usd: float | None) -> str:
    return "-" if usd is None else f"{usd / 1e6:,.4g}"
