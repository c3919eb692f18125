"""whatif: what one more unit of each resource is worth, the strategy chosen anew each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from tradespace.errors import InputError
from tradespace.explore.optimum import even_pods, optimum, pod
from tradespace.explore.resources import Resource, resources
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.step import Step

Measure = Callable[[Step], float]


def step_seconds(step: Step) -> float:
    """Seconds per step."""
    return float(step.step_time)


def device_seconds(step: Step) -> float:
    """Device-seconds per step: its cost at an equal price per device and hour."""
    return float(step.step_time) * float(step.cluster.devices)


def step_joule(step: Step) -> float:
    """Joule per step; without a known power, device-seconds, which it is proportional to."""
    return float(step.energy) or device_seconds(step)


@dataclass(frozen=True, eq=False)
class Point:
    """The best step with a resource at `factor` of what it is; None where nothing fits."""

    factor: float
    step: Step | None


@dataclass(frozen=True, eq=False)
class Effect:
    """What a resource does: the steps with less and with more of it beside the base."""

    resource: Resource
    base: Step
    down: Point
    up: Point

    def elasticity(self, measure: Measure = step_seconds) -> float:
        """Relative change of a measure over relative change of the resource: -1 means twice as much halves it.

        Between both ends where both fit, else between the base and the end that does; 0 where neither does.
        """
        ends = [point for point in (self.down, Point(1.0, self.base), self.up) if point.step is not None]
        first, last = ends[0], ends[-1]
        if first.factor == last.factor or first.step is None or last.step is None:
            return 0.0
        return log(measure(last.step) / measure(first.step)) / log(last.factor / first.factor)

    @property
    def worth(self) -> float | None:
        """By how much the price of a device may rise for more of this resource until a token costs the same."""
        return worth(self.base, self.up.step)


def worth(base: Step, other: Step | None) -> float | None:
    """Rise of the price per device, as a share, at which the other system's token costs what the base's does."""
    return None if other is None else device_seconds(base) / device_seconds(other) - 1.0


@dataclass(frozen=True, eq=False)
class Whatif:
    """Effects of all resources on the best step of a model on a cluster, largest first, and break-even curves."""

    model: Model
    cluster: Cluster
    base: Step
    effects: list[Effect]
    curves: dict[str, list[Point]]

    def to_dict(self) -> list[dict[str, Any]]:
        """One document per resource (keys of the command line's JSON)."""
        from tradespace.views.whatif import whatif_document

        return whatif_document(self)

    def plot(self) -> Any:
        """An Altair chart: a tornado of step times, and the break-even curves."""
        from tradespace.views.tornado import whatif_figure

        return whatif_figure(self)


def whatif(
    model: Model,
    cluster: Cluster,
    base: Strategy,
    fixed: Mapping[str, float] | None = None,
    *,
    curves: Mapping[str, Sequence[float]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Whatif:
    """Turn every resource of the cluster down and up and search the best strategy each time.

    `base` holds the global batch and what is not searched, `fixed` the fields that keep their values, `curves` the
    factors at which a resource (by name) is tried beside that; pod sizes are unasked.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100", devices=16)
    >>> found = whatif(load.model("llama-3.1-8b"), cluster, load.strategy("global_batch=64", cluster=cluster))
    >>> found.effects[0].resource.name, -1.05 < found.effects[0].elasticity() < -0.9
    ('devices', True)
    """
    cluster = whole_pods(cluster)
    known = {resource.name: resource for resource in resources(cluster)}
    asked = {**_usual(known), **(curves or {})}
    work = [(name, factor) for name, resource in known.items() for factor in (resource.down, resource.up)]
    work += [(name, factor) for name, factors in asked.items() for factor in factors]
    first = optimum(model, cluster, base, fixed)
    if first is None:
        raise InputError(
            f"whatif: no strategy of {model.name} fits on {cluster.devices:g} devices; plan says what would"
        )
    points: dict[tuple[str, float], Point] = {}
    for i, (name, factor) in enumerate(work):
        if (name, factor) not in points:
            step = first if factor == 1.0 else optimum(model, known[name].scaled(factor), base, fixed)
            points[name, factor] = Point(factor, step)
        if progress is not None:
            progress(i + 1, len(work))
    effects = [Effect(r, first, points[r.name, r.down], points[r.name, r.up]) for r in known.values()]
    effects.sort(key=lambda effect: -abs(effect.elasticity()))
    found = {name: [points[name, factor] for factor in factors] for name, factors in asked.items()}
    return Whatif(model, cluster, first, effects, found)


def whole_pods(cluster: Cluster) -> Cluster:
    """The cluster with pods of a power of two where its devices fill no whole pods (64 of the 72 of a rack)."""
    return cluster if cluster.devices % pod(cluster) == 0 else even_pods(cluster)


def _usual(known: Mapping[str, Resource]) -> dict[str, list[float]]:
    """Curves that are drawn unasked: pods from half to eight times their size."""
    return {name: [0.5, 1.0, 2.0, 4.0, 8.0] for name in known if name.endswith(".size")}
