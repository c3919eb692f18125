"""Collectives over one or several dims: measured curves where a dim has them, else textbook algorithms.

Inside a dim: t = a(n) + V f(n) / (B e(n)) + r(n) sqrt(V), with V the full tensor of the group in bytes, B the nominal
bandwidth per device and direction, and a, e, r measured for the collective and group size (`CollectiveCurve`); the
root term is what alpha-beta models miss between latency and bandwidth. Beyond the largest measured group a and e go
on as the algorithms of the dim's kind do. Over several dims: reduce-scatter inwards, all-reduce on the last,
all-gather back, each dim moving V / (ranks inside) bytes, dims pipelined by chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from tradespace.inputs.cluster import Cluster, CollectiveCurve, Dim
from tradespace.network.algorithms.crossings import CROSSINGS
from tradespace.network.algorithms.table import fastest
from tradespace.network.placement import Ranks, Span
from tradespace.num import Num, add_to, log2, maximum, minimum, scale, sqrt, take, where


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """A measured curve over whole group sizes 0 ... last: latency (s), hops, 1/achieved fraction, root (s/byte^0.5).

    Groups of one rank cost nothing.
    """

    latency: NDArray[np.float64]
    hops: NDArray[np.float64]
    inverse: NDArray[np.float64]
    root: NDArray[np.float64] | None


def tables(collective: str, dim: Dim) -> Tables:
    """The dim's measured curve at every whole group size: linear between the measured sizes, beyond them as the
    algorithms of its kind go on.

    A curve measured with sums in the switch falls back to the share of the all-gather, a ring, where the dim has none.

    >>> curve = CollectiveCurve(sizes=(2.0, 4.0), latency=(1e-6, 3e-6), fraction=(0.5, 0.5), root=(0.0, 0.0))
    >>> dim = Dim(name="d", kind="switch", size=8.0, bandwidth=1e9, curves={"all_reduce": curve})
    >>> [round(float(x) * 1e6, 9) for x in tables("all_reduce", dim).latency[3:]]  # a tree beyond 4: log2(n)
    [2.0, 3.0, 3.375, 3.75, 4.125, 4.5]
    """
    curve = dim.curves[collective]
    ring = dim.curves.get("all_gather") if curve.in_network and not dim.in_network else None
    room = float(dim.size) if isinstance(dim.size, float) else float(dim.size.max())
    return _tables(curve, ring, collective, dim.kind, dim.in_network, max(int(curve.sizes[-1]), int(room)))


@lru_cache(maxsize=1024)
def _tables(
    curve: CollectiveCurve, ring: CollectiveCurve | None, collective: str, kind: str, in_network: bool, last: int
) -> Tables:
    sizes = np.arange(last + 1, dtype=np.float64)
    latency, fraction, root = (np.interp(sizes, curve.sizes, y) for y in (curve.latency, curve.fraction, curve.root))
    inverse = 1.0 / fraction
    if ring is not None:
        inverse = np.maximum(inverse, 1.0 / np.interp(sizes, ring.sizes, ring.fraction))
    beyond = slice(int(curve.sizes[-1]), None)
    steps, share = _forms(collective, kind, in_network, sizes[beyond])
    latency[beyond] *= steps
    inverse[beyond] *= share
    latency[:2] = root[:2] = 0.0
    trips = np.asarray(hops(collective, np.maximum(sizes, 1.0)))
    return Tables(latency, trips, inverse, root if any(curve.root) else None)


def _forms(
    collective: str, kind: str, in_network: bool, sizes: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How the steps and the seconds per (n - 1)/n of a byte grow with the group, relative to the first size."""
    dim = Dim(name="", kind=kind, size=0.0, bandwidth=1.0, latency=1.0, in_network=in_network)
    ranks = Ranks.of(sizes, 1.0)
    steps = np.asarray(fastest(collective, dim, ranks, 0.0))
    share = np.asarray(fastest(collective, replace(dim, latency=0.0), ranks, 1.0)) / ranks.wire
    return steps / steps[0], share / share[0]


def hops(collective: str, ranks: Num) -> Num:
    """One-way trips of a small message: up and down a tree for an all-reduce, log2(n) for the others, 1 all-to-all.

    Source: trees and recursive doubling, Thakur, Rabenseifner and Gropp 2005.

    >>> hops("all_reduce", 8.0), hops("all_to_all", 8.0)
    (6.0, 1.0)
    """
    if collective == "all_to_all":
        return minimum(ranks - 1.0, 1.0)
    return CROSSINGS[collective] * log2(ranks)


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Coefficients of a measured collective among given ranks: latency (s), slope (s/byte), root (s/byte^0.5)."""

    dim: Dim
    latency: Num
    slope: Num
    root: Num | None


def terms(collective: str, dim: Dim, ranks: Ranks) -> Terms:
    """The measured coefficients for these ranks, looked up once per prediction whatever the volumes.

    Another latency of the dim than the curve's shifts the latency term by the difference for each hop, down to 0.
    """
    key = (collective, id(dim))
    if key not in ranks.known:
        table = tables(collective, dim)
        crossings = CROSSINGS[collective]
        wire = ranks.wire if crossings == 1.0 else ranks.wire * crossings
        latency = take(table.latency, ranks.index)
        if dim.curve_latency is not dim.latency and dim.curve_latency:
            shift = take(table.hops, ranks.index) * (dim.latency - dim.curve_latency)
            latency = maximum(latency + shift, 0.0)
        root = None if table.root is None else take(table.root, ranks.index)
        ranks.known[key] = Terms(dim, latency, wire * take(table.inverse, ranks.index), root)
    found: Terms = ranks.known[key]
    return found


def busy_time(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds that one dim is busy with `volume` bytes among `ranks` of it; 0 for one rank.

    Source of the form: fits to nccl-tests rows (median error 1-7 %); f(n): Thakur, Rabenseifner and Gropp 2005.
    """
    if collective not in dim.curves:
        return fastest(collective, dim, ranks, volume)
    found = terms(collective, dim, ranks)
    time = add_to(volume * found.slope, found.latency)
    return time if found.root is None else add_to(time, scale(sqrt(volume), found.root))


def exposed_fill(cluster: Cluster, collective: str) -> Num:
    """Share of the faster dims' time that a collective leaves exposed: 0 for all-reduces on a pipelined network.

    >>> from tradespace.inputs import load
    >>> exposed_fill(load.cluster("dgx-a100"), "all_reduce")
    0.15
    """
    return 0.0 if cluster.pipelined and collective == "all_reduce" else cluster.fill


def collective_time(collective: str, network: tuple[Dim, ...], span: Span, volume: Num, fill: Num = 0.0) -> Num:
    """Seconds of one collective of `volume` bytes (full tensor) in a group with `span` ranks in each dim.

    time = longest dim + fill x the other dims (`fill`: what chunk pipelining leaves exposed). The volume shrinks by
    the ranks inside, V_(i+1) = V_i / n_i; in an all-to-all it does not: each rank's data for all ranks of the next dim
    passes through the rank that stands there.

    >>> dim = Dim(name="nvlink", kind="switch", size=8.0, bandwidth=100e9)
    >>> collective_time("all_reduce", (dim,), (Ranks.of(4.0, 1e-11),), 1e9)
    0.015
    """
    return _pipelined([busy for busy in _busy_times(collective, network, span, volume) if busy is not None], fill)


def together_time(network: tuple[Dim, ...], running: Sequence[tuple[str, Span, Num]], fill: Num = 0.0) -> Num:
    """Seconds until several collectives (name, span, volume) that start at once are done: each dim carries the bytes
    of all groups that cross it, one after the other or side by side at a shared rate.

    >>> dim = Dim(name="nvlink", kind="switch", size=8.0, bandwidth=100e9)
    >>> gather = ("all_gather", (Ranks.of(4.0, 1e-11),), 1e9)
    >>> together_time((dim,), [gather, gather])
    0.015
    """
    each = [_busy_times(name, network, span, volume) for name, span, volume in running]
    dims = [[busy for busy in column if busy is not None] for column in zip(*each, strict=True)]
    return _pipelined([reduce(add, column) for column in dims if column], fill)


def _busy_times(collective: str, network: tuple[Dim, ...], span: Span, volume: Num) -> list[Num | None]:
    """Seconds that each dim is busy; None where the group does not span it."""
    busy: list[Num | None] = []
    inside = volume
    for i, (dim, ranks) in enumerate(zip(network, span, strict=True)):
        busy.append(None if ranks.alone else busy_time(collective, dim, ranks, inside))
        if i < len(network) - 1 and not ranks.alone and collective != "all_to_all":
            inside = inside / ranks.count
    return busy


def _pipelined(busy: Sequence[Num], fill: Num) -> Num:
    """The longest of the dims' times, and `fill` of the others'."""
    if not busy:
        return 0.0
    slowest, *others = busy
    faster: list[Num] = []
    for other in others:
        faster.append(minimum(slowest, other))
        slowest = maximum(slowest, other)
    return add_to(slowest, scale(reduce(add, faster), fill)) if faster else slowest


def transfer_time(network: tuple[Dim, ...], span: Span, volume: Num, overhead: Num) -> Num:
    """Seconds to send `volume` bytes to the next rank of a group, over the outermost dim that the group spans.

    Bandwidth as an all-to-all among two ranks of that dim reaches it: NCCL builds it of sends and receives.
    """
    time: Num = 0.0
    for dim, ranks in zip(network, span, strict=True):
        if ranks.alone:
            continue
        curve = dim.curves.get("all_to_all")
        fraction = 1.0 if curve is None else curve.fraction[0]
        sent = overhead + dim.latency + volume * (dim.oversubscription / (dim.bandwidth * fraction))
        if curve is not None and curve.root[0] > 0.0:
            sent = sent + curve.root[0] * sqrt(2.0 * volume)  # each of two ranks holds twice what it sends
        time = where(ranks.count > 1.0, sent, time)
    return time


def ring_pass_time(network: tuple[Dim, ...], span: Span, volume: Num) -> Num:
    """Seconds in which all parts of `volume` bytes go once round the ring of a group, n - 1 steps to the next rank.

    What ring attention sends (Liu, Zaharia and Abbeel 2023, arXiv 2310.01889): the slowest step, over the outermost
    dim that the group spans, sets the pace, so that one adapter carries what a hierarchical all-gather spreads over
    those of a node.

    >>> dim = Dim(name="nvlink", kind="switch", size=8.0, bandwidth=100e9)
    >>> ring_pass_time((dim,), (Ranks.of(4.0, 1e-11),), 4e9)
    0.03
    """
    ranks: Num = 1.0
    for part in span:
        ranks = ranks if part.alone else ranks * part.count
    return (ranks - 1.0) * transfer_time(network, span, volume / ranks, 0.0)
