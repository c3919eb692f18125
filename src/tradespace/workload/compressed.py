"""DeepSeek-V4's attention: a window of uncompressed keys, and keys compressed 4 or 128 to one beyond it."""

from __future__ import annotations

from tradespace.inputs.layers import CompressedAttention
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num, minimum
from tradespace.workload.attention import attended, fused, key_value_ring, keys_met
from tradespace.workload.local import Local, none
from tradespace.workload.operator import AttentionCore, Gemm, Operator, Work, gemm_operator, pass_operator


def compressed_attention(
    part: CompressedAttention, model: Model, strategy: Strategy, size: Local
) -> tuple[Operator, ...]:
    """Low-rank queries, one shared key/value head, compressors, attention with sinks, block-diagonal output."""
    profile, value, rows = strategy.profile, strategy.precision.value, size.tokens
    heads = part.heads / strategy.tensor
    width = heads * part.head_dim
    groups = part.out_groups / strategy.tensor
    local = rows * size.residual
    low = local * part.q_rank * value
    span = attended(model.seq, part.window, 0.0, 1.0) + _compressed_keys(part, model.seq)
    ring = key_value_ring(strategy, strategy.micro_batch * model.seq * part.head_dim * value)
    met = keys_met(span, model.seq, strategy)
    return (
        gemm_operator(
            "q_down", Gemm.of(local, model.hidden, part.q_rank), saved=size.held + low, after_back=size.leave
        ),
        pass_operator("q_norm", "pass", low, profile.norm_f, profile.norm_b, weights=part.q_rank),
        gemm_operator("q_up", Gemm.of(rows, part.q_rank, width), saved=rows * width * value, before=size.enter),
        gemm_operator("kv", Gemm.of(local, model.hidden, part.head_dim), bias=part.head_dim, saved=local * value),
        *_compressor("compress", part, part.head_dim, model, size),
        *_indexer(part, model, size),
        fused((rows * span) * (2.0 * width), part.head_dim, met, strategy, rows * heads, ring, heads),
        gemm_operator("out_groups", Gemm.of(rows, width / groups, part.out_rank, groups), saved=rows * width * value),
        gemm_operator(
            "out",
            Gemm.of(rows, groups * part.out_rank, model.hidden),
            saved=rows * groups * part.out_rank * value,
            after=size.leave,
            before_back=size.enter,
        ),
    )


def _compressed_keys(part: CompressedAttention, seq: Num) -> Num:
    """Twice the compressed keys that a token sees on average: the causal half of seq / rate, at most the top-k."""
    if none(part.rate):
        return 0.0
    keys = seq / part.rate
    return keys if none(part.index_top_k) else minimum(keys, 2.0 * part.index_top_k)


def _compressor(name: str, part: CompressedAttention, width: Num, model: Model, size: Local) -> tuple[Operator, ...]:
    """Projections to keys and their gates, position biases, a norm: for each overlapping series."""
    if none(part.rate):
        return ()
    columns = part.series * width
    shape = Gemm.of(size.tokens * size.residual, model.hidden, 2.0 * columns)
    return (gemm_operator(name, shape, bias=part.rate * columns + width),)


def _indexer(part: CompressedAttention, model: Model, size: Local) -> tuple[Operator, ...]:
    """Small heads that score the compressed keys."""
    if none(part.index_heads):
        return ()
    rows, width = size.tokens * size.residual, part.index_heads * part.index_dim
    scores = (rows * (model.seq / part.rate)) * width
    core, back = (AttentionCore(n * scores, part.index_dim, model.seq) for n in (1.0, 2.0))
    return (
        *_compressor("index_compress", part, part.index_dim, model, size),
        gemm_operator("index_q", Gemm.of(rows, part.q_rank, width)),
        gemm_operator("index_weights", Gemm.of(rows, model.hidden, part.index_heads)),
        Operator("index_scores", "attention", Work(core), Work(back)),
    )


def hyper_connection(name: str, streams: Num, model: Model, size: Local) -> Operator:
    """Mixing of parallel residual streams before and after a sublayer (hyper-connections, arXiv 2409.19606): a product
    of all streams with (2 + n) n columns, and two reads and a write of each stream."""
    columns = (2.0 + streams) * streams
    shape = Gemm.of(size.tokens * size.residual, streams * model.hidden, columns)
    forward = Work(shape, traffic=3.0 * streams * size.held)
    back = Work(shape.input_grad, traffic=6.0 * streams * size.held)
    weights = shape.right + columns + 3.0
    saved = (streams - 1.0) * size.held
    return Operator(name, "gemm", forward, back, Work(shape.weight_grad), weights=weights, saved=saved)
