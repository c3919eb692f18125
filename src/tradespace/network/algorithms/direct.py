"""Direct: every rank exchanges with every other one at once."""

from __future__ import annotations

from tradespace.inputs.cluster import Dim
from tradespace.network.algorithms.crossings import CROSSINGS
from tradespace.network.placement import Ranks
from tradespace.num import Num, maximum, where


def time(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds of `volume` bytes: alpha + V (n - 1)/(n B), twice for an all-reduce.

    Where devices are fully connected a group of n of N uses n - 1 of the N - 1 links, so B is (n - 1)/(N - 1) of
    the device's. Source: Chan, Heimlich, Purkayastha and van de Geijn 2007, section 5 (bucket and direct forms).

    >>> dim = Dim(name="xgmi", kind="fully_connected", size=8.0, bandwidth=7e10)
    >>> round(time("all_gather", dim, Ranks.of(2.0, 1 / 7e10), 1e10), 9)
    0.5
    """
    wire = ranks.wire
    if dim.kind == "fully_connected":
        links = maximum(ranks.count - 1.0, 1.0)
        wire = wire * (where(dim.size > 0.0, dim.size - 1.0, links) / links)
    return CROSSINGS[collective] * (dim.latency + volume * wire)
