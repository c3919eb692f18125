"""One look for all figures: colours by part, fonts, light and dark."""

from __future__ import annotations

from typing import Any

# Colour-blind safe (Okabe and Ito 2008, Paul Tol's muted set): compute blue to green, waiting orange to red, rest grey.
TIME_COLORS = {
    "forward": "#4477AA",
    "input_grad": "#66A3D2",
    "weight_grad": "#A3CDEB",
    "recompute": "#117733",
    "optimizer": "#999933",
    "exposed_tensor": "#EE7733",
    "exposed_context": "#DDAA33",
    "exposed_expert": "#EEBB88",
    "exposed_data": "#CC3311",
    "exposed_pipeline": "#AA3377",
    "bubble": "#BBBBBB",
    "offload": "#882255",
    "other": "#777777",
}
MEMORY_COLORS = {
    "weights": "#4477AA",
    "gradients": "#66A3D2",
    "optimizer": "#A3CDEB",
    "master": "#117733",
    "activations": "#EE7733",
    "logits": "#DDAA33",
    "buffers": "#AA3377",
    "overhead": "#777777",
}
LIGHT = {"background": "#FFFFFF", "text": "#222222", "quiet": "#666666", "grid": "#E6E6E6"}
DARK = {"background": "#16181D", "text": "#EEEEEE", "quiet": "#AAAAAA", "grid": "#33363D"}


def styled(chart: Any, *, dark: bool = False) -> Any:
    """The chart with our fonts and colours."""
    look = DARK if dark else LIGHT
    axis = {
        "labelColor": look["text"],
        "titleColor": look["quiet"],
        "gridColor": look["grid"],
        "titleFontWeight": "normal",
    }
    return (
        chart.configure(background=look["background"], font="DejaVu Sans, Arial, sans-serif", padding=16)
        .configure_view(stroke=None)
        .configure_axis(**axis, labelFontSize=12, titleFontSize=12, domainColor=look["grid"], tickColor=look["grid"])
        .configure_title(
            color=look["text"], subtitleColor=look["quiet"], fontSize=16, subtitleFontSize=12, anchor="start", offset=12
        )
        .configure_legend(labelColor=look["text"], titleColor=look["quiet"], labelFontSize=12, titleFontWeight="normal")
    )
