"""whatif: what one more unit of each resource is worth, the strategy chosen anew each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log, sqrt
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.explore.optimum import optimum
from tradespace.explore.resources import Resource, resources
from tradespace.inputs.cluster import Cluster, MemoryTier
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.step import Step

Measure = Callable[[Step], float]
EXPANDED = "expanded"
HALVINGS = 5
GAIN = 1e-3  # relative gain from which on a resource is said to pay


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
class Curve:
    """Steps along a resource beside a reference: the base, or for expanded memory the best step without the tier.

    `pays_from` is the factor from which on the resource beats the reference, None if it never does.
    """

    points: list[Point]
    reference: Step | None
    without: bool = False
    pays_from: float | None = None

    def worth(self, point: Point) -> float | None:
        """How much more a device may cost at a point than in the reference; None where either does not fit."""
        return None if self.reference is None else worth(self.reference, point.step)


def pays(reference: Step | None, step: Step | None) -> bool:
    """Whether a step beats the reference at an equal price; where that does not fit, any step does."""
    gain = None if reference is None else worth(reference, step)
    return step is not None and (gain is None or gain > GAIN)


def onset(points: Sequence[Point], reference: Step | None, at: Callable[[float], Step | None]) -> float | None:
    """The factor from which on a resource pays: between two points of a curve by halving, to about 2 %."""
    low = None
    for point in points:
        if pays(reference, point.step):
            break
        low = point.factor
    else:
        return None
    high = point.factor
    for _ in range(HALVINGS if low is not None else 0):
        middle = sqrt((low or high) * high)
        low, high = (low, middle) if pays(reference, at(middle)) else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class Whatif:
    """Effects of all resources on the best step of a model on a cluster, largest first, and break-even curves."""

    model: Model
    cluster: Cluster
    base: Step
    effects: list[Effect]
    curves: dict[str, Curve]

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
    factors at which a resource (by name) is tried beside that. Pod sizes have curves unasked, and the bandwidth of an
    expanded memory, which is compared with the cluster without it.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100", devices=16)
    >>> found = whatif(load.model("llama-3.1-8b"), cluster, load.strategy("global_batch=64", cluster=cluster))
    >>> found.effects[0].resource.name, -1.05 < found.effects[0].elasticity() < -0.9
    ('devices', True)
    """
    known = {resource.name: resource for resource in resources(cluster)}
    asked = {**_usual(cluster), **(curves or {})}
    for name in asked:
        if name not in known:
            raise InputError(f"whatif: no resource '{name}'{nearest(name, known)}")
    work = [(name, factor) for name, resource in known.items() for factor in (resource.down, resource.up)]
    work += [(name, factor) for name, factors in asked.items() for factor in factors]
    first = optimum(model, cluster, base, fixed)
    if first is None:
        raise InputError(
            f"whatif: no strategy of {model.name} fits on {cluster.devices:g} devices; plan says what would"
        )

    def at(name: str, factor: float) -> Step | None:
        return first if factor == 1.0 else optimum(model, known[name].scaled(factor), base, fixed)

    points: dict[tuple[str, float], Point] = {}
    for i, (name, factor) in enumerate(work):
        if (name, factor) not in points:
            points[name, factor] = Point(factor, at(name, factor))
        if progress is not None:
            progress(i + 1, len(work))
    effects = [Effect(r, first, points[r.name, r.down], points[r.name, r.up]) for r in known.values()]
    effects.sort(key=lambda effect: -abs(effect.elasticity()))
    found = {}
    for name, factors in asked.items():
        line = [points[name, factor] for factor in sorted(factors)]
        tier = next((t for t in cluster.device.memory if name == _bandwidth(t) and t.kind == EXPANDED), None)
        if tier is None:
            found[name] = Curve(line, first)
        else:
            alone = optimum(model, without(cluster, tier), base, fixed)
            found[name] = Curve(line, alone, True, onset(line, alone, partial(at, name)))
    return Whatif(model, cluster, first, effects, found)


def _bandwidth(tier: MemoryTier) -> str:
    return f"device.memory.{tier.name}.bandwidth"


def without(cluster: Cluster, tier: MemoryTier) -> Cluster:
    """The cluster without one of its tiers of memory."""
    memory = tuple(other for other in cluster.device.memory if other is not tier)
    return replace(cluster, device=replace(cluster.device, memory=memory))


def _usual(cluster: Cluster) -> dict[str, list[float]]:
    """Curves that are drawn unasked: pods from half to eight times their size, the bandwidth of expanded memory."""
    found = {f"network.{dim.name}.size": [0.5, 1.0, 2.0, 4.0, 8.0] for dim in cluster.network[:-1]}
    tiers = [tier for tier in cluster.device.memory if tier.kind == EXPANDED]
    return found | {_bandwidth(tier): [2.0**k for k in range(-4, 4)] for tier in tiers}
