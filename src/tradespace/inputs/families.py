"""Models that are no Transformers: layer tables and recommendation models, from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tradespace.errors import InputError
from tradespace.inputs import dlrm, layer_table
from tradespace.inputs.model import Model

OTHER = ("table", "dlrm")
"""Families whose sizes are in the field of the same name; the sizes of a Transformer do not count there."""
UNUSED = {"layers": 1, "hidden": 1, "heads": 1, "kv_heads": 1, "head_dim": 1, "ffn": 1, "vocab": 0, "seq": 1}


def completed(table: dict[str, Any], where: str, file: Path | None) -> dict[str, Any]:
    """The table of a model file, with rows read from a CSV file beside it and unused sizes filled in."""
    family = table.get("family", "dense")
    for name in OTHER:
        if name in table and family != name:
            raise InputError(f'{where}: has a [{name}] but family = "{family}"; write family = "{name}"')
    if family not in OTHER:
        return table
    part = table.get(family)
    if not isinstance(part, dict):
        raise InputError(f'{where}: family = "{family}" needs a table [{family}]')
    if family == "table":
        folder = file.parent if file is not None else Path()
        table = {**table, "table": layer_table.table_of(part, where, folder)}
    return {**UNUSED, **table}


def from_csv(file: Path) -> dict[str, Any]:
    """A model table from a CSV file of rows."""
    rows = layer_table.read_csv(file)
    return {**UNUSED, "name": file.stem, "family": "table", "table": {"rows": rows}, "source": file.name}


def check(model: Model, where: str) -> None:
    """What the types alone do not say."""
    if model.family == "table":
        layer_table.check(model.table, f"{where}.table")
    elif model.family == "dlrm":
        dlrm.check(model.dlrm, f"{where}.dlrm")
