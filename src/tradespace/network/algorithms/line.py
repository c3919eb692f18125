"""A line of neighbours without the link that closes a ring (one side of a mesh)."""

from __future__ import annotations

from tradespace.inputs.cluster import Dim
from tradespace.network.algorithms.crossings import CROSSINGS, hops_of_ring
from tradespace.network.placement import Ranks
from tradespace.num import Num


def time(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds of `volume` bytes: the end has one link of B/2, so every crossing takes twice a ring's time.

    n - 1 hops; all-to-all: half the ranks send to the other half over the one middle link, twice the ring's time.
    Source: bisection of a line; jax-ml/scaling-book notes the factor 2 for axes without wrap-around.

    >>> dim = Dim(name="tile", kind="mesh", size=4.0, bandwidth=1e11)
    >>> time("all_gather", dim, Ranks.of(4.0, 1e-11), 1e9)
    0.015
    """
    latency = (ranks.count - 1.0) * dim.latency
    if collective == "all_to_all":
        return latency + volume * (2.0 * ranks.byte_time * hops_of_ring(ranks.count))
    return CROSSINGS[collective] * (latency + volume * (2.0 * ranks.wire))
