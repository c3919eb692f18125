"""Figure: the ladder from the ideal FLOP time to the predicted (and the measured) step."""

from __future__ import annotations

from typing import Any

from tradespace.step import Step
from tradespace.views.documents import gap, ladder, scalar
from tradespace.views.figures import altair_module, subtitle
from tradespace.views.theme import styled

IDEAL, LOST, TOTAL, GAINED = "#4477AA", "#EE7733", "#222222", "#117733"
SHOWN = 1e-4
"""Rungs below this share of the step are left out of the figure."""


def ladder_rows(step: Step, measured: float | None = None) -> list[dict[str, Any]]:
    """One row per rung: name, seconds added, where it starts and ends, what it is; then the total.

    >>> import tradespace as ts
    >>> cluster = ts.cluster("dgx-h100", devices=8)
    >>> step = ts.predict(ts.model("llama-3.1-8b"), cluster, ts.strategy("tp=2,global_batch=64", cluster=cluster))
    >>> rows = ladder_rows(step)
    >>> rows[-1]["rung"], abs(rows[-2]["end"] - rows[-1]["seconds"]) < 1e-6 * rows[-1]["seconds"]
    ('predicted step', True)
    """
    rungs = gap(step, measured)["ladder"] if measured is not None else ladder(step)
    total = scalar(step.step_time)
    rows: list[dict[str, Any]] = []
    for i, rung in enumerate(rungs):
        kind = "ideal" if i == 0 else "lost" if rung["seconds"] >= 0 else "gained"
        row = {"rung": rung["rung"], "seconds": rung["seconds"], "start": rung["total"] - rung["seconds"]}
        if rung["source"] == "measured":
            rows.append({"rung": "predicted step", "seconds": total, "start": 0.0, "end": total, "kind": "total"})
            row["start"] = total
        rows.append({**row, "end": rung["total"], "kind": kind})
    last = ("measured step", measured) if measured is not None else ("predicted step", total)
    rows.append({"rung": last[0], "seconds": last[1], "start": 0.0, "end": last[1], "kind": "total"})
    return [row for row in rows if abs(row["seconds"]) > SHOWN * total]


def ladder_figure(step: Step, measured: float | None = None, *, dark: bool = False) -> Any:
    """A waterfall: each rung starts where the one before ends."""
    alt = altair_module()
    rows = [{**row, "text": f"{row['seconds']:.3g}"} for row in ladder_rows(step, measured)]
    order = [row["rung"] for row in rows]
    colors = {"ideal": IDEAL, "lost": LOST, "gained": GAINED, "total": "#AAAAAA" if dark else TOTAL}
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("rung:N", sort=order, title=None, axis=alt.Axis(labelLimit=320, domain=False, ticks=False)),
        tooltip=["rung:N", alt.Tooltip("seconds:Q", format=".4g"), alt.Tooltip("end:Q", format=".4g")],
    )
    bars = base.mark_bar(height={"band": 0.7}).encode(
        x=alt.X("start:Q", title="seconds per step", axis=alt.Axis(tickCount=6)),
        x2="end:Q",
        color=alt.Color("kind:N", scale=alt.Scale(domain=list(colors), range=list(colors.values())), legend=None),
    )
    far = "max(datum.start, datum.end)"
    text = base.transform_calculate(far=far).mark_text(
        align="left", dx=5, fontSize=11, color="#AAAAAA" if dark else TOTAL
    )
    peak = rows[0]["seconds"] / rows[-1]["seconds"]
    head = alt.TitleParams(f"{step.model.name}: {peak:.0%} of the step is FLOPs at the peak", subtitle=subtitle(step))
    chart = alt.layer(bars, text.encode(x="far:Q", text="text:N"))
    return styled(chart.properties(width=460, height={"step": 26}, title=head), dark=dark)
