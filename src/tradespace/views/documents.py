"""Documents: one candidate of a Step as plain numbers and words, the keys that scripts read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tradespace.cost.memory import PARTS as MEMORY_PARTS
from tradespace.explore.fixes import fixes
from tradespace.explore.plan import Plan
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import RECOMPUTE_CODES
from tradespace.step import TIME_PARTS, Step
from tradespace.views.money import cost_document
from tradespace.workload.count import flops_per_token, parameters
from tradespace.workload.legality import REASONS
from tradespace.workload.loops import is_looped

BAND_80 = 1.2816  # half-width of a central 80 % interval in standard deviations (normal quantile)


def scalar(value: Any) -> float:
    """A number of a single candidate.

    >>> scalar(2.0)
    2.0
    """
    array = np.asarray(value, dtype=np.float64)
    if array.size != 1:
        raise ValueError("this Step holds many candidates; take one (explore gives Steps of single candidates)")
    return float(array.reshape(-1)[0])


def worst_stage(step: Step) -> str:
    """Name of the stage class with the largest footprint."""
    totals = {name: sum(scalar(v) for v in parts.values()) for name, parts in step.stages.items()}
    return max(totals, key=lambda name: totals[name])


def memory_document(step: Step) -> dict[str, float]:
    """Bytes by part on the worst stage, with their total."""
    parts = {name: scalar(step.stages[worst_stage(step)][name]) for name in MEMORY_PARTS}
    return {**parts, "total": sum(parts.values())}


def reasons(step: Step) -> list[str]:
    """Sentences on what is wrong with a candidate; empty when it is legal and fits."""
    found = [f"not legal: {REASONS[name]}" for name, applies in step.illegal.items() if bool(scalar(applies))]
    need, have = scalar(step.memory_total), scalar(step.capacity)
    profile = step.strategy.profile
    if need > have * scalar(profile.risk_share):
        found.append(f"does not fit: needs {need / 1e9:.1f} GB of {have / 1e9:.1f} GB on the {worst_stage(step)} stage")
    elif need > have * scalar(profile.fit_share):
        found.append(
            f"at risk: {need / 1e9:.1f} GB are more than {scalar(profile.fit_share):.0%} of {have / 1e9:.1f} GB"
        )
    return found


def verdict(step: Step) -> str:
    """fits, at risk or does not fit (illegal candidates do not fit either)."""
    if not bool(scalar(step.legal)) or not bool(scalar(step.fits)):
        return "does not fit"
    return "fits" if bool(scalar(step.fits_surely)) else "at risk"


def strategy_document(step: Step) -> dict[str, Any]:
    """The resolved strategy in the short keys of strategy strings."""
    s = step.strategy
    words = {code: word for word, code in RECOMPUTE_CODES.items()}
    numbers: Mapping[str, Any] = {
        "tp": s.tensor,
        "sp": s.sequence_parallel,
        "cp": s.context,
        "ep": s.expert,
        "etp": s.expert_tensor,
        "pp": s.pipeline,
        "vp": s.virtual_stages,
        "dp": step.data,
        "zero": s.zero,
        "shard": s.shard,
        "micro_batch": s.micro_batch,
        "global_batch": s.global_batch,
        "flash": s.flash,
        "fused_loss": s.fused_loss,
        "cuda_graphs": s.cuda_graphs,
    }
    found: dict[str, Any] = {key: _whole(scalar(value)) for key, value in numbers.items()}
    named = scalar(s.recompute) == RECOMPUTE_CODES["selective"] and s.modules != ("attention_core",)
    found["recompute"] = "+".join(s.modules) if named else words[scalar(s.recompute)]
    found |= {"precision": s.precision.name, "optimizer": s.optimizer.name, "schedule": s.schedule}
    return found | {"profile": s.profile.name, "order": "-".join(s.order)}


def _whole(value: float) -> float | int:
    return int(value) if value == int(value) else value


def strategy_text(step: Step) -> str:
    """The strategy as one line, what differs from the defaults first.

    Keys at their default of 1 or 0 are left out, so that the line can be given back to the command line.
    """
    keys = strategy_document(step)
    shown = [f"tp={keys['tp']}"]
    shown += [f"{k}={keys[k]}" for k in ("cp", "ep", "pp", "vp") if keys[k] != 1]
    if keys["ep"] != 1 and keys["etp"] != keys["tp"]:
        shown.append(f"etp={keys['etp']}")
    if keys["sp"] != int(keys["tp"] > 1):
        shown.append(f"sp={keys['sp']}")
    shown += [f"zero={keys['zero']}", f"micro_batch={keys['micro_batch']}", f"recompute={keys['recompute']}"]
    return ",".join(shown)


def step_document(step: Step) -> dict[str, Any]:
    """One candidate's document; times in seconds, memory in bytes, rates per device.

    `low` and `high` bound the step time with 80 % probability, from the spread of the profile's validation runs.
    """
    time = scalar(step.step_time)
    profile, low_bits = step.strategy.profile, step.strategy.precision.gemm in ("fp8", "fp4")
    spread = BAND_80 * scalar(profile.spread_low if low_bits else profile.spread)
    return {
        "schema": 1,
        "step_time_s": time,
        "tokens_per_s_per_device": scalar(step.tokens_per_s_per_device),
        **_samples(step),
        "model_tflops_per_device": scalar(step.model_flops_per_s_per_device) / 1e12,
        "mfu": scalar(step.mfu),
        "hfu": scalar(step.hfu),
        "fits": verdict(step) != "does not fit",
        "verdict": verdict(step),
        "reasons": reasons(step),
        **_fixes(step),
        "time": {name: scalar(step.time[name]) for name in TIME_PARTS},
        "memory": memory_document(step),
        "stage": worst_stage(step),
        "reserved": scalar(step.reserved),
        "driver": scalar(step.driver),
        "capacity": scalar(step.capacity),
        "parameters": {name: int(scalar(count)) for name, count in step.parameters.items()},
        "devices": int(scalar(step.cluster.devices)),
        "microbatches": int(scalar(step.microbatches)),
        "cost": cost_document(step),
        "strategy": strategy_document(step),
        "low": time * math.exp(-spread),
        "high": time * math.exp(spread),
        "sources": [source for source in dict.fromkeys(step.sources) if source],
    }


def _fixes(step: Step) -> dict[str, list[str]]:
    """What would make a legal step fit that does not, cheapest first."""
    if not bool(scalar(step.legal)) or bool(scalar(step.fits)) or is_looped(step.model):
        return {}
    return {"fixes": [str(fix) for fix in fixes(step)]}


def _samples(step: Step) -> dict[str, float]:
    """Samples per second of the whole job, for models whose sequences are samples (recommendation, layer tables)."""
    if not is_looped(step.model):
        return {}
    return {"samples_per_s": scalar(step.strategy.global_batch) / scalar(step.step_time)}


def plan_document(plan: Plan) -> dict[str, Any]:
    """The document of a plan: counts, the best strategies, or what comes nearest to fitting."""
    document: dict[str, Any] = {
        "schema": 1,
        "strategies_total": plan.total,
        "strategies_legal": plan.legal,
        "strategies_fitting": plan.fitting,
        "seconds": plan.seconds,
        "objective": plan.objective,
        "best": step_document(plan.top[0]) if plan.top else None,
        "top": [{**step_document(step), "loss": loss} for step, loss in zip(plan.top, plan.losses, strict=True)],
    }
    if not plan.top:
        document["nearest"] = {**step_document(plan.nearest), "fixes": plan.fixes} if plan.nearest else None
        document["fixes"] = plan.fixes
    return document


def parameters_document(model: Model) -> dict[str, Any]:
    """Parameter counts of a model: exact, with their parts."""
    found = parameters(model)
    return {
        "schema": 1,
        "model": model.name,
        "total": int(scalar(found.total)),
        "active": int(scalar(found.active)),
        "active_excl_input_embedding": int(scalar(found.active_excl_input_embedding)),
        "parts": {name: int(scalar(count)) for name, count in found.parts.items()},
        "flops_per_token": scalar(flops_per_token(model)),
    }


def gap(step: Step, measured: float) -> dict[str, Any]:
    """The ladder beside a measured step time in seconds: what is predicted, what is left unexplained."""
    predicted = scalar(step.step_time)
    rungs = [*ladder(step), _rung("not explained by the model", measured - predicted, measured, "measured")]
    return {"measured_s": measured, "predicted_s": predicted, "ratio": predicted / measured, "ladder": rungs}


def _rung(name: str, seconds: float, so_far: float, source: str) -> dict[str, Any]:
    return {"rung": name, "seconds": seconds, "total": so_far, "source": source}


def ladder(step: Step) -> list[dict[str, Any]]:
    """Rungs from the ideal FLOP time to the step time: seconds added, seconds so far, where it comes from."""
    time = {name: scalar(value) for name, value in step.time.items()}
    kinds = {name: scalar(value) for name, value in step.kinds.items()}
    device, profile = step.cluster.device, step.strategy.profile
    peak = scalar(device.peak) * scalar(step.cluster.devices)
    ideal = scalar(step.model_flops) / peak
    rungs = [
        ("model FLOPs at the dense 16-bit peak", ideal, f"6 N per token and causal attention; peak: {device.source}"),
        ("efficiency of matrix products and attention", kinds["matrix"] + kinds["attention"] - ideal, "device.gemm"),
        ("memory-bound kernels", kinds["memory_bound"], f"passes of profile {profile.name}, bandwidth of {device.key}"),
        ("recompute", time["recompute"], "strategy.recompute"),
        ("pipeline bubble and imbalance", time["bubble"], f"schedule {step.strategy.schedule}"),
        ("exposed tensor exchanges", time["exposed_tensor"], "collectives on the network dims of the group"),
        ("exposed context exchanges", time["exposed_context"], "ring of keys and values behind attention"),
        ("exposed expert exchanges", time["exposed_expert"], "dispatch and combine among the experts' devices"),
        ("exposed pipeline transfers", time["exposed_pipeline"], "stage boundaries"),
        ("exposed data-parallel exchanges", time["exposed_data"], "gradients and parameters behind compute"),
        ("optimizer", time["optimizer"], step.strategy.optimizer.source),
        ("host launch floor, fixed and jitter", time["other"], f"profile {profile.name}: {profile.source}"),
    ]
    so_far, found = 0.0, []
    for name, seconds, source in rungs:
        so_far += seconds
        found.append(_rung(name, seconds, so_far, source))
    return found
