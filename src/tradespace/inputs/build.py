"""From a table (TOML, JSON) to a frozen dataclass, and its JSON Schema: both read the fields' own metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from tradespace.errors import InputError, nearest
from tradespace.inputs.fields import Quantity
from tradespace.inputs.layers import PARTS, Part
from tradespace.inputs.units import number

T = TypeVar("T")

BY_KEY = ("Device", "Profile", "Precision", "Optimizer")
"""Classes whose place in a file may hold a catalog key instead of a table."""
SETS_BY_KEY = ("CollectiveCurve",)
"""Classes of which a whole mapping may be named by a catalog key."""


@cache
def hints(cls: type) -> dict[str, Any]:
    """The types of a dataclass's fields, resolved once."""
    return get_type_hints(cls)


def build(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """An instance of the dataclass `cls` from a table; numbers become floats in SI base units.

    Unknown keys, missing ones, wrong types, units and bounds are each one InputError that starts with `where`.

    >>> from tradespace.inputs.cluster import Dim
    >>> build(Dim, {"name": "fabric", "kind": "switch", "size": 0, "bandwidth": "400 Gb/s"}, "network.fabric").bandwidth
    50000000000.0
    """
    if not isinstance(table, Mapping):
        raise InputError(f"{where}: a table of fields is needed, not {table!r}")
    assert is_dataclass(cls)
    known: dict[str, Field[Any]] = {item.name: item for item in fields(cls)}
    for key in table:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'{nearest(str(key), known)}")
    missing = [name for name, item in known.items() if name not in table and not _optional(item)]
    if missing:
        raise InputError(f"{where}: missing {', '.join(missing)}")
    types = hints(cls)
    values = {key: field_value(known[key], types[key], value, f"{where}.{key}") for key, value in table.items()}
    return cast(T, cls(**values))


def _optional(item: Field[Any]) -> bool:
    return item.default is not MISSING or item.default_factory is not MISSING


def field_value(item: Field[Any], kind: Any, value: Any, where: str) -> Any:
    """The checked value of one field of type `kind`."""
    if "quantity" in item.metadata:
        return number(value, item.metadata["quantity"], where)
    if "series" in item.metadata:
        return tuple(number(v, item.metadata["series"], f"{where}[{i}]") for i, v in enumerate(_list(value, where)))
    return _typed(kind, value, where)


def _typed(kind: Any, value: Any, where: str) -> Any:
    """A value without a unit: text, switch, table, list or mapping of them."""
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        return tuple(_typed(inner, v, f"{where}[{_label(v, i)}]") for i, v in enumerate(_list(value, where)))
    if get_origin(kind) is not None:
        if not isinstance(value, Mapping):
            raise InputError(f"{where}: a table of named entries is needed, not {value!r}")
        inner = get_args(kind)[1]
        return {str(key): _typed(inner, entry, f"{where}.{key}") for key, entry in value.items()}
    if is_dataclass(kind):
        if isinstance(value, cast(type, kind)):
            return value
        return _part(value, where) if kind is Part else build(cast(type, kind), value, where)
    if not isinstance(value, kind):
        word = {str: "text", bool: "true or false"}[kind]
        raise InputError(f"{where}: {word} is needed, not {value!r}")
    return value


def _part(value: Any, where: str) -> Any:
    """A part of a layer; its key `part` says which kind."""
    if not isinstance(value, Mapping) or not isinstance(value.get("part"), str):
        raise InputError(f"{where}: a table with part = one of {', '.join(PARTS)} is needed, not {value!r:.60}")
    if value["part"] not in PARTS:
        raise InputError(f"{where}.part: unknown part '{value['part'][:60]}'{nearest(value['part'][:60], PARTS)}")
    return build(PARTS[value["part"]], {key: entry for key, entry in value.items() if key != "part"}, where)


def _list(value: Any, where: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise InputError(f"{where}: a list is needed, not {value!r}")
    return value


def _label(value: Any, index: int) -> str:
    """The name of a list entry where it has one, for the error's place."""
    return str(value["name"]) if isinstance(value, Mapping) and "name" in value else str(index)


def schema(cls: type) -> dict[str, Any]:
    """JSON Schema (2020-12) of the file form of an input dataclass, with units and meanings.

    >>> from tradespace.inputs.cluster import Dim
    >>> schema(Dim)["properties"]["bandwidth"]["x-unit"]
    'byte/s'
    """
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_object(cls)}


def _object(cls: type) -> dict[str, Any]:
    types = hints(cls)
    items: list[Field[Any]] = list(fields(cast(Any, cls)))
    return {
        "title": cls.__name__,
        "description": (cls.__doc__ or "").strip(),
        "type": "object",
        "properties": {item.name: _property(item, types[item.name]) for item in items},
        "required": [item.name for item in items if not _optional(item)],
        "additionalProperties": False,
    }


def _property(item: Field[Any], kind: Any) -> dict[str, Any]:
    if "quantity" in item.metadata:
        entry = _number(item.metadata["quantity"])
    elif "series" in item.metadata:
        entry = {"type": "array", "items": _number(item.metadata["series"])}
    else:
        entry = _type(kind)
    if item.default is not MISSING:
        entry["default"] = list(item.default) if isinstance(item.default, tuple) else item.default
    return entry


def _number(quantity: Quantity) -> dict[str, Any]:
    bare: dict[str, Any] = {
        "type": "integer" if quantity.whole else "number",
        "minimum": quantity.low,
        "maximum": quantity.high,
    }
    if not quantity.unit:
        return {"description": quantity.doc, **bare}
    text = {"type": "string", "description": f"a number with a unit of {quantity.unit}"}
    return {"description": f"{quantity.doc} [{quantity.unit}]", "x-unit": quantity.unit, "anyOf": [bare, text]}


def _type(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _type(get_args(kind)[0])}
    if get_origin(kind) is not None:
        inner = get_args(kind)[1]
        return _or_key({"type": "object", "additionalProperties": _type(inner)}, inner.__name__ in SETS_BY_KEY)
    if kind is Part:
        return {"anyOf": [_with_word(word, part) for word, part in PARTS.items()]}
    if is_dataclass(kind):
        return _or_key(_object(cast(type, kind)), cast(type, kind).__name__ in BY_KEY)
    return {"type": {str: "string", bool: "boolean"}[kind]}


def _with_word(word: str, part: type) -> dict[str, Any]:
    """The schema of one kind of part with the word that names it."""
    found = _object(part)
    found["properties"] = {"part": {"const": word}, **found["properties"]}
    found["required"] = ["part", *found["required"]]
    return found


def _or_key(entry: dict[str, Any], by_key: bool) -> dict[str, Any]:
    return {"anyOf": [{"type": "string", "description": "a catalog key"}, entry]} if by_key else entry
