"""Your own nccl-tests logs -> the curve of a network dim: t = a + V f(n) / (B e) + r sqrt(V), a fit per group size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradespace.errors import InputError
from tradespace.inputs.cluster import Dim
from tradespace.network.bus_bandwidth import bus_factor

LARGEST_FILE = 16_000_000
NAMES = {"alltoall": "all_to_all"}
LINE = re.compile(r"^\s*(\d+)\s+\d+\s+\S+\s+\S+\s+-?\d+\s+([0-9.]+)\s+[0-9.]+\s+[0-9.]+")
RANK = re.compile(r"^#\s+Rank\s+\d+")
TEST = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|alltoall)_perf\b")


@dataclass(frozen=True, slots=True)
class Log:
    """What one run of nccl-tests printed: bytes and out-of-place seconds by size, for a collective among `ranks`."""

    collective: str
    ranks: float
    sizes: tuple[float, ...]
    times: tuple[float, ...]


def read_log(path: Path, collective: str | None = None, ranks: float | None = None) -> Log:
    """A log of nccl-tests or rccl-tests; collective and ranks are read from it unless given."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; fit-curve reads what nccl-tests print")
    if path.stat().st_size > LARGEST_FILE:
        raise InputError(f"{path}: {path.stat().st_size / 1e6:.0f} MB is no log of nccl-tests")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = [(float(found[1]), float(found[2]) * 1e-6) for line in lines if (found := LINE.match(line))]
    rows = [(size, time) for size, time in rows if size > 0.0 and time > 0.0]
    if len(rows) < 4:
        raise InputError(
            f"{path}: {len(rows)} lines of sizes and times; at least 4 sizes are needed (-b 64K -e 8G -f 2)"
        )
    named = [NAMES.get(found[1], found[1]) for line in lines if (found := TEST.search(line))]
    kind = collective or (named[0] if named else None)
    if kind is None:
        raise InputError(f"{path}: the log does not name its collective; give --collective")
    counted = float(sum(1 for line in lines if RANK.match(line))) if ranks is None else ranks
    if counted < 2.0:
        raise InputError(f"{path}: {counted:g} ranks found; give --ranks, at least 2")
    sizes, times = zip(*rows, strict=True)
    return Log(kind, counted, sizes, times)


def fit(sizes: Sequence[float], times: Sequence[float]) -> tuple[float, float, float]:
    """(a, seconds per byte, r) with the least squared relative error; none is negative, the second is positive.

    >>> a, s, r = fit([1e5, 1e6, 1e7, 1e8], [1e-5 + v * 4e-12 + 2e-9 * v**0.5 for v in (1e5, 1e6, 1e7, 1e8)])
    >>> round(a * 1e6, 6), round(s * 1e12, 6), round(r * 1e9, 6)
    (10.0, 4.0, 2.0)
    """
    volume, time = np.asarray(sizes, dtype=np.float64), np.asarray(times, dtype=np.float64)
    terms = np.stack([np.ones_like(volume), volume, np.sqrt(volume)], axis=1) / time[:, None]
    best: tuple[float, NDArray[np.float64]] | None = None
    for others in (chosen for count in (2, 1, 0) for chosen in combinations((0, 2), count)):
        columns = sorted((1, *others))
        found = np.linalg.lstsq(terms[:, columns], np.ones_like(time), rcond=None)[0]
        if (found >= 0.0).all() and found[columns.index(1)] > 0.0:
            loss = float(((terms[:, columns] @ found - 1.0) ** 2).sum())
            if best is None or loss < best[0]:
                whole = np.zeros(3)
                whole[columns] = found
                best = loss, whole
    if best is None:
        raise InputError("the times do not grow with the size: no bandwidth can be read from them")
    return float(best[1][0]), float(best[1][1]), float(best[1][2])


def curve(dim: Dim, logs: Sequence[Log]) -> dict[str, Any]:
    """Entries of a `CollectiveCurve` from logs of one collective among different numbers of ranks of one dim."""
    if len({log.collective for log in logs}) > 1:
        raise InputError("the logs are of different collectives: fit one at a time")
    ordered = sorted(logs, key=lambda log: log.ranks)
    if len({log.ranks for log in ordered}) < len(ordered):
        raise InputError("two logs have the same number of ranks: give one log for each group size")
    found: dict[str, Any] = {"sizes": [], "latency": [], "fraction": [], "root": [], "median_error": []}
    for log in ordered:
        latency, slope, root = fit(log.sizes, log.times)
        again = [latency + slope * size + root * size**0.5 for size in log.sizes]
        factor = float(bus_factor(log.collective, log.ranks))
        found["sizes"].append(log.ranks)
        found["latency"].append(latency)
        found["fraction"].append(factor / (slope * float(dim.bandwidth)))
        found["root"].append(root)
        found["median_error"].append(median(abs(a / b - 1.0) for a, b in zip(again, log.times, strict=True)))
    return {"collective": ordered[0].collective, **found}


def as_toml(found: dict[str, Any], sources: Sequence[str]) -> str:
    """The table that goes below the [[network]] dim of a cluster file."""
    errors = ", ".join(f"{100 * error:.1f} %" for error in found["median_error"])
    lines = [
        f"[network.curves.{found['collective']}]",
        f"sizes = [{', '.join(f'{size:g}' for size in found['sizes'])}]",
        f"latency = [{', '.join(f'{latency:.4g}' for latency in found['latency'])}]  # s",
        f"fraction = [{', '.join(f'{fraction:.4g}' for fraction in found['fraction'])}]",
        f"root = [{', '.join(f'{root:.4g}' for root in found['root'])}]  # s per square root of a byte",
        f'source = "fit to nccl-tests: {", ".join(sources)}; median error {errors}"',
        'confidence = "fitted"',
    ]
    return "\n".join(lines)
