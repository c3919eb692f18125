"""The best strategy of a model on a cluster, without the ranking and the advice of a plan."""

from __future__ import annotations

from collections.abc import Mapping

from tradespace.errors import InputError
from tradespace.explore.plan import space_of
from tradespace.explore.sweep import Objective, fits, fits_surely, step_time, sweep
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
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
