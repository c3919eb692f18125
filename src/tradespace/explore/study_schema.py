"""JSON Schema of a study file, as `tradespace schema study` prints it."""

from __future__ import annotations

from typing import Any

from tradespace.explore.columns import COLUMNS
from tradespace.explore.expression import FUNCTIONS
from tradespace.explore.values import LONGEST_AXIS

_VALUE = {"type": ["number", "string", "boolean"]}
_NUMBER = {"type": ["number", "string"]}
_NAMES = {"type": "array", "items": {"type": "string"}}


def study_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a study file.

    >>> sorted(study_schema()["properties"])[:4]
    ['axes', 'cluster', 'constraints', 'derived']
    """
    key = {"type": "string", "description": "a catalog key or a file; a list of them is an axis"}
    batch = {"type": "number", "minimum": 1, "description": "sequences per step over all devices"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Study",
        "description": "A space of candidates and what to keep of it. Paths are those of --set.",
        "type": "object",
        "properties": {
            "model": key,
            "cluster": key,
            "seq": {"type": "number", "minimum": 1, "description": "tokens of one sequence"},
            "devices": {"type": "number", "minimum": 1, "description": "devices of the job"},
            "global_batch": batch,
            "strategy": {"type": ["string", "object"], "description": "fixed keys of the strategy, as text or table"},
            "axes": _table("field -> its values", _axis()),
            "linked": _table("axis -> columns of equal length that move together; label names the rows", _rows()),
            "derived": _expressions("field -> expression of other fields"),
            "constraints": _expressions("name -> condition that a candidate must meet"),
            "objectives": _expressions("name -> number to show or to look for; smaller is better"),
            "keep": _keep(),
        },
        "additionalProperties": False,
    }


def _table(text: str, entry: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": text, "additionalProperties": entry}


def _expressions(text: str) -> dict[str, Any]:
    known = f"names: fields, {', '.join(COLUMNS)}; functions: {', '.join(FUNCTIONS)}"
    return _table(f"{text} ({known})", {"type": "string"})


def _axis() -> dict[str, Any]:
    """A list, a range, or a table of fields (a dotted key without quotes)."""
    ways = {"steps": "how many values, evenly spaced", "step": "their distance", "factor": "their ratio"}
    ends = {"from": _NUMBER, "to": _NUMBER, **{way: {**_NUMBER, "description": text} for way, text in ways.items()}}
    span = {
        "type": "object",
        "properties": ends,
        "required": ["from", "to"],
        "oneOf": [{"required": [way]} for way in ways],
        "additionalProperties": False,
    }
    values = {"type": "array", "items": _VALUE, "minItems": 1, "maxItems": LONGEST_AXIS}
    dotted = {"type": "object", "description": "a dotted key without quotes", "not": {"required": ["from"]}}
    return {"anyOf": [values, span, dotted]}


def _rows() -> dict[str, Any]:
    values = {"type": "array", "items": _VALUE, "minItems": 1, "maxItems": LONGEST_AXIS}
    return {"type": "object", "properties": {"label": _NAMES}, "additionalProperties": values}


def _keep() -> dict[str, Any]:
    """What to keep of the space."""
    every = "all: every candidate is a row of the result; best: the best one of each cell"
    return {
        "type": "object",
        "properties": {
            "rows": {"enum": ["all", "best"], "description": every},
            "best_per": {**_NAMES, "description": "axes whose combinations are the cells; default: all of the cluster"},
            "by": {"type": "string", "description": "what is best", "default": "step_time_s"},
            "top": {"type": "integer", "minimum": 0, "description": "how many of the best of all", "default": 10},
            "pareto": {**_NAMES, "description": "two or more names that span a Pareto front"},
            "histograms": {**_NAMES, "description": "names of numbers whose distribution is counted"},
        },
        "additionalProperties": False,
    }
