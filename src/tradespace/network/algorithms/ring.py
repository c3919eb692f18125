"""Ring: each rank passes shards to its neighbour, on a switch at the full rate of the device."""

from __future__ import annotations

from tradespace.inputs.cluster import Dim
from tradespace.network.algorithms.crossings import CROSSINGS
from tradespace.network.placement import Ranks
from tradespace.num import Num


def time(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds of `volume` bytes (full tensor): (n - 1) (alpha + V/(n B)), twice for an all-reduce.

    Source: Patarasu and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".

    >>> dim = Dim(name="nvlink", kind="switch", size=8.0, bandwidth=1e11, latency=1e-6)
    >>> time("all_gather", dim, Ranks.of(4.0, 1e-11), 0.0)
    3e-06
    """
    return CROSSINGS[collective] * ((ranks.count - 1.0) * dim.latency + volume * ranks.wire)
