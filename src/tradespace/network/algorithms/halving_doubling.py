"""Recursive halving and doubling (NCCL's PAT gathers and scatters in as many steps)."""

from __future__ import annotations

from tradespace.inputs.cluster import Dim
from tradespace.network.algorithms.crossings import CROSSINGS
from tradespace.network.placement import Ranks
from tradespace.num import Num, log2


def time(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds of `volume` bytes: log2(n) alpha + V (n - 1)/(n B), twice for an all-reduce.

    Between powers of two the number of steps is linear in n. Source: Thakur, Rabenseifner and Gropp 2005,
    "Optimization of collective communication operations in MPICH".

    >>> dim = Dim(name="fabric", kind="switch", size=0.0, bandwidth=1e11, latency=1e-6)
    >>> time("all_gather", dim, Ranks.of(8.0, 1e-11), 0.0)
    3e-06
    """
    return CROSSINGS[collective] * (log2(ranks.count) * dim.latency + volume * ranks.wire)
