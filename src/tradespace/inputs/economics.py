"""What devices and sites cost: rent, price, power, electricity, failures; every number from a row of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from tradespace.inputs.fields import count, quantities, quantity
from tradespace.inputs.files import catalog_entry, entries
from tradespace.inputs.units import number
from tradespace.num import Num

COMMON = "common"


@dataclass(frozen=True, kw_only=True, eq=False)
class Economics:
    """Money, power and failures of one device and of the site that it stands in; 0 where not known."""

    rent: Num = quantity("USD/s", "renting one device, its server and network included; 0 = owned", default=0.0)
    capital: Num = quantity("USD", "buying one device with its share of the server", default=0.0)
    life: Num = quantity("s", "time over which an owned cluster is written off", default=157.68e6, low=1.0)
    power: Num = quantity(
        "W", "rated power of one device with its share of the server; 0 = chip's power x server", default=0.0
    )
    server: Num = quantity("", "rated power of a server over that of its chips", default=1.0)
    load: Num = quantity("", "average power in training over rated power", default=1.0, high=1.0)
    pue: Num = quantity("", "power of the whole site over that of its computers", default=1.0, low=1.0, high=10.0)
    electricity: Num = quantity("USD/J", "price of electricity", default=0.0)
    carbon: Num = quantity("kg/J", "CO2 equivalent of electricity", default=0.0)
    switch_port: Num = quantity("USD", "one port of a network switch", default=0.0)
    switch_link: Num = quantity("USD", "one cable with its transceivers", default=0.0)
    switch_radix: Num = count("ports of a switch", default=64.0, low=2.0)
    port_rate: Num = quantity("byte/s", "bandwidth of a port per direction", default=50e9, low=1e6)
    rails: Num = count("separate networks among the devices of a node", default=1.0)
    mtbf: Num = quantity("s", "mean time between failures of one device that stop the job; 0 = never", default=0.0)
    checkpoint_bandwidth: Num = quantity("byte/s", "checkpoint bytes one device writes per second", default=0.0)
    restart: Num = quantity("s", "from a failure to the first new step", default=0.0)
    spares: Num = quantity("", "spare devices over devices of the job", default=0.0, high=10.0)


@cache
def rows(device: str) -> Mapping[str, list[dict[str, Any]]]:
    """The catalog's rows by field of `Economics`: those of the device, the common ones for what it does not state.

    >>> rows("h100-sxm")["pue"][0]["confidence"]
    'published'
    """
    own = catalog_entry("economics", device) if device in entries("economics") else {}
    return {**catalog_entry("economics", COMMON), **own}


@cache
def chosen(device: str) -> Mapping[str, dict[str, Any]]:
    """The default row of each field, where there is one."""
    return {name: row for name, found in rows(device).items() for row in found if row.get("default")}


@cache
def values(device: str) -> Mapping[str, float]:
    """The default value of each field in SI base units.

    >>> round(values("h100-sxm")["rent"] * 3600, 2)
    6.88
    """
    known = quantities(Economics)
    return {
        name: number(row["value"], known[name], f"economics/{device}.{name}") for name, row in chosen(device).items()
    }


def economics(device: str) -> Economics:
    """The default economics of a device by catalog key; of an unknown device only what holds for all.

    >>> economics("dojo-tile").rent
    0.0
    """
    return Economics(**values(device))


def basis(device: str, found: Economics) -> dict[str, str]:
    """Where each number comes from: the catalog row, or "given" where it differs from the catalog's.

    >>> basis("h100-sxm", economics("h100-sxm"))["rent"][:24]
    '6.88 USD/h, AWS us-east-'
    """
    known, default = chosen(device), values(device)
    texts = {}
    for item in fields(Economics):
        value = getattr(found, item.name)
        if item.name in known and isinstance(value, float) and value == default[item.name]:
            texts[item.name] = _text(known[item.name]) + _range(device, item.name)
        elif not isinstance(value, float) or value != item.default:
            texts[item.name] = "given"
    return texts


def _text(row: Mapping[str, Any]) -> str:
    """One row as words: value, who and when, source, confidence."""
    who = [str(row[name]) for name in ("provider", "system", "terms", "date") if row.get(name)]
    return ", ".join([str(row["value"]), *who]) + f" ({row['confidence']}: {row['source']})"


def _range(device: str, name: str) -> str:
    """For a rent: what other providers ask on the same terms."""
    if name != "rent":
        return ""
    picked = chosen(device)[name]
    others = [row for row in rows(device)[name] if row["terms"] == picked["terms"] and row.get("notes") != "history"]
    prices = sorted(float(str(row["value"]).split()[0]) for row in others)
    return f"; {picked['terms']} elsewhere {prices[0]:g} to {prices[-1]:g}" if len(prices) > 1 else ""
