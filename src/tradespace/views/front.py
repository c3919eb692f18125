"""Figure: a Pareto front of two measures, with hover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tradespace.errors import InputError
from tradespace.views.figures import altair_module
from tradespace.views.theme import styled

Row = Mapping[str, Any]
FRONT, OTHER = "#4477AA", "#BBBBBB"


def front(rows: Sequence[Row], x: str, y: str) -> list[Row]:
    """The rows that no other row beats in both columns (less is better), from small to large `x`.

    >>> [row["a"] for row in front([{"a": 1, "b": 3}, {"a": 2, "b": 1}, {"a": 3, "b": 2}], "a", "b")]
    [1, 2]
    """
    found: list[Row] = []
    for row in sorted(rows, key=lambda row: (row[x], row[y])):
        if not found or row[y] < found[-1][y]:
            found.append(row)
    return found


def front_figure(rows: Sequence[Row], x: str, y: str, *, dark: bool = False) -> Any:
    """All rows as points, the front as a stair; hover (in HTML) shows every column of a row."""
    alt = altair_module()
    known = [row for row in rows if isinstance(row.get(x), (int, float)) and isinstance(row.get(y), (int, float))]
    if not known:
        raise InputError(f"figure: no row has numbers in the columns {x} and {y}")
    best = front(known, x, y)
    names = {name: name.replace(".", "_") for name in known[0]}  # a dot in a field name means nesting
    on = {id(row) for row in best}
    data = [{names[k]: v for k, v in row.items() if k in names} | {"on_front": id(row) in on} for row in known]
    scale = alt.Scale(zero=False, padding=12)
    base = alt.Chart(alt.Data(values=data)).encode(
        x=alt.X(f"{names[x]}:Q", title=x, scale=scale, axis=alt.Axis(format="~s")),
        y=alt.Y(f"{names[y]}:Q", title=y, scale=scale, axis=alt.Axis(format="~s")),
    )
    hover = [alt.Tooltip(f"{names[name]}:{_type(value)}", title=name) for name, value in known[0].items()]
    color = alt.condition(alt.datum.on_front, alt.value(FRONT), alt.value(OTHER))
    size = alt.condition(alt.datum.on_front, alt.value(70), alt.value(28))
    dots = base.mark_circle(opacity=0.9).encode(color=color, size=size, tooltip=hover)
    stair = base.transform_filter(alt.datum.on_front).mark_line(interpolate="step-after", color=FRONT, strokeWidth=1.5)
    said = f"{len(best)} of {len(known):,} points are on the front of {x} and {y}"
    return styled((stair + dots).properties(width=520, height=320, title=alt.TitleParams(said)), dark=dark)


def _type(value: Any) -> str:
    return "Q" if isinstance(value, (int, float)) and not isinstance(value, bool) else "N"
