"""Figures of what resources are worth: a tornado of step times and break-even curves."""

from __future__ import annotations

from typing import Any

from tradespace.explore.whatif import Point, Whatif
from tradespace.views.documents import scalar
from tradespace.views.figures import altair_module, short_text
from tradespace.views.theme import styled

LESS, MORE = "#EE7733", "#4477AA"
NONE = 0.05  # % of the step time below which a bar has no number


def tornado_rows(found: Whatif, doubled: bool) -> list[dict[str, Any]]:
    """One row per resource and end: change of the best step time in %, where it fits; zero effects too.

    `doubled` chooses the resources that are halved and doubled, else those turned by 20 %.
    """
    rows = []
    for effect in found.effects:
        if (effect.up.factor >= 2.0) is not doubled:
            continue
        changes = [abs(_percent(found, point) or 0.0) for point in (effect.down, effect.up)]
        span, still = sum(changes), max(changes) < NONE
        for end, point in (("less", effect.down), ("more", effect.up)):
            change = _percent(found, point)
            row = {"resource": effect.resource.name, "end": end, "span": span, "percent": change or 0.0}
            text = "does not fit" if change is None else f"{change:+.1f} %" if abs(change) >= NONE else ""
            rows.append({**row, "text": text or ("no effect" if still and end == "more" else "")})
    return sorted(rows, key=lambda row: -row["span"])


def _percent(found: Whatif, point: Point) -> float | None:
    if point.step is None:
        return None
    return 100.0 * (scalar(point.step.step_time) / scalar(found.base.step_time) - 1.0)


def _tornado(alt: Any, rows: list[dict[str, Any]], title: str, words: tuple[str, str]) -> Any:
    """Bars to the left for faster and to the right for slower, longest on top, each with its number."""
    names = dict(zip(("less", "more"), words, strict=True))
    data = [{**row, "end": names[row["end"]]} for row in rows]
    reach = max(1.0, *(abs(row["percent"]) for row in rows)) * 1.35
    order = list(dict.fromkeys(row["resource"] for row in rows))
    base = alt.Chart(alt.Data(values=data)).encode(
        y=alt.Y("resource:N", sort=order, title=None, axis=alt.Axis(labelLimit=260)),
        x=alt.X(
            "percent:Q",
            title="change of the best step time, %",
            scale=alt.Scale(domain=[-reach, reach], nice=False),
            axis=alt.Axis(tickCount=7),
        ),
    )
    colors = alt.Scale(domain=list(words), range=[LESS, MORE])
    bars = base.mark_bar(height={"band": 0.7}).encode(
        color=alt.Color("end:N", scale=colors, title=None, legend=alt.Legend(orient="bottom")),
        tooltip=["resource:N", "end:N", "text:N"],
    )
    labels = []
    for side, align, offset in (("datum.percent < 0", "right", -4), ("datum.percent >= 0", "left", 4)):
        texts = base.transform_filter(f"{side} && datum.text != ''").mark_text(align=align, dx=offset, fontSize=11)
        labels.append(texts.encode(text="text:N"))
    rule = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color="#777777").encode(x="zero:Q")
    layers = alt.layer(bars, *labels, rule)
    return layers.properties(width=520, height={"step": 24}, title=_heading(alt, title))


def _heading(alt: Any, text: str) -> Any:
    return alt.TitleParams(text, fontSize=13, frame="group")


def curve_rows(found: Whatif) -> list[dict[str, Any]]:
    """One row per point of each break-even curve: value of the resource, what a device may cost more in %."""
    values = {effect.resource.name: effect.resource.value for effect in found.effects}
    rows = []
    for name, curve in found.curves.items():
        for point in curve.points:
            share = curve.worth(point)
            if point.step is not None and share is not None:
                gain = 100.0 * share
                row = {"resource": name, "value": values[name] * point.factor, "worth": gain}
                text = f"{gain:+.0f}" if abs(gain) >= 10.0 else f"{gain:+.1f}" if gain else "0"
                rows.append({**row, "text": text, "strategy": short_text(point.step)})
    return rows


def _curves(alt: Any, rows: list[dict[str, Any]], name: str, versus: str) -> Any:
    """One curve: at a price below the line the resource pays."""
    ticks = [row["value"] for row in rows]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "value:Q",
            scale=alt.Scale(type="log", base=2, padding=24),
            title=name,
            axis=alt.Axis(format=".3~s" if max(ticks) > 1e6 else ",~r", values=ticks),
        ),
        y=alt.Y("worth:Q", title="a device may cost more, %", scale=alt.Scale(padding=24)),
        tooltip=["value:Q", alt.Tooltip("worth:Q", format="+.1f"), "strategy:N"],
    )
    line = base.mark_line(color=MORE, strokeWidth=2, point={"size": 60, "color": MORE})
    text = base.mark_text(dy=-12, fontSize=11).encode(text="text:N")
    title = _heading(alt, f"Break-even with {versus}: at a price below the line it pays")
    return (line + text).properties(width=520, height=200, title=title)


def whatif_figure(found: Whatif, *, dark: bool = False) -> Any:
    """The tornado over +-20 %, that of halves and doubles, and the break-even curves, one below the other."""
    alt = altair_module()
    turned = tornado_rows(found, doubled=False)
    parts = [_tornado(alt, turned, "20 % less and more of each resource", ("20 % less", "20 % more"))]
    doubled = tornado_rows(found, doubled=True)
    parts.append(_tornado(alt, doubled, "Half and twice as many", ("half", "twice")))
    rows = curve_rows(found)
    for name in found.curves:
        own = [row for row in rows if row["resource"] == name]
        if len(own) > 1:
            versus = "the cluster without it" if found.curves[name].without else "what there is"
            parts.append(_curves(alt, own, name, versus))
    strongest = max(turned, key=lambda row: row["span"])
    title = f"{found.model.name}: {strongest['resource']} matters most"
    base = found.base
    subtitle = (
        f"{scalar(base.cluster.devices):,.0f} x {base.cluster.device.name}, {scalar(base.step_time):.3g} s per step "
        f"with {short_text(base)}; the strategy is chosen anew each time"
    )
    figure = alt.vconcat(*parts, spacing=28).resolve_scale(color="independent")
    return styled(figure.properties(title=alt.TitleParams(title, subtitle=subtitle)), dark=dark)
