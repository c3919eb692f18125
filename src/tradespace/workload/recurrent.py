"""State-space and linear-attention sublayers: Mamba-1, Mamba-2, gated delta rule.

Their projections are GEMMs; convolution and state update are memory-bound passes (their FLOPs, a few per state and
channel, run beside the traffic and are not counted as model FLOPs). Passes of the fused scan are assumed: each input
and output once forward, three times that backward.
"""

from __future__ import annotations

from tradespace.inputs.layers import LinearAttention, Mamba
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.workload.local import Local, none
from tradespace.workload.operator import Gemm, Operator, gemm_operator, pass_operator


def mamba(part: Mamba, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Mamba-1 (Gu and Dao 2023) where dt_rank is given, else Mamba-2 (Dao and Gu 2024)."""
    return _mamba1(part, model, strategy, size) if none(part.heads) else _mamba2(part, model, strategy, size)


def _mamba1(part: Mamba, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """in_proj to x and z, convolution, x_proj to step size, B and C, dt_proj, scan with A and D, out_proj."""
    inner = part.inner / strategy.tensor
    narrow = part.dt_rank + 2.0 * part.state
    norms = part.inner_norms * narrow
    row = size.tokens * strategy.precision.value
    return (
        _enter("mamba_in", 2.0 * inner, 0.0 + part.bias * 2.0 * inner, model, strategy, size),
        _passes("conv", row * inner, 2.0, inner * (part.conv + part.conv_bias)),
        gemm_operator("x_proj", Gemm.of(size.tokens, inner, narrow), bias=norms, saved=row * narrow),
        gemm_operator("dt_proj", Gemm.of(size.tokens, part.dt_rank, inner), bias=inner, saved=row * inner),
        _passes("scan", row * inner, 4.0, inner * part.state + inner),
        _leave("mamba_out", inner, part.bias * model.hidden, model, strategy, size),
    )


def _mamba2(part: Mamba, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """in_proj to z, x, B, C and step size; convolution; chunked scan with A, D and step bias; gated norm; out_proj."""
    tensor = strategy.tensor
    inner, heads = part.inner / tensor, part.heads / tensor
    mixed = inner + 2.0 * part.groups * part.state / tensor
    row = size.tokens * strategy.precision.value
    wide = inner + mixed + heads
    return (
        _enter("mamba_in", wide, part.bias * wide, model, strategy, size),
        _passes("conv", row * mixed, 2.0, mixed * (part.conv + part.conv_bias)),
        _passes("scan", row * mixed, 3.0, 3.0 * heads),
        _passes("gated_norm", row * inner, 3.0, inner),
        _leave("mamba_out", inner, part.bias * model.hidden, model, strategy, size),
    )


def linear_attention(part: LinearAttention, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Gated delta rule (Yang et al. 2024, arXiv 2412.06464): projections to q, k, v, gate and two per-head scalars;
    convolution; delta-rule update; norm per head; output projection."""
    tensor = strategy.tensor
    keys, values = part.key_heads * part.key_dim / tensor, part.value_heads * part.value_dim / tensor
    mixed, heads = 2.0 * keys + values, part.value_heads / tensor
    row = size.tokens * strategy.precision.value
    return (
        _enter("linear_in", mixed + values + 2.0 * heads, 0.0, model, strategy, size),
        _passes("conv", row * mixed, 2.0, mixed * part.conv),
        _passes("delta_rule", row * (mixed + values), 2.0, 2.0 * heads),
        _passes("gated_norm", row * values, 3.0, part.value_dim),
        _leave("linear_out", values, 0.0, model, strategy, size),
    )


def _enter(name: str, width: Num, bias: Num, model: Model, strategy: Strategy, size: Local) -> Operator:
    """The projection into the sublayer; its input and output are saved."""
    return gemm_operator(
        name,
        Gemm.of(size.tokens, model.hidden, width),
        bias=bias,
        saved=size.entering + size.tokens * width * strategy.precision.value,
        operand=size.entering,
        before=size.enter,
        after_back=size.leave,
        gather_back=size.again,
    )


def _leave(name: str, width: Num, bias: Num, model: Model, strategy: Strategy, size: Local) -> Operator:
    """The projection out of it."""
    return gemm_operator(
        name,
        Gemm.of(size.tokens, width, model.hidden),
        bias=bias,
        saved=size.tokens * width * strategy.precision.value,
        operand=size.tokens * width * strategy.precision.value,
        after=size.leave,
        before_back=size.enter,
    )


def _passes(name: str, nbytes: Num, passes: float, weights: Num) -> Operator:
    """A memory-bound kernel that saves its input."""
    return pass_operator(name, "pass", nbytes, passes, 2.0 * passes, weights=weights, saved=nbytes)
