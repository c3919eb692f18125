"""Figure: published bus bandwidths as points over the predicted curve by size, one panel per system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tradespace.evidence.bus_report import document
from tradespace.inputs.cluster import Cluster
from tradespace.views.figures import altair_module
from tradespace.views.theme import styled

LINE, COLORS = "#222222", ("#4477AA", "#EE7733", "#117733", "#AA3377", "#DDAA33", "#66A3D2")
SHAPES = ("circle", "triangle-up", "square", "diamond")
SMALLEST = 2.0**13  # below, all is latency and the points lie on the axis
LAUNCHES = {"one thread per device": False, "one thread per node": True}


def figure(*panels: tuple[Cluster, str]) -> Any:
    """One panel per (cluster, collective), three in a row: a line for each way to launch, points as published."""
    alt = altair_module()
    found = [(*panel, _rows(*panel)) for panel in panels]
    names = sorted({row["by"] for _, _, rows in found for row in rows if row["by"] not in LAUNCHES})
    charts = [_panel(alt, *panel, names) for panel in found]
    rows = [alt.hconcat(*charts[i : i + 3], spacing=24) for i in range(0, len(charts), 3)]
    title = alt.TitleParams(
        "Bus bandwidth by message size", subtitle="lines: predicted; points: published nccl-tests and rccl-tests rows"
    )
    return styled(alt.vconcat(*rows, title=title))


def _rows(cluster: Cluster, collective: str) -> list[dict[str, Any]]:
    """MiB, GB/s, and whose number it is: a way to launch, or a source."""
    rows: list[dict[str, Any]] = []
    for by, one_thread in LAUNCHES.items():
        shown = [row for row in document(cluster, collective, one_thread) if row["bytes"] >= SMALLEST]
        rows += [{"MiB": row["bytes"] / 2**20, "busbw": row["busbw"], "by": by} for row in shown]
    for row in shown:
        rows += [{"MiB": row["bytes"] / 2**20, "busbw": m["busbw"], "by": m["source"]} for m in row["measured"]]
    return rows


def _panel(alt: Any, cluster: Cluster, collective: str, rows: list[dict[str, Any]], names: Sequence[str]) -> Any:
    decades = alt.Axis(format="~g", values=[10.0**k for k in range(-2, 5)])
    x = alt.X("MiB:Q", scale=alt.Scale(type="log", nice=False), title="size (MiB)", axis=decades)
    y = alt.Y("busbw:Q", title="GB/s", scale=alt.Scale(zero=True))
    scale = alt.Scale(domain=list(names), range=[COLORS[i % len(COLORS)] for i in range(len(names))])
    shape = alt.Scale(domain=list(names), range=[SHAPES[i // len(COLORS)] for i in range(len(names))])
    legend = alt.Legend(title="published by", orient="bottom", columns=5)
    points = alt.Chart(alt.Data(values=[row for row in rows if row["by"] not in LAUNCHES]))
    dots = points.mark_point(filled=True, size=36, opacity=0.9)
    dots = dots.encode(
        x=x,
        y=y,
        color=alt.Color("by:N", scale=scale, legend=legend),
        shape=alt.Shape("by:N", scale=shape, legend=legend),
    )
    lines = alt.Chart(alt.Data(values=[row for row in rows if row["by"] in LAUNCHES])).mark_line(color=LINE)
    dashes = alt.Scale(domain=list(LAUNCHES), range=[[1, 0], [4, 3]])
    style = alt.StrokeDash("by:N", scale=dashes, legend=alt.Legend(title="predicted", orient="bottom", padding=8))
    curve = lines.encode(x=x, y=y, strokeDash=style)
    head = alt.TitleParams(f"{collective}, {cluster.devices:g} devices", subtitle=cluster.key, fontSize=13)
    return alt.layer(curve, dots).properties(width=230, height=190, title=head)
