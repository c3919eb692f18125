"""The dense decoder family: blocks of operators of one microbatch on one device.

Tensor parallelism splits heads, the MLP's inner width and the vocabulary (Shoeybi et al. 2019, section 3); with
sequence parallelism norms and residuals are split over the sequence and the all-reduces become all-gather and
reduce-scatter (Korthikanti et al. 2022, section 4.2.2). Saved activations follow that paper's section 4 operator by
operator, so its equations 1 to 6 come out as sums (tests/workload/test_activations.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num, ceil, maximum
from tradespace.workload.operator import (
    AttentionCore,
    Block,
    Exchange,
    Gemm,
    Operator,
    Work,
    gemm_operator,
    pass_operator,
)


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """Sizes on one device: tokens of a microbatch, shards of heads and widths, bytes of the exchanged activation."""

    tokens: Num
    heads: Num
    kv_heads: Num
    ffn: Num
    vocab: Num
    volume: Num  # bytes of the whole residual activation of the tensor group
    held: Num  # bytes of the residual activation on one device
    enter: tuple[Exchange, ...]  # gathers the sharded sequence before a column-split GEMM
    leave: tuple[Exchange, ...]  # sums partial results: reduce-scatter with sequence parallel, else all-reduce


def local_sizes(model: Model, strategy: Strategy) -> Local:
    """Shards of the model on one device (key/value heads are replicated where there are fewer than tensor ranks)."""
    tensor, sharded = strategy.tensor, strategy.sequence_parallel
    tokens = strategy.micro_batch * (model.seq / strategy.context)
    padded = padded_vocab(model, strategy)
    residual = 1.0 - sharded + sharded / tensor
    volume = tokens * model.hidden * strategy.precision.value
    return Local(
        tokens=tokens,
        heads=model.heads / tensor,
        kv_heads=maximum(model.kv_heads / tensor, 1.0),
        ffn=model.ffn / tensor,
        vocab=padded / tensor,
        volume=volume,
        held=volume * residual,
        enter=(Exchange("all_gather", "tensor", volume, sharded),),
        leave=(
            Exchange("reduce_scatter", "tensor", volume, sharded),
            Exchange("all_reduce", "tensor", volume, 1.0 - sharded),
        ),
    )


def padded_vocab(model: Model, strategy: Strategy) -> Num:
    """Vocabulary padded to a multiple of (profile's multiple x tensor), as vocabulary parallelism needs it."""
    unit = strategy.profile.vocab_multiple * strategy.tensor
    return ceil(model.vocab / unit) * unit


def blocks(model: Model, strategy: Strategy) -> dict[str, Block]:
    """Block kinds of a dense decoder: `layer`, `embedding`, `head`."""
    size = local_sizes(model, strategy)
    layer = (*attention(model, strategy, size), *mlp(model, strategy, size))
    return {
        "layer": Block.of("layer", layer, size.held, size.volume),
        "embedding": Block.of("embedding", embedding(model, strategy, size)),
        "head": Block.of("head", head(model, strategy, size)),
    }


def _norm(name: str, model: Model, strategy: Strategy, size: Local) -> Operator:
    profile, held = strategy.profile, size.held
    return pass_operator(
        name, "pass", held, profile.norm_f, profile.norm_b, weights=model.norm_vectors * model.hidden, saved=held
    )


def _residual(name: str, strategy: Strategy, size: Local) -> Operator:
    profile, held = strategy.profile, size.held
    mask = held * (strategy.precision.mask / strategy.precision.value) if profile.dropout else 0.0
    return pass_operator(name, "pass", held, profile.residual_f, profile.residual_b, saved=mask)


def attention(model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Norm, q/k/v projections, positions, attention core, output projection, residual."""
    profile, value = strategy.profile, strategy.precision.value
    width, kv_width = size.heads * model.head_dim, size.kv_heads * model.head_dim
    both = width + 2.0 * kv_width
    qkv = gemm_operator(
        "qkv",
        Gemm.of(size.tokens, model.hidden, both),
        bias=model.qkv_bias * both,
        saved=size.held + size.tokens * both * value,
        before=size.enter,
        after_back=size.leave,
        gather_back=size.enter,
    )
    out = gemm_operator(
        "out",
        Gemm.of(size.tokens, width, model.hidden),
        bias=model.out_bias * model.hidden,
        saved=size.tokens * width * value,
        after=size.leave,
        before_back=size.enter,
    )
    rotated = size.tokens * (width + kv_width) * value
    rope = (pass_operator("rope", "pass", rotated, profile.rope_f, profile.rope_b),) if model.rotary else ()
    post = (_norm("norm1_post", model, strategy, size),) if model.norms > 2.0 else ()
    return (
        _norm("norm1", model, strategy, size),
        qkv,
        *_qk_norm(model, strategy, size, rotated),
        *rope,
        *attention_core(model, strategy, size),
        out,
        *post,
        _residual("residual1", strategy, size),
    )


def _qk_norm(model: Model, strategy: Strategy, size: Local, rotated: Num) -> tuple[Operator, ...]:
    """Norms on queries and keys; per head dimension, or over all heads (OLMo 2)."""
    each = model.qk_norm * 2.0 * model.head_dim
    full = model.qk_norm_full * (size.heads + size.kv_heads) * model.head_dim
    used = maximum(model.qk_norm, model.qk_norm_full)
    if isinstance(used, float) and used == 0.0:
        return ()
    profile, held = strategy.profile, used * rotated
    return (pass_operator("qk_norm", "pass", held, profile.norm_f, profile.norm_b, weights=each + full, saved=held),)


def attention_core(model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """softmax(q k^T) v: one fused kernel, or score matrices that are written and read.

    Causal half: forward 2 s^2 heads head_dim FLOPs per sequence, fused backward 2.5 times that (Dao 2023, section
    3.1: five products instead of two). Unfused kernels compute the full square: two batched GEMMs forward, four back.
    """
    value, rows = strategy.precision.value, size.tokens
    keys = model.seq
    if strategy.flash == 1.0:
        flops = 2.0 * (rows * keys) * (size.heads * model.head_dim)
        ring = _key_value_ring(model, strategy, size)
        stats = 2.0 * strategy.precision.full * rows * size.heads
        return (
            Operator(
                "attention",
                "attention",
                Work(AttentionCore(flops, model.head_dim, keys), exchanges=ring),
                Work(AttentionCore(2.5 * flops, model.head_dim, keys), exchanges=ring + ring),
                saved=stats,
                core=True,
            ),
        )
    profile = strategy.profile
    scores = (rows * keys) * size.heads
    batch = size.heads * strategy.micro_batch
    per_sequence = rows / strategy.micro_batch
    product = Gemm.of(per_sequence, model.head_dim, keys, batch)
    back = Gemm.of(per_sequence, model.head_dim, keys, 2.0 * batch)
    copied = rows * (2.0 * size.heads + 2.0 * size.kv_heads) * model.head_dim * value
    kept = value + profile.dropout * (strategy.precision.mask + value)
    return (
        Operator("scores", "score", Work(product), Work(back), core=True),
        Operator(
            "softmax",
            "pass",
            Work(traffic=scores * value * profile.score_f),
            Work(traffic=scores * value * profile.score_b),
            saved=scores * kept,
            core=True,
        ),
        Operator("context", "score", Work(product), Work(back), core=True),
        pass_operator("copies", "pass", copied / 4.0, profile.copy_f, profile.copy_b),
    )


def _key_value_ring(model: Model, strategy: Strategy, size: Local) -> tuple[Exchange, ...]:
    """Ring attention: every rank's keys and values pass every other rank of the context group (Liu et al. 2023)."""
    volume = strategy.micro_batch * model.seq * 2.0 * size.kv_heads * model.head_dim * strategy.precision.value
    return (Exchange("all_gather", "context", volume),)


def mlp(model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Norm, one or two inner projections, activation, outer projection, residual."""
    profile, value = strategy.profile, strategy.precision.value
    inner = size.tokens * size.ffn * value
    wide = (1.0 + model.gated) * size.ffn
    up = gemm_operator(
        "mlp_in",
        Gemm.of(size.tokens, model.hidden, wide),
        bias=model.mlp_bias * wide,
        saved=size.held + inner * (1.0 + model.gated),
        before=size.enter,
        after_back=size.leave,
        gather_back=size.enter,
    )
    plain_f, gated_f = profile.plain_f, 2.0 * profile.gated_f
    plain_b, gated_b = profile.plain_b, 2.0 * profile.gated_b
    activation = pass_operator(
        "activation",
        "pass",
        inner,
        plain_f + model.gated * (gated_f - plain_f),
        plain_b + model.gated * (gated_b - plain_b),
    )
    down = gemm_operator(
        "mlp_out",
        Gemm.of(size.tokens, size.ffn, model.hidden),
        bias=model.mlp_bias * model.hidden,
        saved=inner,
        after=size.leave,
        before_back=size.enter,
    )
    norm = (_norm("norm2", model, strategy, size),) if model.norms > 1.0 else ()
    post = (_norm("norm2_post", model, strategy, size),) if model.norms > 2.0 else ()
    return (*norm, up, activation, down, *post, _residual("residual2", strategy, size))


def embedding(model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Token (and learned position) look-up, split over the vocabulary, summed over the tensor group."""
    mask = size.held * (strategy.precision.mask / strategy.precision.value) if strategy.profile.dropout else 0.0
    norm = (_norm("embedding_norm", model, strategy, size),) if model.embedding_norm else ()
    return (
        Operator(
            "embedding",
            "lookup",
            Work(traffic=2.0 * size.volume, exchanges=size.leave),
            None,
            Work(traffic=3.0 * size.volume, exchanges=size.enter),
            weights=size.vocab * model.hidden + model.positions * model.hidden,
            saved=mask,
        ),
        *norm,
    )


def head(model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Final norm, output projection on the vocabulary shard, cross-entropy (traffic per logit by the profile)."""
    profile = strategy.profile
    logits = gemm_operator(
        "logits",
        Gemm.of(size.tokens, model.hidden, size.vocab),
        bias=model.head_bias * size.vocab,
        saved=size.held,
        before=size.enter,
        after_back=size.leave,
        gather_back=size.enter,
        kind="head",
    )
    loss = pass_operator("loss", "pass", size.tokens * size.vocab, profile.loss_f, profile.loss_b)
    return (_norm("final_norm", model, strategy, size), logits, loss)
