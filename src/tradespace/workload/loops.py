"""The table of families that run as stacks of operators in COMET's training loop, and what is counted over stacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tradespace.errors import InputError, nearest
from tradespace.inputs.families import OTHER
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.workload import dlrm, layer_table, transformer_table
from tradespace.workload.layer_table import Stack
from tradespace.workload.operator import Gemm, Operator

FAMILIES: Mapping[str, Callable[[Model, Strategy, Num, Num], tuple[Stack, ...]]] = {
    "dense": lambda model, strategy, samples, devices: transformer_table.stacks(model, strategy, samples),  # noqa: ARG005
    "table": lambda model, strategy, samples, devices: layer_table.stacks(model, strategy, samples),  # noqa: ARG005
    "dlrm": dlrm.stacks,
}


def stacks_of(model: Model, strategy: Strategy, samples: Num, devices: Num) -> tuple[Stack, ...]:
    """Stacks on one device for `samples` samples of a replica, in a job of `devices`."""
    if model.family not in FAMILIES:
        raise InputError(f"{model.name}: family '{model.family}' has no layer table{nearest(model.family, FAMILIES)}")
    if model.kinds:
        raise InputError(f"{model.name}: COMET's loop knows Transformers with one kind of dense layer alone")
    return FAMILIES[model.family](model, strategy, samples, devices)


def is_looped(model: Model) -> bool:
    """Whether a model runs in COMET's loop alone.

    >>> from tradespace.inputs import load
    >>> is_looped(load.model("dlrm-dcnv2")), is_looped(load.model("gpt3-175b"))
    (True, False)
    """
    return model.family in OTHER


def operators(stacks: Sequence[Stack]) -> list[tuple[Num, Operator]]:
    """All operators with how often each runs."""
    return [(stack.count, op) for stack in stacks for op in stack.block.operators]


def held_parameters(stacks: Sequence[Stack]) -> tuple[Num, Num]:
    """Parameters on one device: of layers, and of look-up tables (a table that a stack looks up repeatedly is one)."""
    layers = sum((n * op.weights for n, op in operators(stacks) if op.kind != "lookup"), 0.0)
    return layers, sum((op.weights for _, op in operators(stacks) if op.kind == "lookup"), 0.0)


def product_flops(stacks: Sequence[Stack]) -> Num:
    """FLOPs of all matrix products of one device and step, forward and both gradients, without recomputation."""
    flops: Num = 0.0
    for number, op in operators(stacks):
        for work in (op.forward, op.input_grad, op.weight_grad):
            if work is not None and isinstance(work.shape, Gemm):
                flops = flops + number * work.shape.flops
    return flops
