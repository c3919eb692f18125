"""Fields of the input dataclasses: unit, bounds and meaning beside each, so that one definition serves all edges."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any


@dataclass(frozen=True)
class Quantity:
    """What the edge needs to know about a field."""

    unit: str
    doc: str
    low: float
    high: float
    whole: bool


def quantity(
    unit: str, doc: str, *, default: Any = MISSING, low: float = 0.0, high: float = 1e30, whole: bool = False
) -> Any:
    """A numeric field: `unit` is an SI base unit word ("byte", "FLOP/s", "" for a pure number), bounds inclusive."""
    return field(default=default, metadata={"quantity": Quantity(unit, doc, low, high, whole)})


def count(doc: str, *, default: Any = MISSING, low: float = 1.0, high: float = 1e9) -> Any:
    """A whole-number field."""
    return quantity("", doc, default=default, low=low, high=high, whole=True)


def switch(doc: str, *, default: float = 0.0) -> Any:
    """A field that is 0 or 1."""
    return quantity("", doc, default=default, low=0.0, high=1.0, whole=True)


def series(unit: str, doc: str, *, default: Any = MISSING, low: float = 0.0, high: float = 1e30) -> Any:
    """A tuple of numbers with one unit and one pair of bounds."""
    return field(default=default, metadata={"series": Quantity(unit, doc, low, high, False)})


def quantities(cls: type) -> dict[str, Quantity]:
    """The numeric fields of an input dataclass by name."""
    assert is_dataclass(cls)
    found: dict[str, Quantity] = {}
    for item in fields(cls):
        entry: Field[Any] = item
        if "quantity" in entry.metadata:
            found[entry.name] = entry.metadata["quantity"]
    return found
