"""Adapters and frozen weights (LoRA, Hu et al. 2021, arXiv 2106.09685); GEMM inputs saved in low precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.workload.local import none
from tradespace.workload.operator import Gemm, Operator, gemm_operator

WIDE = ("mlp_", "shared_")
"""How names of operators of MLPs and shared experts start."""


def trained(operators: Sequence[Operator], model: Model, strategy: Strategy) -> tuple[Operator, ...]:
    """The operators with what adapters add, what freezing leaves out, and inputs saved in the GEMMs' own type.

    Each linear layer gets two narrow products beside it, inputs x rank and rank x outputs; of projections that are
    multiplied together (q, k and v; gate and up) each gets its own, or all share one (`adapter_fused`). Routed experts
    have none. Frozen weights keep their input gradient, so 4 of 6 FLOPs per weight stay, and their input is not saved
    unless an adapter needs it.
    """
    plain = none(strategy.precision.operand) or none(strategy.profile.saves_operands)
    if plain and none(model.adapter_rank) and none(model.frozen):
        return tuple(operators)
    found: list[Operator] = []
    for op in operators:
        beside = _adapter(op, model, strategy)
        saved = op.saved - _unsaved(op, model, strategy, plain, bool(beside))
        gradient = None if model.frozen == 1.0 else op.weight_grad
        found += [replace(op, weight_grad=gradient, saved=saved), *beside]
    return tuple(found)


def _unsaved(op: Operator, model: Model, strategy: Strategy, plain: bool, adapted: bool) -> Num:
    """Bytes of its input that an operator need not save: all of a frozen one without adapter (adapters work in 16 bits
    and need it), else what low precision saves; the head stays in 16 bits."""
    if model.frozen == 1.0:
        return 0.0 if adapted else op.operand
    if plain or adapted or op.kind not in ("gemm", "grouped"):
        return 0.0
    precision = strategy.precision
    return op.operand * (strategy.profile.saves_operands * (1.0 - precision.operand / precision.value))


def _adapter(op: Operator, model: Model, strategy: Strategy) -> tuple[Operator, ...]:
    """The two products beside a linear layer, if it has an adapter."""
    shape = op.forward.shape
    if op.kind != "gemm" or not isinstance(shape, Gemm) or none(model.adapter_rank):
        return ()
    if none(model.adapter_mlp) and op.name.startswith(WIDE):
        return ()
    number = 1.0 + (1.0 - model.adapter_fused) * (op.fused - 1.0)
    kept = shape.m * (number * model.adapter_rank) * strategy.precision.value
    down = Gemm.of(shape.m, shape.k, number * model.adapter_rank)
    up = Gemm.of(shape.m, model.adapter_rank, shape.n)
    return (
        gemm_operator(f"{op.name}_adapter_in", down, kind="adapter"),
        gemm_operator(f"{op.name}_adapter_out", up, kind="adapter", saved=kept),
    )
