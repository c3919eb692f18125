"""Multi-head latent attention (DeepSeek-AI 2024, arXiv 2405.04434, section 2.1) and its sparse-attention indexer.

Queries, keys and values pass through low ranks; heads are split over the tensor group, the down projections are
replicated in it and work on the sharded sequence (Megatron-Core's multi_latent_attention).
"""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.inputs.layers import LatentAttention
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.workload.attention import attended, fused, key_value_ring, keys_met, unfused
from tradespace.workload.local import Local, none
from tradespace.workload.operator import AttentionCore, Exchange, Gemm, Operator, Work, gemm_operator, pass_operator

UP = "mla_up_proj"


def latent_attention(part: LatentAttention, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Down and up projections with their norms, rotary parts, attention core, output projection."""
    profile, value = strategy.profile, strategy.precision.value
    heads = part.heads / strategy.tensor
    key_width, value_width = heads * (part.nope + part.rope), heads * part.v_head_dim
    rows = size.tokens
    rotated = rows * (heads + 1.0) * part.rope * value
    span = attended(model.seq, part.index_top_k, 0.0, 1.0)
    flops = (rows * span) * (key_width + value_width)
    ring = key_value_ring(strategy, strategy.micro_batch * model.seq * (key_width + value_width) * value)
    met = keys_met(span, model.seq, strategy)
    core: tuple[Operator, ...] = (fused(flops, part.nope + part.rope, met, strategy, rows * heads, ring),)
    if strategy.flash != 1.0:
        copied = rows * 2.0 * (key_width + value_width) * value
        sizes = (part.nope + part.rope, part.v_head_dim)
        core = unfused(sizes, model, strategy, size, heads * strategy.micro_batch, copied)
    out = gemm_operator(
        "out",
        Gemm.of(rows, value_width, model.hidden),
        bias=part.bias * model.hidden,
        saved=rows * value_width * value,
        after=size.leave,
        before_back=size.enter,
    )
    return (
        *_queries(part, model, strategy, size, key_width),
        *LowRank(
            "kv", part.kv_rank, part.rope, heads * (part.nope + part.v_head_dim), key_width + value_width
        ).operators(part, model, strategy, size),
        pass_operator("rope", "pass", rotated, profile.rope_f, profile.rope_b),
        *_indexer(part, model, strategy, size),
        *core,
        out,
    )


def _queries(part: LatentAttention, model: Model, strategy: Strategy, size: Local, width: Num) -> tuple[Operator, ...]:
    """Low-rank queries, or one full projection (DeepSeek-V2-Lite)."""
    if not none(part.q_rank):
        return LowRank("q", part.q_rank, 0.0, width, width).operators(part, model, strategy, size)
    saved = size.entering + size.tokens * width * strategy.precision.value
    gemm = Gemm.of(size.tokens, model.hidden, width)
    return (
        gemm_operator(
            "q",
            gemm,
            saved=saved,
            before=size.enter,
            after_back=size.leave,
            gather_back=size.again,
            operand=size.entering,
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class LowRank:
    """Down to `rank` (and `beside` more columns), a norm, up to `width`; `kept` columns are saved for attention."""

    name: str
    rank: Num
    beside: Num
    width: Num
    kept: Num

    def operators(self, part: LatentAttention, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
        """The two products and the norm between them."""
        profile, value = strategy.profile, strategy.precision.value
        rows = size.tokens * size.residual
        low = rows * self.rank * value
        down_width = self.rank + self.beside
        gather = (Exchange("all_gather", "tensor", size.tokens * down_width * value, strategy.sequence_parallel),)
        scatter = (Exchange("reduce_scatter", "tensor", size.tokens * down_width * value, strategy.sequence_parallel),)
        shared_input = size.held if self.name == "kv" else 0.0  # both down projections save one and the same input
        return (
            gemm_operator(
                f"{self.name}_down",
                Gemm.of(rows, model.hidden, down_width),
                bias=part.bias * down_width,
                saved=shared_input + rows * down_width * value,
                operand=shared_input,
            ),
            pass_operator(f"{self.name}_norm", "pass", low, profile.norm_f, profile.norm_b, weights=self.rank),
            gemm_operator(
                f"{self.name}_up",
                Gemm.of(size.tokens, self.rank, self.width),
                saved=size.tokens * self.kept * value,
                before=gather,
                after_back=scatter,
                module=UP,
            ),
        )


def _indexer(part: LatentAttention, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """The indexer scores every earlier key with a few small heads (DeepSeek-V3.2, section 2.1): causal half, queries
    times keys alone. Its projections are replicated in the tensor group."""
    if none(part.index_heads):
        return ()
    width = part.index_heads * part.index_dim
    rows, value = size.tokens * size.residual, strategy.precision.value
    scores = (rows * model.seq) * width
    core = AttentionCore(scores, part.index_dim, model.seq)
    return (
        gemm_operator("index_q", Gemm.of(rows, part.q_rank, width), saved=rows * width * value),
        gemm_operator("index_k", Gemm.of(rows, model.hidden, part.index_dim), bias=2.0 * part.index_dim),
        gemm_operator("index_weights", Gemm.of(rows, model.hidden, part.index_heads)),
        Operator("index_scores", "attention", Work(core), Work(AttentionCore(2.0 * scores, part.index_dim, model.seq))),
    )
