"""Sums and copies in the switch (NVLink SHARP, SHARP in InfiniBand)."""

from __future__ import annotations

from tradespace.inputs.cluster import Dim
from tradespace.network.placement import Ranks
from tradespace.num import Num


def time(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds of `volume` bytes: all-reduce 2 alpha + V (n + 1)/(n B); all-gather by multicast alpha + V (n - 1)/(n B).

    Each rank sends its whole tensor up to be summed, and its summed shard of V/n up again to be copied to all. Bus
    bandwidths of 5 to 8 H200 and 6 to 8 B200 over 2 (n - 1)/(n + 1) are constant within 2 % (rows of
    stas00/ml-engineering, network/README.md in catalog/published/collectives.csv).
    Source: Klenk et al. 2020, "An in-network architecture for accelerating shared-memory multiprocessor collectives".

    >>> dim = Dim(name="nvlink", kind="switch", size=8.0, bandwidth=1e11, latency=1e-6, in_network=True)
    >>> round(time("all_reduce", dim, Ranks.of(4.0, 1e-11), 1e9), 9)
    0.012502
    """
    if collective == "all_gather":
        return dim.latency + volume * ranks.wire
    return 2.0 * dim.latency + volume * (ranks.byte_time * ((ranks.count + 1.0) / ranks.count))
