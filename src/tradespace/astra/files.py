"""Reading small configuration files: text with a size limit, JSON, and the flat YAML that ASTRA-sim's examples use."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from tradespace.errors import InputError

MAX_CONFIG_BYTES = 64 << 20
MAX_LINE = 1 << 16


def read_text(path: str | Path) -> str:
    """Text of a configuration file of at most 64 MiB."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise InputError(f"{path}: larger than 64 MiB, which no configuration file is")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None


def json_object(text: str, where: str | Path) -> dict[str, Any]:
    """The JSON object in `text`.

    >>> json_object('{"a": 1}', "x.json")
    {'a': 1}
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON ({str(error)[:120]})") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: the document must be a JSON object, not {type(value).__name__}")
    return value


def flat_yaml(text: str, where: str | Path) -> dict[str, Any]:
    """The YAML subset of network files: `key: value`, `key: [a, b]`, or `key:` with `- a` lines below.

    Everything else (nested maps, anchors, several documents) is refused by line.

    >>> flat_yaml("topology: [ Ring, Switch ]  # dim0 first\\nlatency:\\n  - 5\\n  - 1e3\\n", "x.yml")
    {'topology': ['Ring', 'Switch'], 'latency': [5, 1000.0]}
    """
    result: dict[str, Any] = {}
    key, block, open_list = "", False, ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#", 1)[0].rstrip()
        if not line.strip() or line.strip() == "---":
            continue
        if block and line.lstrip().startswith("- "):
            result[key] = result[key] or []
            result[key].append(_scalar(line.lstrip()[2:], where, number))
            continue
        if open_list:  # a flow list that goes on over several lines
            value = f"{open_list} {line.strip()}"
        else:
            key, colon, value = line.partition(":")
            key, value = key.strip().strip("'\""), value.strip()
            if not colon or line[0].isspace() or not key or key in result:
                raise InputError(f"{where}, line {number}: expected one new `key: value`, got {raw[:60]!r}")
        open_list = value if value.startswith("[") and not value.endswith("]") else ""
        if len(open_list) > MAX_LINE:
            raise InputError(f"{where}, line {number}: the list of {key[:40]!r} does not end")
        block = not value
        result[key] = None if block or open_list else _value(value, where, number)
    if open_list:
        raise InputError(f"{where}: the list of {key[:40]!r} is not closed")
    return result


def _value(text: str, where: str | Path, line: int) -> Any:
    if not text.startswith("["):
        return _scalar(text, where, line)
    inside = text[1:-1].strip().removesuffix(",")
    return [_scalar(item, where, line) for item in inside.split(",")] if inside else []


def _scalar(text: str, where: str | Path, line: int) -> Any:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if not text or text[0] in "[]{}&*!|>%@`'\"" or ": " in text:
        raise InputError(f"{where}, line {line}: {text[:60]!r} is not a plain number or word, all that is read here")
    for kind in (int, float):
        try:
            return kind(text.replace("_", "x"))
        except ValueError:
            continue
    return text


def number(
    values: dict[str, Any], key: str, where: str | Path, low: float, high: float, default: float | None = None
) -> float:
    """A number of `values` between `low` and `high`; numbers written as strings are read too.

    >>> number({"latency": "5"}, "latency", "x.json", 0, 10)
    5.0
    """
    value = values.get(key, default)
    if value is None:
        raise InputError(f"{where}: {key} is missing")
    return checked(value, f"{where}: {key}", low, high)


def checked(value: Any, what: str, low: float, high: float) -> float:
    """`value` as a finite float between `low` and `high`."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} = {str(value)[:40]!r}, but it must be a number") from None
    if not math.isfinite(result) or not low <= result <= high:
        raise InputError(f"{what} = {str(value)[:40]}, but it must be between {low:g} and {high:g}")
    return result


def whole(values: dict[str, Any], key: str, where: str | Path, low: int, high: int, default: int | None = None) -> int:
    """As `number`, for whole numbers."""
    result = number(values, key, where, low, high, default)
    if result != int(result):
        raise InputError(f"{where}: {key} = {result}, but it must be a whole number")
    return int(result)
