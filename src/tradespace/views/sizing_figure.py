"""Figure: how many devices, days and dollars each type of device takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tradespace.errors import InputError
from tradespace.explore.size import Sized
from tradespace.views.figures import altair_module
from tradespace.views.sizing import size_document
from tradespace.views.theme import styled

SHOWN = {"devices": ("devices", "#4477AA"), "days": ("days", "#66A3D2"), "M USD": ("million USD", "#EE7733")}


def sizing_rows(found: Sequence[Sized]) -> list[dict[str, Any]]:
    """One row per type that meets the goal: device, devices, days, million USD (rented, else owned), MWh."""
    return [
        {
            "device": f"{row['device']} ({row['cluster']})",
            "devices": row["devices"],
            "days": row["days"],
            "M USD": None if row["usd"] is None else row["usd"] / 1e6,
            "terms": row["terms"],
            "MWh": row["mwh"],
            "strategy": row["strategy"],
        }
        for row in size_document(found)
        if row["devices"] is not None
    ]


def sizing_figure(found: Sequence[Sized], *, dark: bool = False) -> Any:
    """Three panels of bars, one per quantity; a type of device without a price has no bar in the last."""
    alt = altair_module()
    rows = sizing_rows(found)
    if not rows:
        raise InputError("size: no type of device meets the goal, so there is nothing to draw")
    names = [row["device"] for row in rows]
    panels = []
    pale = alt.condition(alt.datum.terms == "owned", alt.value(0.5), alt.value(1.0))
    for i, (field, (title, color)) in enumerate(SHOWN.items()):
        known = [row for row in rows if row[field] is not None]
        most = max((row[field] for row in known), default=1.0)
        axis = alt.Axis(tickCount=4, format=",.3~r")
        base = alt.Chart(alt.Data(values=known)).encode(
            y=alt.Y(
                "device:N",
                sort=names,
                title=None,
                scale=alt.Scale(domain=names),
                axis=None if i else alt.Axis(labelLimit=260),
            ),
            x=alt.X(f"{field}:Q", title=title, axis=axis, scale=alt.Scale(domain=[0, 1.4 * most], nice=False)),
            tooltip=["device:N", f"{field}:Q", "strategy:N"],
        )
        text = base.mark_text(align="left", dx=4, fontSize=11, color="#DDDDDD" if dark else "#222222")
        texts = text.encode(text=alt.Text(f"{field}:Q", format=",.4~r"))
        panels.append(
            (base.mark_bar(color=color).encode(opacity=pale) + texts).properties(width=190, height={"step": 28})
        )
    best = cheapest(rows)
    said = f"{best['device']} costs least: {best['M USD']:,.3g} M USD {best['terms']}" if best else "No price is known"
    head = alt.TitleParams(
        said, subtitle="pale: owned, no rent is known; owning leaves out staff, building and interest"
    )
    return styled(alt.hconcat(*panels, spacing=18).properties(title=head), dark=dark)


def cheapest(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The row that costs least of those that can be rented; of owned ones where no rent is known at all."""
    priced = [row for row in rows if row["M USD"] is not None]
    rented = [row for row in priced if row["terms"] == "rented"]
    return min(rented or priced, key=lambda row: float(row["M USD"]), default=None)
