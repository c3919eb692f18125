"""Quantities at the edge: a number in SI base units, or a string such as "900 GB/s", becomes a checked float.

Prefixes and units are a table: k M G T P E are powers of 1000, Ki Mi Gi Ti Pi powers of 1024 (IEC 80000-13); B is a
byte and b a bit. A test compares the table with pint.
"""

from __future__ import annotations

import math
import re
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.inputs.fields import Quantity

Factor = tuple[float, float, str]
"""Multiply by the first, divide by the second, to get the third: an SI base unit word."""

_LARGE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_SMALL = {"m": 1e3, "u": 1e6, "µ": 1e6, "μ": 1e6, "n": 1e9}
_COUNTED: dict[str, Factor] = {
    "B": (1.0, 1.0, "byte"),
    "byte": (1.0, 1.0, "byte"),
    "bytes": (1.0, 1.0, "byte"),
    "b": (1.0, 8.0, "byte"),
    "bit": (1.0, 8.0, "byte"),
    "Bps": (1.0, 1.0, "byte/s"),
    "bps": (1.0, 8.0, "byte/s"),
    "FLOP": (1.0, 1.0, "FLOP"),
    "FLOPs": (1.0, 1.0, "FLOP"),
    "FLOPS": (1.0, 1.0, "FLOP/s"),
    "W": (1.0, 1.0, "W"),
    "J": (1.0, 1.0, "J"),
    "Wh": (3600.0, 1.0, "J"),
    "USD": (1.0, 1.0, "USD"),
    "g": (1.0, 1e3, "kg"),
    "t": (1e3, 1.0, "kg"),
}
_PLAIN: dict[str, Factor] = {
    "": (1.0, 1.0, ""),
    "%": (1.0, 100.0, ""),
    "s": (1.0, 1.0, "s"),
    "min": (60.0, 1.0, "s"),
    "h": (3600.0, 1.0, "s"),
    "d": (86400.0, 1.0, "s"),
}
_EXAMPLES = {
    "": "a plain number",
    "byte": "a size such as '80 GB'",
    "byte/s": "a bandwidth such as '450 GB/s'",
    "FLOP": "an amount of work such as '3e24 FLOP'",
    "FLOP/s": "a rate such as '312 TFLOP/s'",
    "s": "a time such as '25 us'",
    "W": "a power such as '700 W'",
    "USD": "an amount such as '30 kUSD'",
    "USD/s": "a rent such as '2.5 USD/h'",
    "USD/J": "a price such as '0.08 USD/kWh'",
    "kg/J": "an intensity such as '0.4 kg/kWh'",
    "s/byte^0.5": "a coefficient such as '14.9 us/MB^0.5'",
}
_USUAL = ("GB", "GiB", "TB", "Gb", "GFLOP", "TFLOP", "TFLOPS", "s", "ms", "us", "ns", "W", "kW")
_NUMBER = re.compile(r"\s*([-+]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?)\s*(\S.*?)?\s*")


def _table() -> dict[str, Factor]:
    units = dict(_PLAIN)
    for name, (up, down, base) in _COUNTED.items():
        for prefix, scale in (*_LARGE.items(), *_BINARY.items()):
            units[prefix + name] = (up * scale, down, base)
    units.update({prefix + "s": (1.0, scale, "s") for prefix, scale in _SMALL.items()})
    units.update({"mW": (1.0, 1e3, "W")})
    return units


_UNITS = _table()


def _simple(text: str, where: str) -> Factor:
    """The factor of a unit without a fraction bar, perhaps to the power 0.5."""
    name, root, _ = text.partition("^0.5")
    if name not in _UNITS:
        same = [unit for unit in _UNITS if unit.lower() == name.lower() and unit]
        hint = f"; did you mean '{same[0]}'?" if same else nearest(name, _USUAL)
        raise InputError(f"{where}: unknown unit '{name}'{hint}")
    up, down, base = _UNITS[name]
    return (math.sqrt(up), math.sqrt(down), base + "^0.5") if root else (up, down, base)


def _factor(text: str, where: str) -> Factor:
    """The factor of a unit such as `GB`, `GB/s` or `us/MB^0.5`."""
    top, bar, bottom = text.partition("/")
    up, down, base = _simple(top.strip(), where)
    if not bar:
        return up, down, base
    up2, down2, base2 = _simple(bottom.strip(), where)
    return up * down2, down * up2, f"{base}/{base2}"


def parse(value: Any, unit: str, where: str) -> float:
    """A number in SI base units, or a string with a unit, as a float in `unit`; InputError names `where`.

    >>> parse("900 GB/s", "byte/s", "network.nvlink.bandwidth")
    900000000000.0
    >>> parse("400 Gb/s", "byte/s", "network.fabric.bandwidth")
    50000000000.0
    >>> parse("25 us", "s", "network.fabric.latency")
    2.5e-05
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"{where}: a whole number of {len(str(value))} digits is too large") from None
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InputError(f"{where}: {value!r} is not {_EXAMPLES[unit]}")
    number = float(match[1])
    if match[2] is None:
        return number
    up, down, base = _factor(match[2], where)
    if base != unit:
        raise InputError(f"{where}: '{value}' is in {base or 'no unit'}, but {_EXAMPLES[unit]} is needed")
    return number * up / down


def in_si(text: str, where: str) -> float:
    """A number with any known unit, in SI base units: for expressions, whose other side has the unit.

    >>> in_si("70 GB", "constraints.room")
    70000000000.0
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InputError(f"{where}: '{text}' is not a number with a unit, such as '80 GB'")
    up, down, _ = _factor(match[2] or "", where)
    return float(match[1]) * up / down


def number(value: Any, quantity: Quantity, where: str) -> float:
    """`parse` and the field's own checks: finite, whole if it counts, within bounds.

    >>> number("80 GB", Quantity("byte", "capacity", 1e6, 1e30, False), "device.memory.hbm.capacity")
    80000000000.0
    """
    if isinstance(value, bool) and quantity.whole and (quantity.low, quantity.high) == (0.0, 1.0):
        return float(value)
    found = parse(value, quantity.unit, where)
    if not math.isfinite(found):
        raise InputError(f"{where}: {value!r} is not a finite number")
    if quantity.whole and found != math.floor(found):
        raise InputError(f"{where}: {value!r} is not a whole number")
    unit = f" {quantity.unit}" if quantity.unit else ""
    if found < quantity.low:
        raise InputError(f"{where}: {value!r} is below the least possible value, {quantity.low:g}{unit}")
    if found > quantity.high:
        raise InputError(f"{where}: {value!r} is above the largest possible value, {quantity.high:g}{unit}")
    return found
