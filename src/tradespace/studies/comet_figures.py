"""COMET's seven figures and two of our own as Altair charts, each with the rows behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tradespace.studies import comet_data as data
from tradespace.studies.comparison import dlrm_clusters, dlrm_runs, expert_clusters
from tradespace.views.figures import altair_module
from tradespace.views.theme import MEMORY_COLORS, TIME_COLORS, styled

Figure = tuple[Any, data.Rows]
EXPANSION_COLORS = {"local memory": "#A3CDEB", "with expansion": "#4477AA"}


def _titled(chart: Any, title: str, subtitle: str) -> Any:
    alt = altair_module()
    return styled(chart.properties(title=alt.TitleParams(title, subtitle=subtitle)))


def _stacks(rows: data.Rows, value: str, title: str, colors: Mapping[str, str], lines: data.Rows) -> Any:
    """Stacked bars by strategy, one panel per cluster; bars that do not fit are pale with a dashed outline."""
    alt = altair_module()
    used = [part for part in colors if any(row["part"] == part for row in rows)]
    panels = []
    for name in dict.fromkeys(row["cluster"] for row in rows):
        own = [row for row in rows if row["cluster"] == name]
        bars = (
            alt.Chart(alt.Data(values=own))
            .mark_bar(strokeWidth=0.8)
            .encode(
                x=alt.X("strategy:N", sort=alt.SortField("rank"), title=None, axis=alt.Axis(labelAngle=-50)),
                y=alt.Y(f"{value}:Q", title=title),
                color=alt.Color(
                    "part:N",
                    sort=used,
                    scale=alt.Scale(domain=used, range=[colors[part] for part in used]),
                    title=None,
                    legend=alt.Legend(orient="bottom", columns=5),
                ),
                order=alt.Order("order:Q"),
                opacity=alt.condition("datum.fits", alt.value(1.0), alt.value(0.4)),
                stroke=alt.condition("datum.fits", alt.value(None), alt.value("#222222")),
                strokeDash=alt.condition("datum.fits", alt.value([1, 0]), alt.value([3, 3])),
                tooltip=["strategy:N", "part:N", alt.Tooltip(f"{value}:Q", format=".4~g"), "fits:N"],
            )
            .properties(width=250, height=260, title=alt.TitleParams(own[0]["panel"], fontSize=12))
        )
        limits = [row for row in lines if row["cluster"] == name]
        if limits:
            rule = alt.Chart(alt.Data(values=limits)).mark_rule(color="#CC3311", strokeWidth=2)
            dash = alt.condition(alt.datum.kind == "local", alt.value([1, 0]), alt.value([4, 4]))
            bars = bars + rule.encode(y=f"{value}:Q", strokeDash=dash)
        panels.append(bars)
    return alt.hconcat(*panels).resolve_scale(color="shared")


def step_time() -> Figure:
    """Figure 1: step time by strategy, stacked by part."""
    rows = data.step_rows()
    chart = _stacks(rows, "seconds", "seconds per 1,024 sequences", TIME_COLORS, [])
    return _titled(chart, "Step time of Transformer-1T by MPx_DPy", "pale and outlined: does not fit"), rows


def memory() -> Figure:
    """Figure 2: memory per node by strategy, stacked by part, with capacities."""
    rows = data.memory_rows()
    chart = _stacks(rows, "GB", "GB per node", MEMORY_COLORS, data.capacity_rows())
    return _titled(chart, "Memory per node by MPx_DPy", "line: local memory; dashed: local and expanded"), rows


def _heat(rows: data.Rows, axes: tuple[str, str], titles: tuple[str, str], value: str, legend: str) -> Any:
    """A heat map of two resources with the value and the best strategy named in every cell."""
    alt = altair_module()
    x, y = axes
    across, down = (sorted({row[axis] for row in rows}) for axis in axes)
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(f"{x}:O", title=titles[0], axis=alt.Axis(labelAngle=0, format=",~g"), sort=across),
        y=alt.Y(f"{y}:O", title=titles[1], axis=alt.Axis(format=",~g"), sort=down[::-1]),
    )
    middle = sorted(row[value] for row in rows)[len(rows) // 2]
    scheme = alt.Scale(scheme="blues", reverse=value == "seconds")
    dark = f"datum.{value} > {middle}" if value != "seconds" else f"datum.{value} < {middle}"
    ink = alt.condition(dark, alt.value("#FFFFFF"), alt.value("#222222"))
    cells = base.mark_rect().encode(color=alt.Color(f"{value}:Q", scale=scheme, title=legend))
    numbers = base.mark_text(dy=-6, fontSize=12).encode(text=alt.Text(f"{value}:Q", format=".3~g"), color=ink)
    names = base.mark_text(dy=8, fontSize=9).encode(text="strategy:N", color=ink)
    return (cells + numbers + names).properties(width={"step": 84}, height={"step": 42})


def expansion() -> Figure:
    """Figure 3: speedup by bandwidth and capacity of the expanded memory."""
    rows = data.expansion_rows()
    titles = ("expanded bandwidth, GB/s per node", "expanded capacity, GB per node")
    chart = _heat(rows, ("bandwidth_GB_s", "capacity_GB"), titles, "speedup", "speedup")
    text = "over the best strategy that fits local memory; best strategy in each cell"
    return _titled(chart, "What memory expansion gives on 1,024 A100", text), rows


def compute() -> Figure:
    """Figure 4: step time against the peak, memory and network fixed; a dot marks where a doubling stops paying."""
    alt, rows = altair_module(), data.compute_rows()
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("factor:Q", scale=alt.Scale(type="log", base=2), title="peak over today's, memory and network fixed"),
        y=alt.Y("seconds:Q", scale=alt.Scale(type="log", domainMin=5), title="seconds per 1,024 sequences"),
        color=alt.Color(
            "cluster:N",
            title=None,
            legend=alt.Legend(symbolType="stroke"),
            scale=alt.Scale(range=["#4477AA", "#EE7733", "#117733"]),
        ),
        strokeDash=alt.StrokeDash("memory:N", title=None, legend=alt.Legend(symbolType="stroke")),
        tooltip=["cluster:N", "memory:N", "TFLOP_s:Q", "seconds:Q", "strategy:N"],
    )
    stops = base.transform_filter("datum.stops_paying").mark_point(filled=True, size=90)
    chart = (base.mark_line(strokeWidth=2) + stops).properties(width=560, height=320)
    text = "dot: from here on twice the peak gains less than 10 %"
    return _titled(chart, "Where more FLOP/s stop paying", text), rows


def network() -> Figure:
    """Figure 5: bandwidth inside and between pods, and their ratio at a fixed sum."""
    alt, rows, ratios = altair_module(), data.network_rows(), data.ratio_rows()
    titles = ("between pods, GB/s per node", "inside a pod, GB/s per node")
    heat = _heat(rows, ("fabric_GB_s", "pod_GB_s"), titles, "seconds", "seconds")
    lines = (
        alt.Chart(alt.Data(values=ratios))
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("ratio:Q", scale=alt.Scale(type="log", base=2), title="inside over between pods, fixed sum"),
            y=alt.Y("seconds:Q", title="seconds per 1,024 sequences", scale=alt.Scale(zero=False)),
            color=alt.Color("case:N", title=None, legend=alt.Legend(orient="bottom", columns=2, labelLimit=260)),
        )
        .properties(width=360, height=252)
    )
    chart = alt.hconcat(heat, lines).resolve_scale(color="independent")
    title = "Network of 1,024 A100 in pods of 8"
    joined = [{"part": "map", **row} for row in rows] + [{"part": "ratio", **row} for row in ratios]
    return _titled(chart, title, "left: best strategy that fits; right: two strategies at a fixed sum"), joined


def dlrm() -> Figure:
    """Figure 6: DLRM on fewer nodes with expanded memory."""
    alt, rows = altair_module(), data.dlrm_rows()
    order = list(dict.fromkeys(row["expanded"] for row in rows))
    panels = []
    for value, title in (
        ("milliseconds", "milliseconds per step"),
        ("efficiency", "samples/s per node, over 64 nodes"),
    ):
        panels.append(
            alt.Chart(alt.Data(values=rows))
            .mark_line(point=True, strokeWidth=2)
            .encode(
                x=alt.X("nodes:O", title="nodes", axis=alt.Axis(labelAngle=0)),
                y=alt.Y(f"{value}:Q", title=title),
                color=alt.Color("expanded:N", sort=order, title="expanded memory", scale=alt.Scale(scheme="viridis")),
                tooltip=["nodes:O", "expanded:N", alt.Tooltip(f"{value}:Q", format=".4~g")],
            )
            .properties(width=330, height=280)
        )
    chart = alt.hconcat(*panels)
    text = f"8 nodes win per node above {data.dlrm_break_even()[8]:,.0f} GB/s of expanded memory"
    return _titled(chart, "DLRM with 1.2 T parameters on fewer nodes", text), rows


def clusters() -> Figure:
    """Figure 7: clusters at their best strategy that fits, with and without expansion."""
    alt, rows = altair_module(), data.cluster_rows()
    names = list(EXPANSION_COLORS)
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("cluster:N", title=None, sort=None, axis=alt.Axis(labelLimit=300)),
        yOffset=alt.YOffset("memory:N", sort=names),
        x=alt.X("speedup:Q", title="speedup over 1,024 A100 with local memory"),
    )
    colors = alt.Scale(domain=names, range=list(EXPANSION_COLORS.values()))
    bars = base.mark_bar().encode(color=alt.Color("memory:N", title=None, scale=colors, sort=names))
    text = base.mark_text(align="left", dx=4, fontSize=10).encode(text="strategy:N")
    chart = (bars + text).properties(width=460, height={"step": 18})
    return _titled(chart, "Clusters at their best strategy", "Transformer-1T, seconds per 1,024 sequences"), rows


def models() -> Figure:
    """Our own comparison: DLRM and a mixture of experts over clusters, normalized to A100."""
    alt = altair_module()
    panels, rows = [], []
    for title, found in (
        ("DLRM, 1.2 T parameters", dlrm_clusters()),
        ("DeepSeek-V3, best strategy", expert_clusters()),
    ):
        base = next(row["seconds"] for row in found if "A100" in row["cluster"])
        own = [{"model": title, "memory": "local memory", **row, "speedup": base / row["seconds"]} for row in found]
        rows += own
        names = list(EXPANSION_COLORS)
        bars = (
            alt.Chart(alt.Data(values=own))
            .mark_bar()
            .encode(
                y=alt.Y("cluster:N", title=None, sort=None, axis=alt.Axis(labelLimit=220)),
                yOffset=alt.YOffset("memory:N", sort=names),
                x=alt.X("speedup:Q", title="speedup over the first bar of A100", scale=alt.Scale(type="symlog")),
                color=alt.Color(
                    "memory:N",
                    title=None,
                    sort=names,
                    scale=alt.Scale(domain=names, range=list(EXPANSION_COLORS.values())),
                    legend=alt.Legend(orient="bottom"),
                ),
            )
            .properties(width=300, height={"step": 20}, title=alt.TitleParams(title, fontSize=12))
        )
        panels.append(bars)
    return _titled(alt.hconcat(*panels), "Other models on the same kinds of clusters", "beyond the paper"), rows


def measured() -> Figure:
    """Published DLRM-DCNv2 runs beside predictions."""
    alt, rows = altair_module(), dlrm_runs()
    shown = [row for row in rows if row["predicted_ms"] is not None]
    base = alt.Chart(alt.Data(values=shown)).encode(
        x=alt.X("measured_ms:Q", title="measured, ms per step", scale=alt.Scale(type="log", domain=[1, 8])),
        y=alt.Y("predicted_ms:Q", title="predicted, ms per step", scale=alt.Scale(type="log", domain=[1, 8])),
    )
    points = base.mark_point(filled=True, size=70).encode(color=alt.Color("device:N", title=None))
    ends = alt.Chart(alt.Data(values=[{"x": 1, "y": 1}, {"x": 8, "y": 8}]))
    line = ends.mark_line(color="#999999", strokeDash=[4, 4]).encode(x="x:Q", y="y:Q")
    chart = (line + points).properties(width=360, height=320)
    return _titled(chart, "MLPerf DLRM-DCNv2, HugeCTR", "kernels at the roofline, no framework time: assumed"), rows


FIGURES: Mapping[str, Callable[[], Figure]] = {
    "1-step-time": step_time,
    "2-memory": memory,
    "3-expansion": expansion,
    "4-compute": compute,
    "5-network": network,
    "6-dlrm": dlrm,
    "7-clusters": clusters,
    "8-models": models,
    "9-dlrm-measured": measured,
}
"""By the name of its files."""
