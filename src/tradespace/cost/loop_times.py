"""Seconds of the operators of a training loop on one device, with memory in tiers, and the loop's bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tradespace.cost.compute import Rates, product_time
from tradespace.cost.memory import saved_activations, states
from tradespace.cost.stage import Exchanges
from tradespace.cost.tiers import Accesses
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num, maximum
from tradespace.schedule.comet_loop import LayerTimes, Posted, StackTimes
from tradespace.workload.layer_table import Stack
from tradespace.workload.loops import held_parameters, operators
from tradespace.workload.operator import Exchange, Gemm, Operator, Work, total

PHASES = ("forward", "input_grad", "weight_grad")
OPERANDS = {
    "forward": ("activations", "weights", "working"),
    "input_grad": ("working", "weights", "working"),
    "weight_grad": ("activations", "working", "gradients"),
}
"""Class of tensors (`cost.tiers`) of a weight product's left operand, right operand and output, by phase."""
WORKING = ("working", "working", "working")


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """What prices operators and exchanges: rates of the device, reach of its memory tiers, prices of the network."""

    rates: Rates
    reach: Accesses
    prices: Exchanges


def work_time(op: Operator, work: Work | None, phase: str, rates: Rates, reach: Accesses) -> Num:
    """Seconds of one phase: max(FLOPs / peak, bytes x seconds per byte), and the latency of the slowest tier touched.

    Roofline of Williams, Waterman and Patterson 2009; products with the device's efficiencies (`cost.compute`).
    """
    if work is None:
        return 0.0
    shape = work.shape
    if isinstance(shape, Gemm):
        return _product(shape, OPERANDS[phase] if not _is_zero(op.weights) else WORKING, phase, rates, reach)
    if op.kind == "lookup":
        table = reach["tables"]
        return work.traffic * table.random + (0.0 if _is_zero(work.traffic) else table.latency)
    working = reach["working"]
    if _is_zero(work.traffic) and _is_zero(work.flops):
        return 0.0
    return maximum(work.flops / rates.high, work.traffic * working.stream) + working.latency


def _product(shape: Gemm, classes: tuple[str, str, str], phase: str, rates: Rates, reach: Accesses) -> Num:
    product, launch = product_time(shape, rates, True)
    if phase == "weight_grad":
        product = product * rates.accumulate
    stream: Num = 0.0
    latency: Num = 0.0
    for values, name in zip(rates.traffic(shape, rates.buffer), classes, strict=True):
        stream = stream + values * reach[name].stream
        latency = maximum(latency, reach[name].latency)
    return maximum(product, stream * (rates.value * shape.batch)) + (launch + latency)


def _is_zero(value: Num) -> bool:
    return isinstance(value, float) and value == 0.0


def stack_times(stack: Stack, machine: Machine) -> StackTimes:
    """Seconds of a stack's layers and exchanges."""
    layers = tuple(_layer(op, machine) for op in stack.block.operators)
    return StackTimes(layers, stack.count, machine.prices.sum(stack.restore))


def _layer(op: Operator, machine: Machine) -> LayerTimes:
    forward, input_grad, weight_grad = (
        work_time(op, work, phase, machine.rates, machine.reach)
        for phase, work in zip(PHASES, (op.forward, op.input_grad, op.weight_grad), strict=True)
    )
    wait_f, posted_f = _exchanges(op.forward, machine.prices)
    wait_b, posted_b = _exchanges(op.input_grad, machine.prices)
    queued = machine.prices.sum(op.weight_grad.exchanges) if op.weight_grad else 0.0
    return LayerTimes(op.name, forward, input_grad, weight_grad, wait_f, wait_b, queued, posted_f, posted_b)


def _exchanges(work: Work | None, prices: Exchanges) -> tuple[Num, Posted]:
    """Seconds that a phase waits for at once, and (layer that waits, seconds) of the others."""
    if work is None or not work.exchanges:
        return 0.0, ()
    at_once = tuple(exchange for exchange in work.exchanges if not exchange.awaited)
    later: list[Exchange] = [exchange for exchange in work.exchanges if exchange.awaited]
    return prices.sum(at_once), tuple((exchange.awaited, prices.time(exchange)) for exchange in later)


def kernels(stacks: Sequence[Stack], rates: Rates, reach: Accesses) -> tuple[tuple[str, Num], ...]:
    """Compute seconds of the step by kind of kernel, without recomputation."""
    found: list[tuple[str, Num]] = [("matrix", 0.0), ("attention", 0.0), ("memory_bound", 0.0)]
    for number, op in operators(stacks):
        kind = "matrix" if op.kind == "gemm" else "memory_bound"
        for phase, work in zip(PHASES, (op.forward, op.input_grad, op.weight_grad), strict=True):
            found.append((kind, number * work_time(op, work, phase, rates, reach)))
    return tuple(found)


def footprint(
    model: Model, stacks: Sequence[Stack], strategy: Strategy, shard: Num
) -> tuple[dict[str, Num], Mapping[str, Num]]:
    """Bytes on one device by part of the memory, and by class of tensors (`cost.tiers.HOTTEST_FIRST`).

    Model states by ZeRO stage as everywhere (`cost.memory`); what layers save, or the checkpoints of recomputed stacks
    and one stack's activations to work on. Tables hold their values and optimizer state, split over the devices.
    """
    held = states(strategy, shard)
    parameters, tables = held_parameters(stacks)
    table_value = model.dlrm.value if model.family == "dlrm" else strategy.precision.weight
    table_state = model.dlrm.state if model.family == "dlrm" else 0.0
    saved = [(stack.count, saved_activations(stack.block, strategy)) for stack in stacks]
    working: Num = 0.0
    for _, bytes_of in saved:
        working = maximum(working, bytes_of.working)
    parts = {
        "weights": parameters * held.weights + tables * table_value,
        "gradients": parameters * held.gradients,
        "optimizer": parameters * held.optimizer + tables * table_state,
        "master": parameters * held.master,
        "activations": total([count * bytes_of.kept for count, bytes_of in saved]),
        "logits": 0.0,
        "buffers": working,
        "overhead": strategy.profile.overhead,
    }
    sizes = {
        "working": working + strategy.profile.overhead,
        "weights": parameters * held.weights,
        "gradients": parts["gradients"],
        "activations": parts["activations"],
        "tables": tables * table_value,
        "states": parts["optimizer"] + parts["master"],
    }
    return parts, sizes
