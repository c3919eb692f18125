"""Published bus bandwidths beside the predicted ones, by system and collective."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import Any

from tradespace.inputs.cluster import Cluster
from tradespace.inputs.fields import Quantity
from tradespace.inputs.files import CATALOG, read
from tradespace.inputs.load import cluster
from tradespace.inputs.units import number
from tradespace.network.bus_bandwidth import bus_factor, host_time, measured_time
from tradespace.network.placement import whole_cluster

ROWS = CATALOG / "published" / "collectives.csv"
SOURCES = CATALOG / "published" / "collectives.toml"
HOST = Quantity("s", "host time of a call", 0.0, 1.0, False)


@dataclass(frozen=True, slots=True)
class Published:
    """One published measurement: `time` in seconds and `busbw` in byte/s of `bytes` among all `devices` of `system`.

    `algorithm` = "ring" where sums in the switch were off; `fitted`: this source gave the system's curve.
    """

    id: str
    source: str
    system: str
    devices: float
    collective: str
    bytes: float
    time: float
    busbw: float
    algorithm: str
    fitted: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A published row and what is predicted for it, in seconds and byte/s."""

    row: Published
    time: float
    busbw: float

    @property
    def error(self) -> float:
        """Predicted over measured bus bandwidth, minus 1."""
        return self.busbw / self.row.busbw - 1.0


@cache
def sources() -> dict[str, Any]:
    """The table of each source: text, how collectives were launched, systems whose curves it gave."""
    return {key: table for key, table in read(SOURCES).items() if isinstance(table, dict)}


@cache
def published() -> tuple[Published, ...]:
    """All packaged rows."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        return tuple(_published(row) for row in csv.DictReader(file))


def _published(row: dict[str, str]) -> Published:
    devices, size = float(row["devices"]), float(row["bytes"])
    factor = float(bus_factor(row["collective"], devices))
    busbw = factor * size / (float(row["time_us"]) * 1e-6) if row["time_us"] else float(row["busbw"]) * 1e9
    fitted = row["cluster"] in sources()[row["source"]]["fitted"]
    return Published(
        id=row["id"],
        source=row["source"],
        system=row["cluster"],
        devices=devices,
        collective=row["collective"],
        bytes=size,
        time=factor * size / busbw,
        busbw=busbw,
        algorithm=row["algorithm"],
        fitted=fitted,
    )


@cache
def _system(key: str, devices: float, in_network: bool) -> Cluster:
    found = cluster(key, devices)
    if in_network:
        return found
    return replace(found, network=tuple(replace(dim, in_network=False) for dim in found.network))


def host_of(source: str, system: Cluster) -> float:
    """Seconds of the host per collective, as a source launched them (collectives.toml)."""
    table = sources()[source]
    if table["launch"] == "one":
        return float(host_time(system))
    return float(number(table.get("host", "0 s"), HOST, f"collectives.{source}.host"))


def compare(row: Published) -> Compared:
    """A published row beside the prediction, launched as its source did."""
    system = _system(row.system, row.devices, row.algorithm != "ring")
    time = float(measured_time(row.collective, system, row.bytes, host_of(row.source, system)))
    return Compared(row, time, row.busbw * row.time / time)


def median_error(rows: Sequence[Compared]) -> float:
    """Median of the absolute errors of the bus bandwidth."""
    return median(abs(row.error) for row in rows)


def groups(rows: Sequence[Compared]) -> list[tuple[tuple[str, str, str], list[Compared]]]:
    """Rows by system, collective and source, the largest median error first."""
    found: dict[tuple[str, str, str], list[Compared]] = {}
    for row in rows:
        found.setdefault((row.row.system, row.row.collective, row.row.source), []).append(row)
    return sorted(found.items(), key=lambda item: -median_error(item[1]))


def _alike(a: Cluster, b: Cluster) -> bool:
    """Whether two systems have the same device and links as far as a job of theirs spans them."""
    spans = [[not ranks.alone for ranks in whole_cluster(system)] for system in (a, b)]
    links = [
        [(dim.kind, dim.bandwidth) for dim, spanned in zip(system.network, span, strict=True) if spanned]
        for system, span in zip((a, b), spans, strict=True)
    ]
    congested = [any(dim.congestion_ranks for dim in system.network) for system in (a, b)]
    return a.device.key == b.device.key and links[0] == links[1] and congested[0] == congested[1]


def beside(system: Cluster, collective: str) -> dict[float, list[Published]]:
    """Published rows for a system's devices, links, number of devices and collective, by size; default algorithm."""
    found: dict[float, list[Published]] = {}
    for row in published():
        same = (row.collective, row.devices, row.algorithm) == (collective, system.devices, "")
        if same and _alike(system, _system(row.system, row.devices, True)):
            found.setdefault(row.bytes, []).append(row)
    return found
