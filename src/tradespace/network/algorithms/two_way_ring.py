"""A physical ring used in both directions: neighbours only, B counts the links to both of them."""

from __future__ import annotations

from tradespace.inputs.cluster import Dim
from tradespace.network.algorithms.crossings import CROSSINGS, hops_of_ring
from tradespace.network.placement import Ranks
from tradespace.num import Num, floor


def time(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds of `volume` bytes: shards go the shorter way, n/2 hops, (n - 1)/n of V at B in each crossing.

    All-to-all: every byte travels n/4 hops on average over two links of B/2, V n/(4 B) (exact: floor(n^2/4)/n).
    Source: shortest-path counting on a ring; jax-ml/scaling-book, "Sharded matrices", gives the same costs.

    >>> dim = Dim(name="ici", kind="ring", size=16.0, bandwidth=1e11, latency=1e-6)
    >>> time("all_gather", dim, Ranks.of(16.0, 1e-11), 0.0)
    8e-06
    """
    latency = floor(ranks.count / 2.0) * dim.latency
    if collective == "all_to_all":
        return latency + volume * (ranks.byte_time * hops_of_ring(ranks.count))
    return CROSSINGS[collective] * (latency + volume * ranks.wire)
