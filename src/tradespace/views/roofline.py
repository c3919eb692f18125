"""Figure: the operators of one step under the roofline of the device, sized by the time that they take."""

from __future__ import annotations

from typing import Any

from tradespace.cost.compute import PEAKS, Rates, phase_time, rates
from tradespace.cost.stage import KINDS, PHASES
from tradespace.step import Step
from tradespace.views.documents import scalar
from tradespace.views.figures import altair_module, subtitle
from tradespace.views.theme import styled
from tradespace.workload.families import blocks_of
from tradespace.workload.operator import AttentionCore, Gemm, Operator, Work

COLORS = {"matrix": "#4477AA", "attention": "#EE7733", "memory_bound": "#AA3377"}
LABELS = 6
"""Operators with the most time that are named in the figure."""


def roofline_rows(step: Step) -> list[dict[str, Any]]:
    """One row per operator with a time: kind, FLOP per byte, FLOP/s reached, seconds of the average stage per step.

    The seconds are those that the step is made of, without recomputation and exchanges. Memory-bound kernels are drawn
    at one FLOP per value moved, fused attention with the bytes of its queries and outputs.
    Source of the figure: Williams, Waterman and Patterson 2009, Roofline, CACM 52(4).

    >>> import tradespace as ts
    >>> cluster = ts.cluster("dgx-h100", devices=8)
    >>> step = ts.predict(ts.model("llama-3.1-8b"), cluster, ts.strategy("tp=2,global_batch=64", cluster=cluster))
    >>> seconds = sum(row["seconds"] for row in roofline_rows(step))
    >>> abs(seconds / sum(step.kinds.values()) - 1) < 1e-9
    True
    """
    strategy, precision = step.strategy, step.strategy.precision
    speed = rates(step.cluster.device, precision.gemm, precision.value, precision.cast, strategy.profile)
    share = scalar(step.microbatches) / scalar(strategy.pipeline)
    rows = []
    for kind, block in blocks_of(step.model, strategy).items():
        times = scalar(step.numbers[kind]) * share
        for op in block.operators:
            row = _row(op, speed)
            if row["seconds"] > 0.0:
                name = op.name if kind in ("layer", op.name) else f"{kind} {op.name}"
                rows.append({"operator": name, "kind": KINDS[op.kind], **row, "seconds": row["seconds"] * times})
    return sorted(rows, key=lambda row: -row["seconds"])


def _row(op: Operator, speed: Rates) -> dict[str, float]:
    """FLOPs per byte, FLOP/s and seconds of all phases of an operator, for one microbatch."""
    flops = moved = seconds = 0.0
    for phase, work in zip(PHASES, (op.forward, op.input_grad, op.weight_grad), strict=True):
        if work is not None:
            counted, size = _work(work, speed)
            flops, moved = flops + counted, moved + size
            seconds += scalar(phase_time(op, work, phase, speed))
    return {"FLOP/byte": flops / max(moved, 1.0), "FLOP/s": flops / max(seconds, 1e-30), "seconds": seconds}


def _work(work: Work, speed: Rates) -> tuple[float, float]:
    """FLOPs and bytes of one phase."""
    shape, moved = work.shape, scalar(work.traffic)
    value = scalar(speed.value)
    if isinstance(shape, AttentionCore):
        flops = scalar(shape.flops)
        return flops, moved + flops / scalar(shape.keys) * value
    if isinstance(shape, Gemm):
        parts = sum(scalar(part) for part in speed.traffic(shape, speed.buffer))
        return scalar(shape.flops), moved + parts * scalar(shape.batch) * value
    return moved / value, moved


def roofline_figure(step: Step, *, dark: bool = False) -> Any:
    """Roofs: bandwidth that kernels reach times intensity, up to the dense peak of the type that GEMMs run in."""
    alt = altair_module()
    rows = roofline_rows(step)
    device = step.cluster.device
    peak = scalar(getattr(device, PEAKS[step.strategy.precision.gemm]))
    tier = device.memory[0]
    bandwidth = scalar(tier.bandwidth) * scalar(tier.efficiency)
    left, right = 0.3, 2.0 * max(peak / bandwidth, *(row["FLOP/byte"] for row in rows))
    roof = [{"FLOP/byte": x, "FLOP/s": min(peak, x * bandwidth)} for x in (left, peak / bandwidth, right)]
    x = alt.X("FLOP/byte:Q", scale=alt.Scale(type="log", domain=[left, right], nice=False), axis=alt.Axis(format="~r"))
    y = alt.Y("FLOP/s:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s"))
    text_color = "#DDDDDD" if dark else "#222222"
    line = alt.Chart(alt.Data(values=roof)).mark_line(color=text_color, strokeWidth=2).encode(x=x, y=y)
    base = alt.Chart(alt.Data(values=[{**row, "share": row["seconds"] / scalar(step.step_time)} for row in rows]))
    used = [kind for kind in COLORS if any(row["kind"] == kind for row in rows)]
    color = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=used, range=[COLORS[kind] for kind in used]),
        title=None,
        legend=alt.Legend(orient="bottom"),
    )
    size = alt.Size("share:Q", title="share of the step", scale=alt.Scale(range=[20, 1200]), legend=None)
    hover = ["operator:N", "kind:N", *(alt.Tooltip(f"{name}:Q", format=".3s") for name in ("FLOP/byte", "FLOP/s"))]
    dots = base.mark_circle(opacity=0.65).encode(
        x=x, y=y, color=color, size=size, tooltip=[*hover, alt.Tooltip("share:Q", format=".1%")]
    )
    named = alt.Chart(alt.Data(values=_named(rows))).mark_text(fontSize=11, color=text_color, align="right", dx=-16)
    slow = sum(row["seconds"] for row in rows if row["FLOP/byte"] * bandwidth < peak) / scalar(step.step_time)
    head = alt.TitleParams(
        f"{slow:.0%} of the step is bound by memory",
        subtitle=[subtitle(step), "area: share of the step; memory-bound kernels at one FLOP per value"],
    )
    chart = alt.layer(line, dots, named.encode(x=x, y=y, text="operator:N"))
    return styled(chart.properties(width=520, height=320, title=head), dark=dark)


def _named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The operators to name: those with the most time, none whose name would lie on another."""
    found: list[dict[str, Any]] = []
    for row in rows:
        near = any(
            max(row["FLOP/s"], other["FLOP/s"]) < 1.25 * min(row["FLOP/s"], other["FLOP/s"])
            and max(row["FLOP/byte"], other["FLOP/byte"]) < 8.0 * min(row["FLOP/byte"], other["FLOP/byte"])
            for other in found
        )
        if not near and len(found) < LABELS:
            found.append(row)
    return found
