"""The page "memory: predicted against measured": a scatter and a text, from the report of measured memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tradespace.views.figures import altair_module
from tradespace.views.theme import LIGHT, styled

COLORS = ("#4477AA", "#EE7733", "#117733", "#AA3377", "#DDAA33", "#CC3311", "#66A3D2", "#999933")
BAND = 0.10
LONGEST = 30
INTRO = """# Memory: predicted against measured

Written by `make memory` from the packaged runs; `tradespace validate --data runs.csv --out DIR` writes the same page
for yours. Worst errors come first. No number was fitted to one run; constants are those of a framework's profile
(`tradespace show torchtitan`), each counted tensor by tensor unless its source says that it was fitted.

![Predicted against measured bytes of each run; the grey band is 10 % wide on each side](images/memory.png)

- **allocated** bytes are those of tensors: the sum of the parts that `predict` shows;
- **reserved** ones add the allocator's slack (`slack` of the profile), **driver** ones, as nvidia-smi shows them, also
  the CUDA context, NCCL and libraries (`context`). The row's own kind is compared.
- **Risk band**: a step *fits* while its tensors take less than 90 % of what the driver offers, does *not fit* above
  98 %, and is *at risk* between: the profile's `fit_share` and `risk_share`. Of a public sweep of 1,603 runs over 1 to
  64 nodes of H100s with nanotron (not packaged: its licence is not known) 97.1 % get the right verdict with the line at
  90 %; reserved bytes of its 1,209 successful runs are 13 % off on average. One of nanotron's constants was fitted to
  that sweep (`saves_copies`).
"""
MORE = """
## When a step does not fit

`predict` lists single changes of the strategy (or pairs) that make it fit, cheapest first, each with its price in time:

```python
import tradespace as ts

cluster = ts.cluster("dgx-h100", devices=64)
strategy = ts.strategy("tp=8,micro_batch=2,global_batch=128", cluster=cluster)
step = ts.predict(ts.model("llama-3.1-70b", seq=8192), cluster, strategy)
for fix in step.to_dict()["fixes"]:
    print(fix)
```
"""


def scatter(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Measured against predicted GB on logarithmic axes, one point per run, coloured by framework."""
    alt = altair_module()
    shown = [row for row in rows if row["error"] is not None]
    points = [
        {
            "measured": row["measured_bytes"] / 1e9,
            "predicted": row["predicted_bytes"] / 1e9,
            "framework": row["framework"],
            "run": row["id"],
            "error": row["error"],
        }
        for row in shown
    ]
    sizes = [point[name] for point in points for name in ("measured", "predicted")] or [1.0]
    low, high = min(sizes) * 0.9, max(sizes) * 1.1
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    ends = [{"at": at, "low": at * (1 - BAND), "high": at * (1 + BAND)} for at in (low, high)]
    ticks = [size for size in (5, 10, 20, 50, 100, 200, 500) if low <= size <= high]
    x = alt.X("at:Q", scale=scale, title="measured GB", axis=alt.Axis(values=ticks))
    band = (
        alt.Chart(alt.Data(values=ends))
        .mark_area(color=LIGHT["grid"], opacity=0.8, clip=True)
        .encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q")
    )
    line = alt.Chart(alt.Data(values=ends)).mark_line(color=LIGHT["quiet"], strokeWidth=1).encode(x=x, y="at:Q")
    names = sorted({point["framework"] for point in points})
    dots = (
        alt.Chart(alt.Data(values=points))
        .mark_circle(size=60, opacity=0.75)
        .encode(
            x=alt.X("measured:Q", scale=scale),
            y=alt.Y("predicted:Q", scale=scale, title="predicted GB", axis=alt.Axis(values=ticks)),
            color=alt.Color(
                "framework:N",
                scale=alt.Scale(domain=names, range=[COLORS[i % len(COLORS)] for i in range(len(names))]),
                title=None,
            ),
            tooltip=["run:N", alt.Tooltip("measured:Q", format=".1f"), alt.Tooltip("predicted:Q", format=".1f")],
        )
    )
    subtitle = f"{len(points)} runs; grey: 10 % on each side of equal"
    chart = (band + line + dots).properties(
        width=460, height=460, title=alt.Title("Memory per device: predicted against measured", subtitle=subtitle)
    )
    return styled(chart)


def page(document: Mapping[str, Any]) -> str:
    """The page as Markdown."""
    parts = [INTRO, _verdicts(document["verdicts"]), _sources(document), _worst(document["rows"])]
    return "\n".join([*parts, _skipped(document["rows"]), _differs(document["differs"]), MORE.strip(), ""])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) + "\n"


def _verdicts(counts: Mapping[str, Mapping[str, int]]) -> str:
    words = {"ok": "ran", "oom": "ran out of memory"}
    rows = [[words[name], *(str(number) for number in found.values())] for name, found in counts.items()]
    shown = [row for row in rows if any(cell != "0" for cell in row[1:])]
    return "## Verdicts\n\n" + _table(["runs that", "fits", "at risk", "does not fit"], shown)


def _sources(document: Mapping[str, Any]) -> str:
    why = {entry["source"]: entry["text"] for entry in document["why"]}
    groups = [("all", document["summary"]["all"]), *document["summary"]["source"].items()]
    rows = [
        [
            name,
            str(found["n"]),
            f"{found['median_abs_error']:.1%}",
            f"{found['mean_abs_error']:.1%}",
            f"{found['bias']:+.1%}",
            why.get(name, ""),
        ]
        for name, found in groups
        if found
    ]
    return "## Sources\n\n" + _table(["source", "runs", "median error", "mean error", "bias", "what they are"], rows)


def _worst(rows: Sequence[Mapping[str, Any]]) -> str:
    found = [row for row in rows if row["error"] is not None][:LONGEST]
    cells = [
        [
            row["id"],
            row["model"],
            row["device"],
            row["strategy"],
            row["kind"],
            f"{row['measured_bytes'] / 1e9:.1f}",
            f"{row['predicted_bytes'] / 1e9:.1f}",
            f"{row['error']:+.1%}",
        ]
        for row in found
    ]
    head = ["run", "model", "device", "strategy", "bytes", "measured GB", "predicted GB", "error"]
    return f"## The {len(found)} worst runs\n\n" + _table(head, cells)


def _skipped(rows: Sequence[Mapping[str, Any]]) -> str:
    reasons: dict[str, int] = {}
    for row in rows:
        if row["skipped"]:
            reasons[row["skipped"]] = reasons.get(row["skipped"], 0) + 1
    if not reasons:
        return ""
    cells = [[reason, str(number)] for reason, number in sorted(reasons.items(), key=lambda item: -item[1])]
    return "## Runs without a prediction\n\n" + _table(["reason", "runs"], cells)


def _differs(entries: Sequence[Mapping[str, str]]) -> str:
    cells = [[entry["source"], entry["what"], entry["reason"]] for entry in entries]
    head = ["source", "fact", "why it is not predicted, or not as published"]
    return "## Published facts that differ\n\n" + _table(head, cells)
