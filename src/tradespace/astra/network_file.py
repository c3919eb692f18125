"""Network files: ASTRA-sim's current YAML, and the JSON of its first version (COMET's era).

Sources: `astra-sim/astra-network-analytical`, the examples of its inputs, and the README and HierarchicalTopology of
its tag tutorial-asplos2022. Bandwidth in GB/s of 2**30 bytes, latency in ns.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tradespace.astra.faults import warn
from tradespace.astra.files import checked, flat_yaml, json_object, number, read_text
from tradespace.errors import InputError, nearest
from tradespace.network.astra import TOPOLOGIES, Dim, MemoryFloor, Network

MAX_NPUS = 1 << 20
BANDWIDTH = (1e-6, 1e9)
LATENCY = (0.0, 1e12)
V2_KEYS = ("topology", "npus_count", "bandwidth", "latency")


def read_network(path: str | Path) -> Network:
    """Network from a file of either version."""
    text = read_text(path)
    if text.lstrip().startswith("{"):
        values = json_object(text, path)
        return _version1(values, path) if "topologies-per-dim" in values else network_of(values, path)
    return network_of(flat_yaml(text, path), path)


def write_network(net: Network) -> str:
    """The YAML of a network.

    >>> print(write_network(Network((Dim("Ring", 4, 50, 500),))), end="")
    topology: [ Ring ]
    npus_count: [ 4 ]
    bandwidth: [ 50 ]
    latency: [ 500 ]
    """
    if net.highest or net.floor or any(dim.fixed for dim in net.dims):
        raise InputError("a version-1 network has costs that the current YAML cannot say")
    columns = zip(*((dim.kind, dim.size, _short(dim.bandwidth), _short(dim.latency)) for dim in net.dims), strict=True)
    return "".join(f"{key}: [ {', '.join(map(str, column))} ]\n" for key, column in zip(V2_KEYS, columns, strict=True))


def _short(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def network_of(values: dict[str, Any], where: str | Path) -> Network:
    """Network from the four lists of the current version, first dim first.

    >>> network_of({"topology": ["Ring"], "npus_count": [4], "bandwidth": [50], "latency": [500]}, "x.yml").size
    4
    """
    columns = [values.get(key) for key in V2_KEYS]
    for key, column in zip(V2_KEYS, columns, strict=True):
        if not isinstance(column, list) or not column:
            raise InputError(f"{where}: {key} must be a list with one entry per dim, e.g. `{key}: [ ... ]`")
        if len(column) != len(columns[0] or []):
            raise InputError(f"{where}: {key} has {len(column)} entries, topology has {len(columns[0] or [])}")
    for key in values:
        if key not in V2_KEYS:
            warn(f"{where}: {key} is not a key of a network file; ASTRA-sim ignores it silently")
    dims = []
    for i, (kind, size, bandwidth, latency) in enumerate(zip(*(c or [] for c in columns), strict=True)):
        at = f"{where}: dim {i}:"
        dims.append(
            Dim(
                _kind(kind, at),
                _size(size, at),
                checked(bandwidth, f"{at} bandwidth", *BANDWIDTH),
                checked(latency, f"{at} latency", *LATENCY),
            )
        )
    return _sized(tuple(dims), where)


def _sized(
    dims: tuple[Dim, ...], where: str | Path, highest: bool = False, floor: MemoryFloor | None = None
) -> Network:
    if len(dims) > 10:
        raise InputError(f"{where}: {len(dims)} dims, but ASTRA-sim has at most 10")
    if math.prod(dim.size for dim in dims) > MAX_NPUS:
        raise InputError(f"{where}: more than 2**20 NPUs are not simulated")
    return Network(dims, highest, floor)


def _kind(name: Any, at: str) -> str:
    if name not in TOPOLOGIES:
        raise InputError(f"{at} topology {str(name)[:40]!r} is not known{nearest(str(name)[:40], TOPOLOGIES)}")
    return str(name)


def _size(value: Any, at: str) -> int:
    size = checked(value, f"{at} npus_count", 2, MAX_NPUS)
    if size != int(size):
        raise InputError(f"{at} npus_count = {size}, but it must be a whole number")
    return int(size)


def _version1(values: dict[str, Any], where: str | Path) -> Network:
    """Hierarchical topology: links of a dim are added up, the highest differing dim pays, memory sets a floor."""
    if values.get("topology-name", "Hierarchical") != "Hierarchical":
        raise InputError(f"{where}: topology-name {values['topology-name']!r} is not known; Hierarchical is")
    names = ("topologies-per-dim", "units-count", "links-count", "link-latency", "link-bandwidth")
    columns = [_column(values, name, where) for name in names]
    count = len(columns[0])
    nic = _column(values, "nic-latency", where, count)
    router = _column(values, "router-latency", where, count)
    if any(len(column) != count for column in [*columns, nic, router]):
        raise InputError(f"{where}: {', '.join(names)}, nic-latency and router-latency need {count} entries each")
    dims = []
    for i, (kind, units, links, latency, bandwidth) in enumerate(zip(*columns, strict=True)):
        at = f"{where}: dim {i}:"
        kind = _kind(kind, at)
        size = _size(units, at)
        fixed = 2 * checked(nic[i], f"{at} nic-latency", *LATENCY)
        fixed += checked(router[i], f"{at} router-latency", *LATENCY) if kind == "Switch" else 0
        rate = checked(bandwidth, f"{at} link-bandwidth", *BANDWIDTH) * _links(kind, size, links, at)
        dims.append(Dim(kind, size, rate, checked(latency, f"{at} link-latency", *LATENCY), fixed))
    floor = None
    if number(values, "hbm-scale", where, 0, 1e6, 0):
        floor = MemoryFloor(
            number(values, "hbm-scale", where, 0, 1e6),
            number(values, "hbm-latency", where, *LATENCY),
            number(values, "hbm-bandwidth", where, *BANDWIDTH),
        )
    return _sized(tuple(dims), where, highest=True, floor=floor)


def _links(kind: str, size: int, links: Any, at: str) -> int:
    count = int(checked(links, f"{at} links-count", 1, MAX_NPUS))
    usable = {"Ring": count // 2 * 2, "FullyConnected": count // (size - 1), "Switch": count}[kind]
    if not usable:
        need = 2 if kind == "Ring" else size - 1
        raise InputError(f"{at} links-count = {count}, but a {kind} of {size} needs at least {need}")
    return usable


def _column(values: dict[str, Any], key: str, where: str | Path, zeros: int = 0) -> list[Any]:
    column = values.get(key, [0] * zeros if zeros else None)
    if not isinstance(column, list) or not column:
        raise InputError(f"{where}: {key} must be a list with one entry per dim")
    return column
