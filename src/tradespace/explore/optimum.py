"""The best strategy of a model on a cluster, without the ranking and the advice of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tradespace.errors import InputError
from tradespace.explore.plan import space_of
from tradespace.explore.sweep import Objective, fits, fits_surely, step_time, sweep
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.step import Step


def optimum(
    model: Model,
    cluster: Cluster,
    base: Strategy,
    fixed: Mapping[str, float] | None = None,
    objective: Objective = step_time,
) -> Step | None:
    """The best of all legal strategies that surely fit, else of those at risk; None where nothing fits.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100", devices=16)
    >>> best = optimum(load.model("llama-3.1-8b"), cluster, load.strategy("global_batch=64", cluster=cluster))
    >>> best is not None and bool(best.fits_surely)
    True
    """
    try:
        space = space_of(model, cluster, base, dict(fixed or {}))
    except InputError:  # no degrees multiply to this number of devices
        return None
    for room in (fits_surely, fits):
        found = sweep(space, keep=1, objective=objective, room=room)
        if found.fitting:
            return found.step(0)
    return None


def power_of_two(value: float) -> float:
    """The largest power of two that is not above `value` >= 1.

    >>> power_of_two(72.0)
    64.0
    """
    return float(1 << (int(value).bit_length() - 1))


def pod(cluster: Cluster) -> Num:
    """Devices inside all network dims but the outermost.

    >>> from tradespace.inputs import load
    >>> pod(load.cluster("gb200-nvl72"))
    72.0
    """
    size: Num = 1.0
    for dim in cluster.network[:-1]:
        size = size * dim.size
    return size


def even_pods(cluster: Cluster) -> Cluster:
    """The cluster with dims of a power of two: of 72 devices behind a switch a job uses 64, and pays for eight spares.

    Degrees are products of small primes, and a group that straddles pods loses the fast network. Parts of a torus are
    rented as such.

    >>> from tradespace.inputs import load
    >>> cluster = even_pods(load.cluster("gb200-nvl72", devices=128))
    >>> cluster.network[0].size, cluster.economics.spares
    (64.0, 0.125)
    """
    dims, share = list(cluster.network), 1.0
    for i, dim in enumerate(dims[:-1]):
        size = power_of_two(float(dim.size))
        share *= float(dim.size) / size if dim.kind == "switch" else 1.0
        dims[i] = replace(dim, size=size)
    spares = (1.0 + cluster.economics.spares) * share - 1.0
    return replace(cluster, network=tuple(dims), economics=replace(cluster.economics, spares=spares))
