"""size: how many devices of each type train a model on so many tokens in a time, a budget or a power."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tradespace.cost.price import paid, rate, site_power
from tradespace.cost.run import Run
from tradespace.errors import InputError, nearest
from tradespace.explore.optimum import optimum
from tradespace.inputs import load
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.strategies import given
from tradespace.inputs.strategy import Strategy
from tradespace.network.pods import used
from tradespace.num import Num
from tradespace.step import Step
from tradespace.workload.count import flops_per_token

DAY = 86400.0
BETWEEN = (5.0 / 4.0, 3.0 / 2.0, 7.0 / 4.0)
"""Steps between two powers of two: counts of which a stage or a batch can take the odd factor."""


@dataclass(frozen=True, eq=False)
class Goal:
    """What a run may take: exactly one of days (s), money (USD) and power (W) is set."""

    seconds: float | None = None
    usd: float | None = None
    watts: float | None = None

    def met(self, step: Step, run: Run) -> bool:
        """Whether the run stays within the limit."""
        if self.seconds is not None:
            return float(run.seconds) <= self.seconds
        if self.usd is not None:
            return float(run.usd) <= self.usd
        return self.watts is not None and float(step.power) * float(paid(step.cluster)) <= self.watts


@dataclass(frozen=True, eq=False)
class Sized:
    """The answer for one type of device: the step and the run that meet the goal, or the reason why none does."""

    cluster: Cluster
    step: Step | None
    run: Run | None
    reason: str


Found = tuple[Step, Run]


def size(
    model: Model,
    tokens: float,
    goal: Goal,
    clusters: Sequence[Cluster] | None = None,
    *,
    strategy: str | Mapping[str, Any] = "",
    progress: Callable[[int, int], None] | None = None,
) -> list[Sized]:
    """For each type of cluster the fewest devices that finish in time, or the fastest run within a budget or a power.

    Every count of devices gets its own best strategy; days hold failures and checkpoints. `strategy` are keys to keep;
    the global batch defaults to what catalog/defaults.toml assumes. Sorted by cost, rented types before owned ones.

    >>> from tradespace.inputs import load
    >>> found = size(load.model("llama-3.1-8b"), 1e12, Goal(seconds=30 * 86400.0), [load.cluster("dgx-h100")])
    >>> found[0].step is not None and 16 <= float(found[0].step.cluster.devices) <= 128
    True
    """
    chosen = list(clusters) if clusters is not None else [load.cluster(key) for key in load.sizing()["clusters"]]
    kept = given(strategy) if isinstance(strategy, str) else dict(strategy)
    keys = {"global_batch": default_batch(model), **kept}
    fixed = {name: value for name, value in kept.items() if isinstance(value, float) and name != "global_batch"}
    answers = []
    for i, cluster in enumerate(chosen):
        if progress is not None:
            progress(i, len(chosen))
        base = load.strategy(keys, cluster=cluster)
        answers.append(_size_one(model, tokens, goal, cluster, base, fixed))
    return sorted(answers, key=_cost)


def default_batch(model: Model) -> float:
    """Sequences per step where none are given: the assumed tokens per step over the length, a power of two.

    >>> from tradespace.inputs import load
    >>> default_batch(load.model("llama-3.1-405b", 8192.0))
    2048.0
    """
    most = float(load.sizing()["tokens_per_step"]) / float(model.seq)
    return float(1 << max(0, round(most).bit_length() - 1))


def cluster_of(name: str) -> Cluster:
    """The cluster that stands for a device or cluster by catalog key, or a cluster file.

    >>> cluster_of("h100-sxm").key
    'dgx-h100'
    """
    if load.is_path(name) or name in load.entries("clusters"):
        return load.cluster(name)
    usual = [load.cluster(key) for key in load.sizing()["clusters"]]
    for cluster in usual:
        if cluster.device.key == name:
            return cluster
    for key in load.entries("clusters"):
        if load.catalog_entry("clusters", key).get("device") == name:
            return load.cluster(key)
    known = [cluster.device.key for cluster in usual] + load.entries("clusters")
    raise InputError(f"--device: no cluster of '{name}' in the catalog{nearest(name, known)}")


def _size_one(
    model: Model, tokens: float, goal: Goal, cluster: Cluster, base: Strategy, fixed: Mapping[str, float]
) -> Sized:
    """The answer for one type: powers of two first, then the counts between the last two."""
    if goal.usd is not None and not float(rate(cluster)) > 0.0:
        return Sized(cluster, None, None, "no price is known: give cluster.economics.rent")
    if goal.watts is not None and not float(site_power(cluster)) > 0.0:
        return Sized(cluster, None, None, "no power is known: give cluster.economics.power")

    def at(devices: float) -> Found | None:
        step = optimum(model, replace(cluster, devices=devices), base, fixed)
        return None if step is None else (step, step.run(tokens))

    def wanted(found: Found) -> float:
        return float(found[0].cluster.devices if goal.seconds is not None else found[1].seconds)

    met: list[Found] = []
    missed: list[Found] = []
    for devices in _counts(model, tokens, goal, cluster):
        found = at(devices)
        if found is None:
            continue
        (met if goal.met(*found) else missed).append(found)
        if met and (goal.seconds is not None or met[-1] is not found):
            break  # in time with the fewest, or past the limit
    if not met:
        return Sized(cluster, None, None, _reason(goal, missed))
    center = float(min(met, key=wanted)[0].cluster.devices) / (2.0 if goal.seconds is not None else 1.0)
    node = float(used(cluster.network[0], center)) if len(cluster.network) > 1 else 1.0
    for devices in (center * factor for factor in BETWEEN):
        found = at(devices) if devices % node == 0 else None
        if found is not None and goal.met(*found):
            met.append(found)
    return Sized(cluster, *min(met, key=wanted), "")


def _counts(model: Model, tokens: float, goal: Goal, cluster: Cluster) -> Iterator[float]:
    """Counts of devices to try, ascending: powers of two from the least that could do to the most ever built."""
    least: Num = 1.0
    if goal.seconds is not None:
        peak = max(float(p) for p in (cluster.device.peak, cluster.device.peak_fp8, cluster.device.peak_fp4))
        least = flops_per_token(model) * tokens / (peak * goal.seconds)
    devices = 1.0
    while devices <= float(load.sizing()["most_devices"]):
        if devices >= float(least):
            yield devices
        devices *= 2.0


def _reason(goal: Goal, missed: Sequence[Found]) -> str:
    """Why there is no answer: what comes nearest."""
    if not missed:
        return "no strategy fits on any number of devices tried"
    if goal.seconds is not None:
        step, run = min(missed, key=lambda found: float(found[1].seconds))
        return f"at best {float(run.seconds) / DAY:,.3g} days, on {float(step.cluster.devices):,.0f} devices"
    if goal.usd is not None:
        step, run = min(missed, key=lambda found: float(found[1].usd))
        return f"at best {float(run.usd) / 1e6:,.3g} M USD, on {float(step.cluster.devices):,.0f} devices"
    step, _ = missed[0]
    return f"at best {float(step.power) / 1e6:,.3g} MW, on {float(step.cluster.devices):,.0f} devices"


def _cost(sized: Sized) -> tuple[int, float, float]:
    """Rented before owned before unpriced before no answer, then by cost and days."""
    if sized.run is None:
        return 3, 0.0, 0.0
    usd, rented = float(sized.run.usd), float(sized.cluster.economics.rent) > 0.0
    return (0 if rented else 1 if usd else 2), usd, float(sized.run.seconds)
