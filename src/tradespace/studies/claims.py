"""A claim of a paper, what our model gives for it, and the verdict; the same rule for every study."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tradespace.studies.presets import Setting, alternatives, preset

REPRODUCED, UNDER_ASSUMPTIONS, NOT = "reproduced", "reproduced under assumptions", "not reproducible"
Value = Callable[[Sequence[Setting]], float]


def inside(value: float, claim: Mapping[str, Any]) -> bool:
    """Whether a value lies in the interval that the claim must reach."""
    return bool(claim["low"] <= value <= claim["high"])


def evaluate(study: str, values: Mapping[int, Value]) -> list[dict[str, Any]]:
    """One row per claim: {id, claim, expected, value, low, high, verdict, assumptions, range}.

    `range`: for each assumption that moves the value, its least and largest value over the assumption's alternatives
    (None where nothing fits).
    `assumptions`: those whose alternatives take the value out of its interval, and what the claim needs beyond the
    paper. A claim is reproduced when its interval holds whatever the assumptions; under assumptions when it holds with
    the preset alone; not reproducible when it does not hold, or when the paper does not say what it was made with.
    """
    return [_row(study, claim, values[claim["id"]]) for claim in preset(study)["claims"]]


def _row(study: str, claim: Mapping[str, Any], value_of: Value) -> dict[str, Any]:
    base = [Setting(path, value) for path, value in claim.get("settings", {}).items()]
    base += [Setting(f"expansion.{name}", value) for name, value in claim.get("expansion", {}).items()]
    value = value_of(base)
    moved: dict[str, list[float]] = {}
    broken: list[str] = []
    for entry, setting in alternatives(study):
        if setting.path in claim.get("settings", {}):
            continue
        other = value_of([*base, setting])
        if other == value:
            continue
        moved.setdefault(entry["key"], [value]).append(other)
        if "open" not in claim and not inside(other, claim) and entry["label"] not in broken:
            broken.append(entry["label"])
    needed = [*([claim["needs"]] if "needs" in claim else []), *broken]
    if "open" in claim:
        verdict, needed = NOT, [claim["open"]]
    elif not inside(value, claim):
        verdict = NOT
    else:
        verdict = UNDER_ASSUMPTIONS if needed else REPRODUCED
    return {
        "id": claim["id"],
        "claim": claim["claim"],
        "expected": claim["expected"],
        "value": value,
        "low": claim.get("low"),
        "high": claim.get("high"),
        "verdict": verdict,
        "assumptions": needed,
        "range": {key: [_finite(min(found)), _finite(max(found))] for key, found in moved.items()},
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
