"""Collectives over one or several dims: the hierarchical algorithm with measured curves per dim.

Inside a dim: t = a(n) + V f(n) / (B e(n)) + r(n) sqrt(V), with V the full tensor of the group in bytes, B the nominal
bandwidth per device and direction, and a, e, r measured for the collective and group size (`CollectiveCurve`); the
root term is what alpha-beta models miss between latency and bandwidth. Over several dims: reduce-scatter inwards,
all-reduce on the last, all-gather back, each dim moving V / (ranks inside) bytes, dims pipelined by chunks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tradespace.inputs.cluster import CollectiveCurve, Dim
from tradespace.network.placement import Ranks, Span
from tradespace.num import Num, maximum, minimum, sqrt, take, where

# Times that a tensor's (n - 1)/n crosses the wire: an all-reduce scatters and gathers.
CROSSINGS: Mapping[str, float] = {"all_reduce": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0, "all_to_all": 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """A measured curve over whole group sizes 0 ... last: latency (s), 1/achieved fraction, root term (s/byte^0.5).

    Groups of one rank cost nothing.
    """

    latency: NDArray[np.float64]
    inverse: NDArray[np.float64]
    root: NDArray[np.float64] | None


@lru_cache(maxsize=1024)
def tables(curve: CollectiveCurve) -> Tables:
    """Curve values at every whole group size, linear between the measured sizes, constant beyond the last.

    >>> from tradespace.inputs.cluster import CollectiveCurve
    >>> curve = CollectiveCurve(sizes=(2.0, 4.0), latency=(1e-6, 3e-6), fraction=(0.5, 0.5), root=(0.0, 0.0))
    >>> round(float(tables(curve).latency[3]), 9)
    2e-06
    """
    last = int(curve.sizes[-1])
    sizes = np.arange(last + 1, dtype=np.float64)
    latency, fraction, root = (np.interp(sizes, curve.sizes, y) for y in (curve.latency, curve.fraction, curve.root))
    latency[:2] = root[:2] = 0.0
    return Tables(latency, 1.0 / fraction, root if any(curve.root) else None)


def busy_time(collective: str, dim: Dim, ranks: Ranks, volume: Num) -> Num:
    """Seconds that one dim is busy with `volume` bytes among `ranks` of it; 0 for one rank.

    Another latency of the dim than the curve's scales the latency term. Source of the form: fits to nccl-tests rows
    (median error 1-7 %); f(n): Thakur, Rabenseifner and Gropp 2005.
    """
    crossings = CROSSINGS[collective]
    wire = ranks.wire if crossings == 1.0 else ranks.wire * crossings
    curve = dim.curves.get(collective)
    if curve is None:
        return dim.latency * minimum(ranks.count - 1.0, 1.0) + volume * wire
    table = tables(curve)
    latency = take(table.latency, ranks.index)
    if dim.curve_latency is not dim.latency and dim.curve_latency:
        latency = latency * (dim.latency / dim.curve_latency)
    time = latency + volume * (wire * take(table.inverse, ranks.index))
    return time if table.root is None else time + take(table.root, ranks.index) * sqrt(volume)


def collective_time(collective: str, network: tuple[Dim, ...], span: Span, volume: Num, fill: Num = 0.0) -> Num:
    """Seconds of one collective of `volume` bytes (full tensor) in a group with `span` ranks in each dim.

    time = longest dim + fill x the other dims (`fill`: what chunk pipelining leaves exposed). The volume shrinks by
    the ranks inside: V_(i+1) = V_i / n_i.

    >>> from tradespace.inputs.cluster import Dim
    >>> dim = Dim(name="nvlink", kind="switch", size=8.0, bandwidth=100e9)
    >>> collective_time("all_reduce", (dim,), (Ranks.of(4.0, 1e-11),), 1e9)
    0.015
    """
    slowest: Num = 0.0
    faster: Num = 0.0
    inside = volume
    for i, (dim, ranks) in enumerate(zip(network, span, strict=True)):
        if ranks.alone:
            continue
        busy = busy_time(collective, dim, ranks, inside)
        if i < len(network) - 1:
            inside = inside / ranks.count
        if isinstance(slowest, float) and slowest == 0.0:
            slowest = busy
        else:
            shorter = minimum(slowest, busy)
            faster = shorter if isinstance(faster, float) and faster == 0.0 else faster + shorter
            slowest = maximum(slowest, busy)
    return slowest + faster * fill


def transfer_time(network: tuple[Dim, ...], span: Span, volume: Num, overhead: Num) -> Num:
    """Seconds to send `volume` bytes to the next rank of a group, over the outermost dim that the group spans.

    Bandwidth as an all-gather between two ranks of that dim reaches it.
    """
    time: Num = 0.0
    for dim, ranks in zip(network, span, strict=True):
        if ranks.alone:
            continue
        curve = dim.curves.get("all_gather")
        fraction = 1.0 if curve is None else curve.fraction[0]
        sent = overhead + dim.latency + volume * (dim.oversubscription / (dim.bandwidth * fraction))
        time = where(ranks.count > 1.0, sent, time)
    return time
