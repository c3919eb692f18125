"""Double binary tree: each tree carries half of the tensor, pipelined up and down."""

from __future__ import annotations

from tradespace.inputs.cluster import Dim
from tradespace.network.algorithms.crossings import CROSSINGS
from tradespace.network.placement import Ranks
from tradespace.num import Num, log2


def time(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds of an all-reduce of `volume` bytes: 2 log2(n) alpha + 2 V/B.

    Source: Sanders, Speck and Traeff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan".

    >>> dim = Dim(name="fabric", kind="switch", size=0.0, bandwidth=1e11, latency=1e-6)
    >>> time("all_reduce", dim, Ranks.of(8.0, 1e-11), 1e9)
    0.020006
    """
    return CROSSINGS[collective] * (log2(ranks.count) * dim.latency + volume * ranks.byte_time)
