"""The dense MLP, split over its inner width (Shoeybi et al. 2019, section 3)."""

from __future__ import annotations

from tradespace.inputs.layers import Mlp
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.workload.local import Local, activation, kept_widths
from tradespace.workload.operator import Gemm, Operator, gemm_operator


def mlp(part: Mlp, model: Model, strategy: Strategy, size: Local, prefix: str = "mlp") -> tuple[Operator, ...]:
    """One or two inner projections, activation, outer projection."""
    value = strategy.precision.value
    ffn = part.ffn / strategy.tensor
    inner = size.tokens * ffn * value
    wide = (1.0 + part.gated) * ffn
    up = gemm_operator(
        f"{prefix}_in",
        Gemm.of(size.tokens, model.hidden, wide),
        bias=part.bias * wide,
        saved=size.entering + inner * kept_widths(part.gated, strategy),
        operand=size.entering,
        fused=1.0 + part.gated,
        before=size.enter,
        after_back=size.leave,
        gather_back=size.again,
    )
    down = gemm_operator(
        f"{prefix}_out",
        Gemm.of(size.tokens, ffn, model.hidden),
        bias=part.bias * model.hidden,
        saved=inner,
        operand=inner,
        after=size.leave,
        before_back=size.enter,
    )
    name = "activation" if prefix == "mlp" else f"{prefix}_activation"
    return (up, activation(name, strategy, inner, part.gated), down)
