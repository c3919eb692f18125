"""A model file that states only what differs from another model: `base` and a few fields (adapters, a depth, ...)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.inputs.build import field_value, hints
from tradespace.inputs.model import FLAT, Model


def on_base(base: Model, table: Mapping[str, Any], where: str) -> Model:
    """`base` with the fields that `table` states.

    >>> from tradespace.inputs.load import model
    >>> lora = on_base(model("llama-3.1-8b"), {"frozen": 1, "adapter_rank": 16}, "lora.toml")
    >>> lora.adapter_rank, lora.layers
    (16.0, 32.0)
    """
    known = {item.name: item for item in fields(Model)}
    for key in table:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'{nearest(str(key), known)}")
        if base.kinds and key in FLAT and not {"kinds", "pattern"} <= set(table):
            raise InputError(f"{where}: {base.name} has layers of its own sizes; {key} alone does not change them")
    types = hints(Model)
    changes = {key: field_value(known[key], types[key], value, f"{where}.{key}") for key, value in table.items()}
    return replace(base, **changes)
