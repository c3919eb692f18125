"""Low-rank adapters and frozen weights (LoRA, Hu et al. 2021, arXiv 2106.09685)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.workload.local import none
from tradespace.workload.operator import Gemm, Operator, gemm_operator


def adapted(operators: Sequence[Operator], model: Model, strategy: Strategy) -> tuple[Operator, ...]:
    """The operators with what adapters add and what freezing leaves out.

    Each linear layer gets two narrow products beside it, inputs x rank and rank x outputs; projections that are fused
    here (q, k and v; gate and up) share one adapter, as in Megatron's fused linear_qkv and linear_fc1. Frozen weights
    keep their input gradient, so 4 of 6 FLOPs per weight stay.
    """
    if none(model.adapter_rank) and none(model.frozen):
        return tuple(operators)
    found: list[Operator] = []
    for op in operators:
        found.append(replace(op, weight_grad=None) if model.frozen == 1.0 else op)
        shape = op.forward.shape
        if op.kind == "gemm" and isinstance(shape, Gemm) and not none(model.adapter_rank):
            kept = shape.m * model.adapter_rank * strategy.precision.value
            down = Gemm.of(shape.m, shape.k, model.adapter_rank)
            up = Gemm.of(shape.m, model.adapter_rank, shape.n)
            found.append(gemm_operator(f"{op.name}_adapter_in", down, kind="adapter"))
            found.append(gemm_operator(f"{op.name}_adapter_out", up, kind="adapter", saved=kept))
    return tuple(found)
