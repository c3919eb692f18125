"""Figures: a Step or a Plan as an Altair chart, with the rows behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tradespace.cost.memory import PARTS as MEMORY_PARTS
from tradespace.errors import InputError, nearest
from tradespace.explore.plan import Plan
from tradespace.step import TIME_PARTS, Step
from tradespace.views.documents import scalar, step_document, verdict
from tradespace.views.theme import MEMORY_COLORS, TIME_COLORS, styled

SUFFIXES = (".png", ".svg", ".html", ".json", ".csv")


def altair_module() -> Any:
    """Altair, imported when a figure is drawn; an InputError says which extra brings it."""
    try:
        import altair
    except ModuleNotFoundError:
        raise InputError("figures need Altair: install the extra tradespace[plot]") from None
    return altair


def time_rows(steps: list[Step]) -> list[dict[str, Any]]:
    """One row per strategy and part of the step time: label, rank, part, seconds, verdict."""
    rows = []
    for rank, step in enumerate(steps, 1):
        label, fits = f"{rank}  {short_text(step)}", verdict(step)
        for order, part in enumerate(TIME_PARTS):
            seconds = scalar(step.time[part])
            if seconds > 0.0:
                row = {"label": label, "rank": rank, "part": part, "order": order, "seconds": seconds, "verdict": fits}
                rows.append(row)
    return rows


def memory_rows(steps: list[Step]) -> list[dict[str, Any]]:
    """One row per strategy and part of the memory of its worst stage: label, rank, part, GB, verdict."""
    rows = []
    for rank, step in enumerate(steps, 1):
        document = step_document(step)
        for order, part in enumerate(MEMORY_PARTS):
            size = document["memory"][part] / 1e9
            if size > 0.0:
                row = {"label": f"{rank}  {short_text(step)}", "rank": rank, "part": part, "order": order, "GB": size}
                rows.append({**row, "verdict": document["verdict"]})
    return rows


def short_text(step: Step) -> str:
    """A strategy as people write it on a slide: TP8 PP16 VP7 DP8, microbatch 1, no recompute.

    >>> import tradespace as ts
    >>> cluster = ts.cluster("dgx-h100", devices=16)
    >>> short_text(ts.predict(ts.model("llama-3.1-8b"), cluster, ts.strategy("tp=2,global_batch=64", cluster=cluster)))
    'TP2 DP8 Z1 mb1'
    """
    s = step.strategy
    degrees = {"TP": s.tensor, "CP": s.context, "PP": s.pipeline, "VP": s.virtual_stages}
    words = [f"{name}{scalar(value):.0f}" for name, value in degrees.items() if scalar(value) > 1]
    words += [f"DP{scalar(step.data):.0f}", f"Z{scalar(s.zero):.0f}", f"mb{scalar(s.micro_batch):.0f}"]
    recompute = {0.0: "", 1.0: "sel", 2.0: "full"}[scalar(s.recompute)]
    return " ".join([*words, recompute]).strip()


def _bars(
    alt: Any, rows: list[dict[str, Any]], value: str, colors: dict[str, str], title: str, width: int, names: bool
) -> Any:
    """Stacked bars, one per strategy; at risk is pale, what does not fit hatched."""
    order = list(dict.fromkeys(row["label"] for row in rows))
    used = [part for part in colors if any(row["part"] == part for row in rows)]
    scale = alt.Scale(domain=used, range=[colors[part] for part in used])
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(height={"band": 0.72})
        .encode(
            y=alt.Y(
                "label:N",
                sort=order,
                title=None,
                axis=alt.Axis(labelLimit=300, domain=False, ticks=False) if names else None,
            ),
            x=alt.X(f"{value}:Q", stack=True, title=title, axis=alt.Axis(format=",.3~r", tickCount=6)),
            color=alt.Color(
                "part:N", scale=scale, sort=used, title=None, legend=alt.Legend(orient="bottom", columns=4)
            ),
            order=alt.Order("order:Q"),
            opacity=alt.condition(alt.datum.verdict == "at risk", alt.value(0.55), alt.value(1.0)),
            tooltip=["label:N", "part:N", alt.Tooltip(f"{value}:Q", format=".3f"), "verdict:N"],
        )
    )
    return alt.layer(bars, _hatch(alt, rows, value, order)).properties(width=width, height={"step": 30})


def _hatch(alt: Any, rows: list[dict[str, Any]], value: str, order: list[str]) -> Any:
    """Strokes over the bars of strategies that do not fit, one per fiftieth of the longest bar."""
    totals: dict[tuple[int, str], float] = {}
    for row in rows:
        key = (row["rank"], row["label"])
        totals[key] = totals.get(key, 0.0) + row[value]
    unfit = {row["rank"] for row in rows if row["verdict"] == "does not fit"}
    gap = max(totals.values(), default=1.0) / 50.0
    strokes = [
        {"label": label, "at": gap * (i + 0.5)}
        for (rank, label), total in totals.items()
        if rank in unfit
        for i in range(int(total / gap))
    ]
    mark = alt.Chart(alt.Data(values=strokes)).mark_text(text="/", fontSize=21, color="white", fontWeight="bold")
    return mark.encode(y=alt.Y("label:N", sort=order), x="at:Q")


def steps_figure(steps: list[Step], title: str, setting: str, *, dark: bool = False) -> Any:
    """Step time by part beside memory by part, for several strategies of one model and cluster."""
    alt = altair_module()
    time = _bars(alt, time_rows(steps), "seconds", TIME_COLORS, "seconds per step", 430, True)
    memory = _bars(alt, memory_rows(steps), "GB", MEMORY_COLORS, "GB on the worst stage (line: capacity)", 260, False)
    capacity = scalar(steps[0].capacity) / 1e9
    share = scalar(steps[0].strategy.profile.fit_share)
    limits = [{"GB": capacity, "kind": "capacity"}, {"GB": capacity * share, "kind": "at risk beyond"}]
    rule = (
        alt.Chart(alt.Data(values=limits))
        .mark_rule(strokeWidth=2)
        .encode(
            x="GB:Q",
            strokeDash=alt.condition(alt.datum.kind == "capacity", alt.value([1, 0]), alt.value([4, 4])),
            color=alt.value("#CC3311"),
            tooltip=["kind:N", alt.Tooltip("GB:Q", format=".1f")],
        )
    )
    figure = alt.hconcat(time, memory + rule, spacing=24).resolve_scale(color="independent")
    return styled(figure.properties(title=alt.TitleParams(title, subtitle=setting)), dark=dark)


def step_figure(step: Step, *, dark: bool = False) -> Any:
    """One candidate: time by part, memory by part against the capacity."""
    document = step_document(step)
    title = f"{step.model.name}: {document['step_time_s']:.3g} s per step, {document['verdict']}"
    return steps_figure([step], title, subtitle(step), dark=dark)


def plan_figure(plan: Plan, *, dark: bool = False) -> Any:
    """The ranked strategies of a plan."""
    steps = plan.top or ([plan.nearest] if plan.nearest else [])
    if not steps:
        raise InputError("plan: no legal strategy to draw")
    first = step_document(steps[0])
    gap = f", {scalar(steps[1].step_time) / scalar(steps[0].step_time) - 1:+.1%} for the next" if len(steps) > 1 else ""
    found = (
        f"{short_text(steps[0])} takes {first['step_time_s']:.3g} s{gap}" if plan.top else "Nothing fits: the nearest"
    )
    title = f"{plan.model.name}: {found}"
    setting = f"{subtitle(steps[0])}; best of {plan.legal:,} legal strategies, {plan.fitting:,} fit"
    return steps_figure(steps[:10], title, setting, dark=dark)


def subtitle(step: Step) -> str:
    """The setting of a figure in one line: devices, batch, sequence, precision."""
    batch, seq = scalar(step.strategy.global_batch), scalar(step.model.seq)
    devices = scalar(step.cluster.devices)
    work = f"{batch:,.0f} sequences of {seq:,.0f} tokens, {step.strategy.precision.name}"
    return f"{devices:,.0f} x {step.cluster.device.name}, {work}"


def save(chart: Any, path: Path | str) -> None:
    """Write a chart: .png, .svg, .html (offline), .json (its specification) or .csv (its rows)."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in SUFFIXES:
        raise InputError(f"{target}: figures are written as {', '.join(SUFFIXES)}{nearest(target.suffix, SUFFIXES)}")
    if kind == ".csv":
        from tradespace.views.tables import as_csv

        target.write_text(as_csv(_rows(chart.to_dict())), encoding="utf-8")
    elif kind == ".json":
        target.write_text(json.dumps(chart.to_dict(), indent=1), encoding="utf-8")
    elif kind == ".html":
        chart.save(str(target), format="html", inline=True)
    else:
        chart.save(str(target), format=kind[1:], scale_factor=2.0)


def _rows(node: Any) -> list[dict[str, Any]]:
    """The rows of the first data set of a chart."""
    if isinstance(node, dict):
        values = node.get("data", {}).get("values") if isinstance(node.get("data"), dict) else None
        if values:
            return list(values)
        return next((rows for child in node.values() if (rows := _rows(child))), [])
    if isinstance(node, list):
        return next((rows for child in node if (rows := _rows(child))), [])
    return []
