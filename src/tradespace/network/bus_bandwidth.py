"""The table that nccl-tests print: time, algorithm bandwidth and bus bandwidth of one collective by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tradespace.inputs.cluster import Cluster, Dim
from tradespace.network.algorithms.crossings import CROSSINGS
from tradespace.network.algorithms.table import chosen
from tradespace.network.collectives import collective_time, exposed_fill
from tradespace.network.placement import Ranks, whole_cluster
from tradespace.num import Num, minimum, norm4

SIZES = tuple(float(8 << k) for k in range(32))
"""8 B to 16 GiB, doubling, as `nccl-tests -b 8 -e 16G -f 2`."""


@dataclass(frozen=True, slots=True)
class BusRow:
    """One line of the table: bytes as nccl-tests count them, seconds, byte/s, the algorithm in each dim."""

    bytes: float
    time_s: float
    algbw: float
    busbw: float
    algorithm: str


def bus_factor(collective: str, ranks: Num) -> Num:
    """Bus bandwidth over algorithm bandwidth: 2(n-1)/n for an all-reduce, (n-1)/n for the others.

    Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.

    >>> bus_factor("all_reduce", 8.0), bus_factor("all_gather", 4.0)
    (1.75, 0.75)
    """
    return CROSSINGS[collective] * ((ranks - 1.0) / ranks)


def host_time(cluster: Cluster) -> Num:
    """Seconds in which one host thread launches a collective on the devices of its node (nccl-tests -g): back to back,
    hardly any collective is shorter.

    >>> from tradespace.inputs import load
    >>> round(host_time(load.cluster("dgx-h100")) * 1e6, 9)
    42.0
    """
    return cluster.launch * minimum(cluster.devices, cluster.network[0].size)


def measured_time(collective: str, cluster: Cluster, volume: Num, host: Num) -> Num:
    """Seconds per collective of all devices of a cluster, run back to back: the host's or the network's, whichever is
    longer, rounded where both are alike as in a step (4-norm)."""
    span = whole_cluster(cluster)
    fill = exposed_fill(cluster, collective)
    return norm4(collective_time(collective, cluster.network, span, volume, fill), host)


def algorithm(collective: str, dim: Dim, ranks: Ranks, volume: float) -> str:
    """The library's algorithm in one dim. Sums in the switch count from the groups on for which a curve has them: those
    beyond the last measured size but one (NCCL uses them from 5 devices up). Measured gathers are rings: NCCL's
    halving and doubling (PAT) runs with one device per node only.

    >>> from tradespace.inputs import load
    >>> nvlink = load.cluster("dgx-h100").network[0]
    >>> [algorithm("all_reduce", nvlink, Ranks.of(n, 2e-12), 1e9) for n in (4.0, 8.0)]
    ['ring', 'in_switch']
    """
    curve = dim.curves.get(collective)
    without = Dim(name=dim.name, kind=dim.kind, size=dim.size, bandwidth=dim.bandwidth, latency=dim.latency)
    if curve is None:
        return chosen(collective, dim, ranks, volume)
    if curve.in_network and dim.in_network and float(ranks.count) > curve.sizes[-2]:
        return "in_switch"
    name = chosen(collective, without, ranks, volume)
    return "ring" if name == "halving_doubling" else name


def nccl_tests(collective: str, cluster: Cluster, host: float, sizes: Sequence[float] = SIZES) -> list[BusRow]:
    """The table for all devices of a cluster; `host`: seconds that the host takes to launch a collective.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100")
    >>> row = nccl_tests("all_reduce", cluster, host_time(cluster), [2.0**33])[0]
    >>> abs(row.busbw / 479e9 - 1.0) < 0.1, row.algorithm  # published: 479 GB/s
    (True, 'in_switch')
    """
    span = whole_cluster(cluster)
    factor = float(bus_factor(collective, cluster.devices))
    rows = []
    for size in sizes:
        time = float(measured_time(collective, cluster, size, host))
        names = []
        inside = size
        for dim, ranks in zip(cluster.network, span, strict=True):
            if not ranks.alone:
                names.append(algorithm(collective, dim, ranks, inside))
                inside = inside if collective == "all_to_all" else inside / float(ranks.count)
        rows.append(BusRow(size, time, size / time, factor * size / time, "+".join(names)))
    return rows
