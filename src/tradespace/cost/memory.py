"""Bytes on one device of every class of stage, by part.

Model states by ZeRO stage: Rajbhandari et al. 2020, section 5, with the precision recipe's own bytes. Activations
come from the operators' saved bytes, so grouped queries, fused attention and recomputation need no formula of their
own. States beyond the counted tensors follow the framework profile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num, any_true, at_least, maximum, minimum, where
from tradespace.workload.operator import Block, Gemm, Operator, flagged, total
from tradespace.workload.partition import StageClass

PARTS = ("weights", "gradients", "optimizer", "master", "activations", "logits", "buffers", "overhead")


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """Bytes per parameter of each state on one device, after sharding."""

    weights: Num
    gradients: Num
    optimizer: Num
    master: Num


def states(strategy: Strategy, shard: Num) -> States:
    """Bytes per parameter: ZeRO 1 shards optimizer states and masters, 2 also gradients, 3 also parameters.

    `shard` is the number of devices that share one copy. In a pipeline gradients are summed unsharded over the
    microbatches (reduced once per step), whatever the stage. Megatron's bf16 recipe with its distributed optimizer
    comes to 6 + 12/shard, unsharded 18; FSDP with fp32 parameters to 16/shard.
    """
    precision, profile = strategy.precision, strategy.profile
    mixed = profile.fp32_parameters
    weight = precision.weight + mixed * (precision.full - precision.weight)
    saved = 1.0 - 1.0 / shard
    one = 1.0 - strategy.at_least("zero", 1.0) * saved
    two = 1.0 - strategy.at_least("zero", 2.0) * (1.0 - strategy.at_least("pipeline", 2.0)) * saved
    three = 1.0 - strategy.at_least("zero", 3.0) * saved
    second: Num = 0.0
    if any_true(profile.both_gradients > 0.0):
        again = where(precision.gradient > precision.value, precision.value * two, precision.full * one)
        second = profile.both_gradients * again
    return States(
        weights=weight * three,
        gradients=precision.gradient * two + second,
        optimizer=(strategy.optimizer.state + profile.extra_state) * one,
        master=precision.master * (1.0 - mixed) * one,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """Activation bytes of one layer and one microbatch: kept until backward, and made again in it."""

    kept: Num
    working: Num


def saved_activations(layer: Block, strategy: Strategy) -> Saved:
    """Kept and recomputed bytes of a layer.

    none keeps everything; selective drops what the named modules save (the attention core: Korthikanti et al. 2022,
    section 5); full keeps the layer's input alone and works on one layer's activations at a time.
    """
    again = total([op.saved for op in layer.operators if op.module in strategy.modules])
    rest = total([op.saved for op in layer.operators if op.module not in strategy.modules])
    some, full = strategy.at_least("recompute", 1.0), strategy.at_least("recompute", 2.0)
    kept = rest * (1.0 - full) + (again * (1.0 - some) + layer.boundary * full)
    return Saved(kept, again * some + rest * full)


def largest_weight(layer: Block) -> Num:
    """Elements of the largest weight matrix of a layer on one device (all local experts of one together)."""
    largest: Num = 0.0
    for op in layer.operators:
        if op.kind == "gemm" and isinstance(op.forward.shape, Gemm):
            largest = maximum(largest, op.forward.shape.k * op.forward.shape.n)
    return largest


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Parameters that a stage holds: all, those of routed experts, and the trained ones of each group."""

    all: Num
    routed: Num
    trained: Num  # of those that shard over the data-parallel group
    trained_routed: Num  # of those that shard over the expert-data group


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """Parameters and bytes of one stage class, by part (`PARTS`)."""

    parameters: Held
    parts: dict[str, Num]

    @property
    def total(self) -> Num:
        """Sum of the parts, in bytes."""
        return total(list(self.parts.values()))


def stage_parameters(stage: StageClass, blocks: dict[str, Block], model: Model, pipeline: Num) -> Held:
    """Parameters that a stage holds; a tied table is one on a single stage, a copy each on first and last. Of frozen
    models the adapters alone are trained."""
    head = blocks["head"].weights
    shared = (1.0 - at_least(pipeline, 2.0)) * (model.tied * _table(blocks["head"]))
    ends = (flagged(stage.embedding, blocks["embedding"].weights), flagged(stage.head, head - shared))
    layers = [number * blocks[kind].weights for kind, number in stage.numbers.items()]
    every = total([*layers, *ends])
    routed = total([number * blocks[kind].routed for kind, number in stage.numbers.items() if blocks[kind].experts])
    if isinstance(model.frozen, float) and model.frozen == 0.0:
        none = isinstance(routed, float) and routed == 0.0
        return Held(every, routed, every if none else every - routed, routed)
    adapters = total([number * blocks[kind].adapters for kind, number in stage.numbers.items()])
    kept = 1.0 - model.frozen
    return Held(every, routed, (every - routed) * kept + model.frozen * adapters, routed * kept)


def _table(head: Block) -> Num:
    """Parameters of the output projection."""
    return total([op.weights for op in head.operators if op.kind == "head"])


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What all stage classes have in common: bytes per parameter, per layer, and of what lives for a moment."""

    states: States
    expert_states: States
    saved: dict[str, Saved]
    logits: Num
    transient: Num
    boundary: Num  # bytes of a layer's input on one device
    layer: Num  # parameters of the largest layer
    staged: Num  # bytes per parameter of a whole stage kept gathered under full sharding, 0 without
    streamed: Num  # bytes per parameter of two layers gathered at a time, 0 without
    loose: Num  # bytes per parameter of gradients that live to the end of backward


def shares(
    blocks: dict[str, Block], kinds: tuple[str, ...], strategy: Strategy, shard: Num, expert_shard: Num
) -> Shares:
    """Common byte counts. Transient: the activations made again in backward, the gradient of the widest activation,
    the fp32 temporary of the largest weight gradient."""
    profile = strategy.profile
    layers = [blocks[kind] for kind in kinds]
    saved = {layer.kind: saved_activations(layer, strategy) for layer in layers}
    logits = total([_logits(op) for op in blocks["head"].operators if op.kind == "head"])
    transients = [
        saved[layer.kind].working
        + (layer.boundary + _inner(layer) * strategy.precision.value)
        + profile.wgrad_buffer * largest_weight(layer)
        for layer in layers
    ]
    full, several = strategy.at_least("zero", 3.0), strategy.at_least("pipeline", 2.0)
    value = full * strategy.precision.value
    held = states(strategy, shard)
    return Shares(
        states=held,
        expert_states=states(strategy, expert_shard) if any(layer.experts for layer in layers) else held,
        saved=saved,
        logits=logits * (profile.logit_bytes * (1.0 - strategy.fused_loss)),
        transient=worst(transients),
        boundary=layers[0].boundary,
        layer=worst([layer.weights for layer in layers]),
        staged=several * (value - value / shard),
        streamed=value * (1.0 - several),
        loose=profile.loose_gradient * (strategy.at_least("zero", 1.0) - full) * (1.0 - 1.0 / shard),
    )


def footprint(stage: StageClass, parameters: Held, strategy: Strategy, in_flight: Num, common: Shares) -> Footprint:
    """Bytes of one stage class. `in_flight` = microbatches that its activations are held for (schedule's pattern).

    Buffers hold what lives for a moment and two unsharded layers under full sharding. Logits live on the last stage
    for one microbatch.
    """
    logits = flagged(stage.head, common.logits)
    buffers = maximum(common.transient - logits, 0.0)
    if any_true(strategy.zero >= 3.0):
        buffers = buffers + gathered(parameters.all, common)
    if any_true(strategy.profile.loose_gradient > 0.0):
        buffers = buffers + parameters.trained * common.loose
    kept = [number * common.saved[kind].kept for kind, number in stage.numbers.items()]
    if any_true(strategy.profile.saves_outputs > 0.0):
        kept.append(strategy.profile.saves_outputs * (1.0 - stage.head) * common.boundary)
    parts = {
        **_states(parameters, common),
        "activations": in_flight * total([*kept, flagged(stage.embedding, common.boundary)]),
        "logits": logits,
        "buffers": buffers,
        "overhead": strategy.profile.overhead,
    }
    return Footprint(parameters, parts)


def _states(parameters: Held, common: Shares) -> dict[str, Num]:
    """Bytes of weights, gradients, optimizer states and masters; experts shard over a group of their own, and frozen
    weights have nothing but themselves."""
    held, expert = common.states, common.expert_states
    if isinstance(parameters.routed, float) and parameters.routed == 0.0:
        trained = parameters.trained
        return {
            "weights": parameters.all * held.weights,
            "gradients": trained * held.gradients,
            "optimizer": trained * held.optimizer,
            "master": trained * held.master,
        }
    dense, routed = parameters.trained, parameters.trained_routed
    return {
        "weights": (parameters.all - parameters.routed) * held.weights + parameters.routed * expert.weights,
        "gradients": dense * held.gradients + routed * expert.gradients,
        "optimizer": dense * held.optimizer + routed * expert.optimizer,
        "master": dense * held.master + routed * expert.master,
    }


def _logits(op: Operator) -> Num:
    """Values that the output projection gives for one microbatch."""
    assert isinstance(op.forward.shape, Gemm)
    return op.forward.shape.out


def _inner(layer: Block) -> Num:
    """Elements of the widest GEMM output of a layer (the MLP's inner width, gate and up together)."""
    widest: Num = 0.0
    for op in layer.operators:
        shape = op.forward.shape
        if isinstance(shape, Gemm) and op.kind in ("gemm", "grouped"):
            out = shape.m * shape.n
            widest = maximum(widest, out * shape.batch if op.kind == "grouped" else out)
    return widest


def gathered(parameters: Num, common: Shares) -> Num:
    """Bytes of unsharded copies under full sharding: two layers in flight, or the whole stage between the microbatches
    of a pipeline, where parameters stay gathered."""
    return parameters * common.staged + minimum(2.0 * common.layer, parameters) * common.streamed


def footprints(
    model: Model,
    blocks: dict[str, Block],
    stages: tuple[StageClass, ...],
    strategy: Strategy,
    shards: tuple[Num, Num],
    microbatches: Num,
    in_flight: Callable[[Num, Num, Num, Num], Num],
) -> dict[str, Footprint]:
    """Footprint of each class of stage that can be the worst one; the lighter middle stages never are, unless no
    heavier ones exist, so the middle class stands for both. `shards`: devices that share one copy of the sharded
    states, of dense parameters and of experts."""
    first, heavy, lighter, last = stages
    numbers = {kind: maximum(number, lighter.numbers[kind]) for kind, number in heavy.numbers.items()}
    middle = StageClass("middle", heavy.count, 1.0, total(list(numbers.values())), 0.0, 0.0, numbers)
    common = shares(blocks, tuple(first.numbers), strategy, *shards)
    found: dict[str, Footprint] = {}
    for stage in (first, middle, last):
        if (
            isinstance(strategy.pipeline, float)
            and strategy.pipeline < {"first": 1, "middle": 3, "last": 2}[stage.name]
        ):
            continue
        flying = in_flight(stage.index, strategy.pipeline, strategy.virtual_stages, microbatches)
        parameters = stage_parameters(stage, blocks, model, strategy.pipeline)
        found[stage.name] = footprint(stage, parameters, strategy, flying, common)
    return found


def worst(values: list[Num]) -> Num:
    """The largest of a few numbers, element by element."""
    largest = values[0]
    for value in values[1:]:
        largest = maximum(largest, value)
    return largest


def most_trained(memory: dict[str, Footprint]) -> tuple[Num, Num]:
    """Trained parameters of the stage with most of them: dense ones, and those of experts."""
    held = [part.parameters for part in memory.values()]
    return worst([one.trained for one in held]), worst([one.trained_routed for one in held])
