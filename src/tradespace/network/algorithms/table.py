"""Which algorithms a library has on which kind of dim; it runs the fastest of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tradespace.inputs.cluster import Dim
from tradespace.network.algorithms import direct, halving_doubling, in_switch, line, ring, tree, two_way_ring
from tradespace.network.placement import Ranks
from tradespace.num import Num, maximum, minimum

Algorithm = Callable[[str, Dim, Ranks, Num], Num]

ALGORITHMS: Mapping[str, Algorithm] = {
    "ring": ring.time,
    "two_way_ring": two_way_ring.time,
    "line": line.time,
    "tree": tree.time,
    "halving_doubling": halving_doubling.time,
    "direct": direct.time,
    "in_switch": in_switch.time,
}

# NCCL and RCCL on switches (in_switch only where the dim has it; halving_doubling is their PAT); XLA on rings; MPI and
# libfabric collectives on dragonflies; a cube mesh is a set of rings. Every kind states what it has per collective.
SWITCH = {
    "all_reduce": ("in_switch", "ring", "tree"),
    "reduce_scatter": ("ring", "halving_doubling"),
    "all_gather": ("in_switch", "ring", "halving_doubling"),
    "all_to_all": ("direct",),
}
ROUTED = {
    "all_reduce": ("ring", "halving_doubling"),
    "reduce_scatter": ("ring", "halving_doubling"),
    "all_gather": ("ring", "halving_doubling"),
    "all_to_all": ("direct",),
}
LIBRARY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "switch": SWITCH,
    "dragonfly": ROUTED,
    "fully_connected": dict.fromkeys(SWITCH, ("direct",)),
    "ring": dict.fromkeys(SWITCH, ("two_way_ring",)),
    "mesh": dict.fromkeys(SWITCH, ("line",)),
    "cube_mesh": {**dict.fromkeys(SWITCH, ("ring",)), "all_to_all": ("direct",)},
}


def names(collective: str, dim: Dim) -> tuple[str, ...]:
    """The algorithms that the dim's library may choose from.

    >>> names("all_reduce", Dim(name="fabric", kind="switch", size=0.0, bandwidth=5e10))
    ('ring', 'tree')
    """
    return tuple(name for name in LIBRARY[dim.kind][collective] if name != "in_switch" or dim.in_network)


def fastest(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds of the fastest algorithm for each size and group: an ideal library at the dim's nominal rate.

    >>> dim = Dim(name="fabric", kind="switch", size=0.0, bandwidth=1e11, latency=1e-6)
    >>> fastest("all_reduce", dim, Ranks.of(8.0, 1e-11), 0.0)  # the tree
    6e-06
    """
    group = ranks.at_least_two()
    first, *others = (ALGORITHMS[name](collective, dim, group, volume) for name in names(collective, dim))
    for other in others:
        first = minimum(first, other)
    return minimum(maximum(ranks.count - 1.0, 0.0), 1.0) * first


def chosen(collective: str, dim: Dim, ranks: Ranks, volume: float) -> str:
    """The name of the fastest algorithm for one size.

    >>> dim = Dim(name="fabric", kind="switch", size=0.0, bandwidth=1e11, latency=1e-6)
    >>> chosen("all_reduce", dim, Ranks.of(8.0, 1e-11), 1e9)
    'ring'
    """
    group = ranks.at_least_two()
    return min(names(collective, dim), key=lambda name: float(ALGORITHMS[name](collective, dim, group, volume)))
