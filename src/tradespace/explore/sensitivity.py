"""Global sensitivity: how much of the variance of a result each uncertain field explains, alone and with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradespace.errors import InputError
from tradespace.explore.resources import SCALED, resources
from tradespace.explore.space import Space, full_path
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import is_multiple
from tradespace.predict import predict


@dataclass(frozen=True)
class Sobol:
    """Shares of the variance by a field: `first` alone, `total` with all its interactions."""

    field: str
    low: float
    high: float
    first: float
    total: float


def sobol(
    model: Model,
    cluster: Cluster,
    strategy: Strategy,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    *,
    of: str = "step_time_s",
    samples: int = 1024,
    seed: int = 0,
) -> list[Sobol]:
    """Sobol indices of a result (a column, or an expression of them) over ranges of fields, drawn uniformly.

    Fields are named as in `--set`; by default every rate, capacity and latency of the cluster varies by +-20 %. All
    samples are one prediction over arrays, at a fixed strategy. Source: Sobol 2001; estimators of Saltelli et al. 2010.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100", devices=64)
    >>> strategy = load.strategy("tp=2,global_batch=256", cluster=cluster)
    >>> found = sobol(load.model("llama-3.1-8b"), cluster, strategy, samples=256)
    >>> found[0].field
    'device.peak'
    """
    spans = dict(ranges or usual_ranges(cluster))
    if not is_multiple(float(samples), 2.0 ** (samples.bit_length() - 1)) or samples < 2:
        raise InputError(f"samples: {samples}, but a power of two from 2 on is needed")
    for name, (low, high) in spans.items():
        if not low < high:
            raise InputError(f"{name}: the range from {low:g} to {high:g} is empty")
    space = Space(model, cluster, strategy, ())
    measure = space.measure(of, "of")
    paths = [full_path(name) for name in spans]

    def results(values: NDArray[np.float64]) -> NDArray[np.float64]:
        step = predict(*space.replaced(dict(zip(paths, values, strict=True))))
        return np.array(np.broadcast_to(measure(step), values.shape[1:]))[None]

    stats = _scipy_stats()
    spread = [stats.uniform(loc=low, scale=high - low) for low, high in spans.values()]
    rng = np.random.default_rng(seed)
    found = stats.sobol_indices(func=results, n=samples, dists=spread, rng=rng)
    first, total = (np.nan_to_num(part.reshape(-1)) for part in (found.first_order, found.total_order))
    indices = [
        Sobol(name, low, high, float(a), float(b))
        for (name, (low, high)), a, b in zip(spans.items(), first, total, strict=True)
    ]
    return sorted(indices, key=lambda index: -index.total)


def usual_ranges(cluster: Cluster) -> dict[str, tuple[float, float]]:
    """+-20 % of every resource that is no count.

    >>> from tradespace.inputs import load
    >>> usual_ranges(load.cluster("dgx-h100"))["network.fabric.bandwidth"]
    (40000000000.0, 60000000000.0)
    """
    turned = [resource for resource in resources(cluster) if resource.up < 2.0 and resource.value > 0.0]
    return {r.name: (r.value * (1.0 - SCALED), r.value * (1.0 + SCALED)) for r in turned}


def _scipy_stats() -> Any:
    try:
        import scipy.stats
    except ModuleNotFoundError:
        raise InputError("Sobol indices need SciPy: install the extra tradespace[sensitivity]") from None
    return scipy.stats
