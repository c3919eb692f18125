"""Which network dims a parallel group spans: the one place that decides it.

Groups are laid out in the strategy's order from the inner dim outwards. A group takes gcd(group, rest of the dim)
ranks inside a dim; what remains spans the next one (spec of the physical model: the worst group is priced).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradespace.inputs.cluster import Cluster, Dim
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num, gcd, maximum, whole


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Ranks of a group inside one network dim, with what collectives need of them."""

    count: Num
    index: int | NDArray[np.intp]  # the count as a row of measured tables
    wire: Num  # seconds per byte of the full tensor that a reduce-scatter takes at the dim's nominal rate
    alone: bool  # a single candidate's group that does not span this dim

    @staticmethod
    def of(count: Num, byte_time: Num) -> Ranks:
        """Ranks from their number and the dim's seconds per byte: each sends (n - 1)/n of a tensor.

        >>> Ranks.of(4.0, 2.0).wire
        1.5
        """
        wire = (count - 1.0) / count * byte_time
        return Ranks(count, whole(count), wire, isinstance(count, float) and count == 1.0)


Span = tuple[Ranks, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """For each group, its ranks in every network dim (inner to outer); their product is the degree."""

    spans: Mapping[str, Span]
    byte_time: tuple[Num, ...]


def place(degrees: Mapping[str, Num], order: tuple[str, ...], network: tuple[Dim, ...]) -> Layout:
    """Lay the groups over the dims. `degrees`: group -> degree; dims of size 0 hold as many as needed.

    >>> from tradespace.inputs.cluster import Dim
    >>> dims = (Dim(name="nvlink", kind="switch", size=8.0, bandwidth=4.5e11),
    ...         Dim(name="fabric", kind="switch", size=0.0, bandwidth=5e10))
    >>> [ranks.count for ranks in place({"tensor": 4.0, "data": 4.0}, ("tensor", "data"), dims).spans["data"]]
    [2.0, 2.0]
    """
    spans: dict[str, list[Ranks]] = {name: [] for name in order}
    left = {name: degrees[name] for name in order}
    byte_time = byte_times(network)
    for i, dim in enumerate(network):
        outermost = i == len(network) - 1
        room: Num = dim.size
        for name in order:
            taken = left[name] if outermost else gcd(left[name], room)
            spans[name].append(Ranks.of(taken, byte_time[i]))
            if not outermost:
                left[name] = left[name] / taken
                room = room / taken
    return Layout({name: tuple(taken) for name, taken in spans.items()}, byte_time)


def byte_times(network: tuple[Dim, ...]) -> tuple[Num, ...]:
    """Seconds per byte of one device into each dim, at the nominal rate that oversubscription leaves."""
    return tuple(dim.oversubscription / dim.bandwidth for dim in network)


def joined(layout: Layout, *names: str) -> Span:
    """Ranks per dim of the group that several groups form together (data x context shards the states)."""
    first, *others = (layout.spans[name] for name in names)
    for other in others:
        first = tuple(
            b if a.alone else a if b.alone else Ranks.of(a.count * b.count, byte_time)
            for a, b, byte_time in zip(first, other, layout.byte_time, strict=True)
        )
    return first


def layout(strategy: Strategy, cluster: Cluster, data: Num, shard: Num) -> Layout:
    """Groups of a strategy on a cluster's dims. The data group is cut in two: `shard` ranks that share one copy of
    the sharded states lie inside (context ranks are among them), `replica` ranks outside (HSDP)."""
    inside = maximum(shard / strategy.context, 1.0)
    degrees = {
        "tensor": strategy.tensor,
        "context": strategy.context,
        "shard": inside,
        "replica": data / inside,
        "pipeline": strategy.pipeline,
    }
    order: list[str] = []
    for name in strategy.order:
        order += ["shard", "replica"] if name == "data" else [name] if name in degrees else []
    return place(degrees, tuple(order), cluster.network)
