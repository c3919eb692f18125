"""Figure: memory of each class of pipeline stage against the capacity and the risk band."""

from __future__ import annotations

from typing import Any

from tradespace.cost.memory import PARTS
from tradespace.step import Step
from tradespace.views.documents import scalar, verdict
from tradespace.views.figures import altair_module, short_text, subtitle
from tradespace.views.theme import MEMORY_COLORS, styled

RISK = "#CC3311"


def stage_rows(step: Step) -> list[dict[str, Any]]:
    """One row per class of stage and part: stage, part, GB."""
    return [
        {"stage": name, "part": part, "order": i, "GB": scalar(parts[part]) / 1e9}
        for name, parts in step.stages.items()
        for i, part in enumerate(PARTS)
        if scalar(parts[part]) > 0.0
    ]


def stages_figure(step: Step, *, dark: bool = False) -> Any:
    """Stacked bars per class of stage; the band is at risk, the line beyond it does not fit."""
    alt = altair_module()
    rows = stage_rows(step)
    capacity, profile = scalar(step.capacity) / 1e9, step.strategy.profile
    band = [{"from": capacity * scalar(profile.fit_share), "to": capacity * scalar(profile.risk_share)}]
    used = [part for part in PARTS if any(row["part"] == part for row in rows)]
    colors = alt.Scale(domain=used, range=[MEMORY_COLORS[part] for part in used])
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(height={"band": 0.7})
        .encode(
            y=alt.Y("stage:N", sort=list(step.stages), title=None, axis=alt.Axis(domain=False, ticks=False)),
            x=alt.X("GB:Q", stack=True, title="GB per device"),
            color=alt.Color(
                "part:N", scale=colors, sort=used, title=None, legend=alt.Legend(orient="bottom", columns=4)
            ),
            order="order:Q",
            tooltip=["stage:N", "part:N", alt.Tooltip("GB:Q", format=".2f")],
        )
    )
    risk = alt.Chart(alt.Data(values=band)).mark_rect(color=RISK, opacity=0.2).encode(x="from:Q", x2="to:Q")
    limit = alt.Chart(alt.Data(values=[{"GB": capacity}])).mark_rule(color=RISK, strokeWidth=2).encode(x="GB:Q")
    said = f"{subtitle(step)}; line: {capacity:.1f} GB usable, band: at risk"
    head = alt.TitleParams(f"{short_text(step)} {verdict(step)}: memory by stage", subtitle=said)
    return styled(alt.layer(risk, bars, limit).properties(width=520, height={"step": 34}, title=head), dark=dark)
