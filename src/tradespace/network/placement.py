"""Which network dims a parallel group spans: the one place that decides it.

Groups are laid out in the strategy's order from the inner dim outwards. A group takes gcd(group, rest of the dim)
ranks inside a dim; what remains spans the next one: a group that does not tile a node is priced as its worst member.
A job smaller than a dim lies inside it; one that fills no whole pods takes an even part of each (`network/pods.py`).
A dim's congestion by the number of ranks is part of what a byte costs there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradespace.inputs.cluster import Cluster, Dim
from tradespace.inputs.strategy import Strategy
from tradespace.network.pods import used
from tradespace.num import Num, ceil, gcd, maximum, minimum, take, where, whole


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Ranks of a group inside one network dim, with what collectives need of them."""

    count: Num
    index: int | NDArray[np.intp]  # the count as a row of measured tables
    byte_time: Num  # seconds per byte of one device into the dim
    wire: Num  # seconds per byte of the full tensor that a reduce-scatter takes: (n - 1)/n of byte_time
    alone: bool  # a single candidate's group that does not span this dim
    known: dict[tuple[str, int], Any] = field(default_factory=dict)  # what collectives found out about these ranks

    @staticmethod
    def of(count: Num, byte_time: Num, slowdown: NDArray[np.float64] | None = None) -> Ranks:
        """Ranks from their number and the dim's seconds per byte: each sends (n - 1)/n of a tensor.

        `slowdown`: by how much longer a byte takes with so many ranks (a row for each number of them).

        >>> Ranks.of(4.0, 2.0).wire
        1.5
        """
        index = whole(count)
        if slowdown is not None:
            byte_time = byte_time * take(slowdown, index)
        if isinstance(count, float) and count == 1.0:
            return Ranks(count, index, byte_time, 0.0, True)
        return Ranks(count, index, byte_time, (count - 1.0) / count * byte_time, False)

    def at_least_two(self) -> Ranks:
        """The same ranks with a neighbour for those that are alone, so that n - 1 may divide.

        >>> Ranks.of(1.0, 2.0).at_least_two().count
        2.0
        """
        return Ranks.of(maximum(self.count, 2.0), self.byte_time)


Span = tuple[Ranks, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """For each group, its ranks in every network dim (inner to outer); their product is the degree."""

    spans: Mapping[str, Span]
    byte_time: tuple[Num, ...]
    slowdown: tuple[NDArray[np.float64] | None, ...]  # of each dim, by the number of ranks; None = no congestion
    known: dict[tuple[str, ...], Span] = field(default_factory=dict)  # groups that were joined


def place(
    degrees: Mapping[str, Num], order: tuple[str, ...], network: tuple[Dim, ...], devices: Num | None = None
) -> Layout:
    """Lay the groups over the dims. `degrees`: group -> degree; dims of size 0 hold as many as needed; `devices`: of
    the job (absent: it fills every inner dim).

    >>> from tradespace.inputs.cluster import Dim
    >>> dims = (Dim(name="nvlink", kind="switch", size=8.0, bandwidth=4.5e11),
    ...         Dim(name="fabric", kind="switch", size=0.0, bandwidth=5e10))
    >>> [ranks.count for ranks in place({"tensor": 4.0, "data": 4.0}, ("tensor", "data"), dims).spans["data"]]
    [2.0, 2.0]
    """
    spans: dict[str, list[Ranks]] = {name: [] for name in order}
    left = {name: degrees[name] for name in order}
    byte_time, slowdown = byte_times(network), tuple(slowdown_of(dim) for dim in network)
    for i, dim in enumerate(network):
        outermost = i == len(network) - 1
        size = dim.size if devices is None or outermost else used(dim, devices)
        room = size
        for name in order:
            single = isinstance(left[name], float) and left[name] == 1.0
            taken = left[name] if outermost or single else gcd(left[name], room)
            spans[name].append(Ranks.of(taken, byte_time[i], slowdown[i]))
            if not (outermost or single):
                left[name] = left[name] / taken
                room = room / taken
        if devices is not None and not outermost:
            devices = ceil(devices / size)
    return Layout({name: tuple(taken) for name, taken in spans.items()}, byte_time, slowdown)


def byte_times(network: tuple[Dim, ...]) -> tuple[Num, ...]:
    """Seconds per byte of one device into each dim, at the nominal rate that oversubscription leaves."""
    return tuple(dim.oversubscription / dim.bandwidth for dim in network)


def slowdown_of(dim: Dim) -> NDArray[np.float64] | None:
    """Seconds per byte of a congested dim over those of a healthy one, by the number of ranks; None where healthy.

    Linear between the stated numbers of ranks, constant beyond both ends.

    >>> dim = Dim(name="fabric", kind="switch", size=0.0, bandwidth=5e10,
    ...           congestion_ranks=(2.0, 4.0), congestion_share=(1.0, 0.5))
    >>> [float(x) for x in slowdown_of(dim)]
    [1.0, 1.0, 1.0, 1.5, 2.0]
    """
    return _slowdown(dim.congestion_ranks, dim.congestion_share) if dim.congestion_ranks else None


@lru_cache(maxsize=64)
def _slowdown(ranks: tuple[float, ...], share: tuple[float, ...]) -> NDArray[np.float64]:
    return np.interp(np.arange(int(ranks[-1]) + 1), ranks, 1.0 / np.array(share))


def joined(layout: Layout, *names: str) -> Span:
    """Ranks per dim of the group that several groups form together (data x context shards the states)."""
    if names not in layout.known:
        first, *others = (layout.spans[name] for name in names)
        for other in others:
            first = tuple(
                b if a.alone else a if b.alone else Ranks.of(a.count * b.count, byte_time, slowdown)
                for a, b, byte_time, slowdown in zip(first, other, layout.byte_time, layout.slowdown, strict=True)
            )
        layout.known[names] = first
    return layout.known[names]


def crosses(span: Span, other: Span) -> Num:
    """1 where the group `other` spans the outermost dim that the group `span` spans, so that both use its links."""
    found: Num = 0.0
    for ranks, others in zip(span, other, strict=True):
        if not ranks.alone:
            inside = 0.0 if others.alone else minimum(others.count - 1.0, 1.0)
            found = where(ranks.count > 1.0, inside, found)
    return found


def whole_cluster(cluster: Cluster) -> Span:
    """The span of one group of all devices of a cluster.

    >>> from tradespace.inputs import load
    >>> [ranks.count for ranks in whole_cluster(load.cluster("dgx-h100", devices=16))]
    [8.0, 2.0]
    """
    return place({"all": cluster.devices}, ("all",), cluster.network, cluster.devices).spans["all"]


def layout(strategy: Strategy, cluster: Cluster, data: Num, shard: Num) -> Layout:
    """Groups of a strategy on a cluster's dims. The data group is cut in two: `shard` ranks that share one copy of
    the sharded states lie inside (context ranks are among them), `replica` ranks outside (HSDP)."""
    if isinstance(strategy.shard, float) and strategy.shard == 0.0:
        inside: Num = data
        replica: Num = 1.0  # every data-parallel rank shares the one copy
    else:
        inside = maximum(shard / strategy.context, 1.0)
        replica = data / inside
    degrees = {
        "tensor": strategy.tensor,
        "context": strategy.context,
        "shard": inside,
        "replica": replica,
        "pipeline": strategy.pipeline,
    }
    order: list[str] = []
    for name in strategy.order:
        order += ["shard", "replica"] if name == "data" else [name] if name in degrees else []
    return place(degrees, tuple(order), cluster.network, cluster.devices)
