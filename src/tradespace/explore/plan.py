"""plan: every legal strategy of a model on a cluster, ranked; what fits, what it costs, why others lose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

from tradespace.cost.price import rate
from tradespace.errors import InputError, nearest
from tradespace.explore.space import Axis, Space
from tradespace.explore.sweep import Filter, Objective, Swept, fits_surely, memory_total, step_time, sweep
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.layers import Experts
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num, any_true
from tradespace.step import Step
from tradespace.workload.partition import chunks_fit


def cost(step: Step) -> Num:
    """The objective of a plan that looks for a bargain: USD per step."""
    return step.cost


OBJECTIVES: Mapping[str, Objective] = {"time": step_time, "memory": memory_total, "cost": cost}
"""What a plan can minimize; on a given cluster the cost of a step is its time x a price, if one is known."""

SPARE = 6  # ranked candidates kept for each one shown: the others have the same effect

SEARCHED: Mapping[str, tuple[float, ...]] = {
    "recompute": (0.0, 1.0, 2.0),
    "zero": (0.0, 1.0, 2.0, 3.0),
    "sequence_parallel": (0.0, 1.0),
}


@dataclass(frozen=True, eq=False)
class Plan:
    """The ranked strategies of a search.

    `top` are Steps of single candidates, best first; `losses` says for each why it loses to the first. When nothing
    fits, `top` is empty, `nearest` is the least overfull legal candidate and `fixes` what would make it fit.
    """

    model: Model
    cluster: Cluster
    objective: str
    total: int
    legal: int
    fitting: int
    seconds: float
    top: list[Step]
    losses: list[str]
    nearest: Step | None
    fixes: list[str]

    @property
    def best(self) -> Step | None:
        """The first of `top`, None when nothing fits."""
        return self.top[0] if self.top else None

    def to_dict(self) -> dict[str, Any]:
        """The document of the plan (keys of the command line's JSON)."""
        from tradespace.views.documents import plan_document

        return plan_document(self)

    def plot(self) -> Any:
        """An Altair chart of the best strategies: time by part and memory."""
        from tradespace.views.figures import plan_figure

        return plan_figure(self)

    def _repr_html_(self) -> str:
        from tradespace.views.tables import plan_html

        return plan_html(self)


def divisors(number: float) -> list[float]:
    """Divisors of a whole number, ascending.

    >>> divisors(12)
    [1.0, 2.0, 3.0, 4.0, 6.0, 12.0]
    """
    whole = int(number)
    small = [d for d in range(1, isqrt(whole) + 1) if whole % d == 0]
    return [float(d) for d in sorted({*small, *(whole // d for d in small)})]


def experts_of(model: Model) -> list[Experts]:
    """The mixtures of experts in the kinds of layers; empty for a model without."""
    return [part for kind in model.kinds for part in kind.parts if isinstance(part, Experts)]


def foldings(
    model: Model, fixed: Mapping[str, float], options: list[float], tensors: list[float]
) -> list[tuple[float, float]]:
    """Every (expert, expert_tensor) that splits the model's experts: their number by the first, their width by the
    second, which divides a tensor degree. (1, 1) alone without experts."""
    parts = experts_of(model)
    spread = [e for e in options if all(float(part.experts) % e == 0 for part in parts)] if parts else [1.0]
    split = [x for x in options if any(t % x == 0 for t in tensors) and all(float(p.ffn) % x == 0 for p in parts)]
    inside = [fixed["expert_tensor"]] if "expert_tensor" in fixed else split if parts else [1.0]
    return [(e, x) for e in ([fixed["expert"]] if "expert" in fixed else spread) for x in inside]


def degrees(model: Model, devices: float, fixed: Mapping[str, float]) -> dict[str, list[float]]:
    """Every (tensor, context, pipeline) whose product divides the devices and that the model's shapes allow, with every
    (expert, expert_tensor) that folds the same devices: expert_tensor divides tensor."""
    options = divisors(devices)

    def choices(name: str, possible: Callable[[float], bool]) -> list[float]:
        return [fixed[name]] if name in fixed else [d for d in options if possible(d)]

    heads, kv = float(model.heads), float(model.kv_heads)
    tensors = choices("tensor", lambda t: heads % t == 0 and float(model.ffn) % t == 0 and (kv % t == 0 or t % kv == 0))
    contexts = choices("context", lambda c: c == 1 or float(model.seq) % (2 * c) == 0)
    pipelines = choices("pipeline", lambda p: p <= float(model.layers))
    folded = foldings(model, fixed, options, tensors)
    rows = [
        (t, c, p, e, x)
        for t in tensors
        for c in contexts
        for p in pipelines
        if devices % (t * c * p) == 0 and fixed.get("data", devices / (t * c * p)) == devices / (t * c * p)
        for e, x in folded
        if (devices / p) % (e * x) == 0 and (t % x == 0 or "expert_tensor" in fixed)
    ]
    if not rows:
        asked = ", ".join(f"{name} = {value:g}" for name, value in fixed.items())
        raise InputError(
            f"plan: no strategy for {devices:g} devices with {asked or 'these sizes'}; degrees must multiply to a "
            f"divisor of the devices and divide the model's {heads:g} heads, {float(model.ffn):g} MLP width and "
            f"{float(model.seq):g} tokens"
        )
    columns = [f"strategy.{name}" for name in ("tensor", "context", "pipeline", "expert", "expert_tensor")]
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


def space_of(model: Model, cluster: Cluster, base: Strategy, fixed: Mapping[str, float]) -> Space:
    """The space of all strategies: degrees, virtual stages, microbatch, recompute, ZeRO, sequence parallel."""
    devices = float(cluster.devices)
    triples = degrees(model, devices, fixed)
    pipelines = sorted(set(triples["strategy.pipeline"]))
    layers = float(model.layers)
    chunked = {1.0}
    if base.schedule != "gpipe":
        most = max((layers / p for p in pipelines if p > 1), default=1.0)
        chunked |= {2.0**k for k in range(8) if 2.0**k <= most}  # layers do not divide: layouts as they are set by hand
        for extra in (0.0, 1.0, 2.0):
            for d in divisors(layers + extra):
                chunked |= {d / p for p in pipelines if p > 1 and d % p == 0 and chunks_fit(layers, p, d / p)}
    changes: dict[str, Any] = {name: value for name, value in fixed.items() if name != "data"}
    base = replace(base, **changes)
    axes = [Axis.linked("degrees", triples)]
    options: dict[str, Sequence[float]] = {
        "virtual_stages": sorted(chunked),
        "micro_batch": divisors(float(base.global_batch)),
        **SEARCHED,
    }
    for name, values in options.items():
        if name not in fixed:
            axes.append(Axis.of(f"strategy.{name}", list(values)))
    return Space(model, cluster, base, tuple(axes))


def plan(
    model: Model,
    cluster: Cluster,
    base: Strategy,
    fixed: Mapping[str, float] | None = None,
    *,
    top: int = 10,
    objective: str = "time",
    allowed: Filter | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Search every legal strategy of `model` on `cluster`; the answer is the optimum of the prediction.

    Only strategies that surely fit are ranked; if there are none, those at risk are.

    `base` holds the global batch and everything that is not searched; `fixed` gives fields by long name (`data` may be
    among them) the values that they keep, all other degrees and switches are searched.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100", devices=16)
    >>> found = plan(load.model("llama-3.1-8b"), cluster, load.strategy("global_batch=64", cluster=cluster))
    >>> found.best is not None and found.fitting <= found.legal <= found.total
    True
    """
    if objective not in OBJECTIVES:
        raise InputError(f"plan: unknown objective '{objective}'{nearest(objective, OBJECTIVES)}")
    if objective == "cost" and not any_true(rate(cluster) > 0.0):
        raise InputError(
            f"plan: no price of {cluster.device.name} is known; set cluster.economics.rent, such as '2 USD/h'"
        )
    kept = dict(fixed or {})
    space = space_of(model, cluster, base, kept)
    goal, keep = OBJECTIVES[objective], SPARE * top
    found = sweep(space, keep=keep, objective=goal, allowed=allowed, room=fits_surely, progress=progress)
    if not found.fitting:
        found = sweep(space, keep=keep, objective=goal, allowed=allowed, progress=progress)
    best = _distinct(found, top)
    near = found.at(found.nearest) if not best and found.nearest >= 0 else None
    fixes = _fixes(space, kept, found, near, allowed) if not best else []
    return Plan(
        model=model,
        cluster=cluster,
        objective=objective,
        total=found.total,
        legal=found.legal,
        fitting=found.fitting,
        seconds=found.seconds,
        top=best,
        losses=[_loss(best[0], step) for step in best],
        nearest=near,
        fixes=fixes,
    )


def _distinct(found: Swept, top: int) -> list[Step]:
    """The best candidates without those that take exactly the time and memory of a better one (a switch without
    effect, such as the ZeRO stage on one device)."""
    steps: list[Step] = []
    seen: set[tuple[float, float]] = set()
    for rank in range(len(found.positions)):
        step = found.step(rank)
        effect = (float(step.step_time), float(step.memory_total))
        if effect not in seen:
            seen.add(effect)
            steps.append(step)
        if len(steps) == top:
            break
    return steps


def _loss(first: Step, step: Step) -> str:
    """One sentence on why a candidate loses to the first: the parts that cost it most."""
    gap = float(step.step_time) - float(first.step_time)
    if step is first:
        return ""
    if abs(gap) <= 1e-9 * float(first.step_time):
        return "as fast as the first"
    worse = {name: float(step.time[name]) - float(first.time[name]) for name in step.time}
    most = sorted(worse, key=lambda name: -worse[name] if gap > 0 else worse[name])[:2]
    parts = ", ".join(f"{name} {worse[name]:+.3g} s" for name in most if abs(worse[name]) > 0.05 * abs(gap))
    return f"{gap / float(first.step_time):+.1%}: {parts}"


def _fixes(space: Space, fixed: dict[str, float], found: Swept, near: Step | None, allowed: Filter | None) -> list[str]:
    """What would make the model fit, each with its price in time; searched, not guessed."""
    model, cluster, base = space.model, space.cluster, space.strategy
    if near is None:
        return ["no legal strategy: " + "; ".join(_broken(found))] if found.total else []
    fixes = []
    for name in fixed:
        if name == "data":
            continue
        freed = {key: value for key, value in fixed.items() if key != name}
        tried = sweep(space_of(model, cluster, base, freed), keep=1, allowed=allowed)
        if tried.fitting:
            step = tried.step(0)
            value = getattr(step.strategy, name)
            fixes.append(f"free {name}: {name} = {float(value):g} fits, {float(step.step_time):.3g} s per step")
    for factor in (2.0, 4.0, 8.0, 16.0, 32.0, 64.0):
        larger = replace(cluster, devices=float(cluster.devices) * factor)
        tried = sweep(
            space_of(model, larger, base, {k: v for k, v in fixed.items() if k != "data"}), keep=1, allowed=allowed
        )
        if tried.fitting:
            step = tried.step(0)
            fixes.append(f"{float(larger.devices):.0f} devices: {float(step.step_time):.3g} s per step")
            break
    need = float(near.memory_total) / float(near.strategy.profile.risk_share) + float(cluster.device.reserve)
    fixes.append(f"{need / 1e9:.0f} GB of memory per device instead of {float(cluster.local.capacity) / 1e9:.0f} GB")
    return fixes


def _broken(found: Swept) -> list[str]:
    """Reasons that rule out the first candidate of a space without a legal one."""
    from tradespace.workload.legality import REASONS

    return [REASONS[name] for name, applies in found.at(0).illegal.items() if bool(applies)]
