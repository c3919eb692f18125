"""JSON Schemas of the input files, as `tradespace schema KIND` prints them."""

from __future__ import annotations

from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.inputs.build import schema
from tradespace.inputs.cluster import Cluster, Device
from tradespace.inputs.model import Model
from tradespace.inputs.strategies import MODULES, SCHEDULES, SHORT
from tradespace.inputs.strategy import RECOMPUTE_CODES, Strategy

CLASSES: dict[str, type] = {"model": Model, "device": Device, "cluster": Cluster, "strategy": Strategy}


def file_schema(kind: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of a model, device, cluster or strategy file, with units and meanings.

    >>> file_schema("strategy")["required"]
    ['global_batch']
    """
    if kind not in CLASSES:
        raise InputError(f"schema: no kind of file '{kind}'{nearest(kind, CLASSES)}")
    found = schema(CLASSES[kind])
    if kind == "model":
        text = "another model (catalog key or path) whose fields count where this file states none"
        found["properties"] = {"base": {"type": "string", "description": text}, **found["properties"]}
        found["anyOf"] = [{"required": ["base"]}, {"required": [n for n in found.pop("required") if n != "name"]}]
        return found
    found["required"] = [name for name in found["required"] if name not in ("key", "name")]
    return _notation(found) if kind == "strategy" else found


def _notation(found: dict[str, Any]) -> dict[str, Any]:
    """A strategy file in the notation: words for codes, short names, keys that are checked or not modelled yet."""
    properties: dict[str, Any] = found["properties"]
    degree = {"type": "integer", "minimum": 1}
    words = [{"enum": list(RECOMPUTE_CODES)}, {"type": "string", "description": f"{', '.join(MODULES)} joined by +"}]
    properties["recompute"] = {"anyOf": [*words, properties["recompute"]], "default": "none"}
    properties["schedule"] = {"enum": list(SCHEDULES), "default": "1f1b"}
    properties["overlap"] = {"anyOf": [{"enum": ["all", "none"]}, properties["overlap"]]}
    properties["order"] = {"type": "string", "default": "tp-cp-ep-dp-pp", "description": "groups, inner to outer"}
    properties["data"] = {**degree, "description": "data-parallel degree; derived, checked if given"}
    properties["expert_tensor"] = {**degree, "description": "tensor degree inside an expert; default: tensor"}
    properties["offload"] = {"const": "none"}
    properties.update({short: properties[long] for short, long in SHORT.items()})
    found["required"] = ["global_batch"]
    return found
