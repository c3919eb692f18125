"""Softmax attention: multi-head, grouped or multi-query; full, windowed, chunked, bidirectional or across.

Tensor parallelism splits heads (Shoeybi et al. 2019, section 3); saved activations follow Korthikanti et al. 2022,
section 4, operator by operator.
"""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.inputs.layers import Attention
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num, maximum, minimum, where
from tradespace.workload.local import Local, none
from tradespace.workload.operator import AttentionCore, Exchange, Gemm, Operator, Work, gemm_operator, pass_operator

CORE = "attention_core"


@dataclass(frozen=True, slots=True, eq=False)
class Widths:
    """Heads of one device and the columns of queries, keys, values and context."""

    heads: Num
    kv_heads: Num
    queries: Num
    keys: Num
    values: Num  # columns of the value projection, 0 where keys serve as values
    context: Num
    plain: bool  # values as wide as keys

    @staticmethod
    def of(part: Attention, tensor: Num) -> Widths:
        """Shards of the heads (key/value heads are replicated where there are fewer than tensor ranks)."""
        heads, kv_heads = part.heads / tensor, maximum(part.kv_heads / tensor, 1.0)
        queries, keys = heads * part.head_dim, kv_heads * part.head_dim
        plain = none(part.v_head_dim)
        values = keys if plain else kv_heads * part.v_head_dim
        shared = none(part.shared_kv)
        context = queries if plain else heads * part.v_head_dim
        return Widths(heads, kv_heads, queries, keys, values if shared else 0.0, context, plain and shared)


def attended(seq: Num, window: Num, chunk: Num, causal: Num) -> Num:
    """Twice the keys that a token sees on average: seq for causal attention, 2 seq for the full square,
    2w - w(w - 1)/seq for a window w < seq, the chunk for chunks.

    >>> attended(4096.0, 128.0, 0.0, 1.0), attended(4096.0, 0.0, 0.0, 1.0)
    (252.03125, 4096.0)
    """
    if not none(window):
        return where(window < seq, 2.0 * window - window * (window - 1.0) / seq, seq)
    if not none(chunk):
        return minimum(chunk, seq)
    return seq if isinstance(causal, float) and causal == 1.0 else seq * (2.0 - causal)


def attention(part: Attention, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """q/k/v projections, positions, attention core, output projection."""
    profile, value = strategy.profile, strategy.precision.value
    copies = profile.saves_copies
    width = Widths.of(part, strategy.tensor)
    both = width.queries + (2.0 * width.keys if width.plain else width.keys + width.values)
    wide = both if none(part.gate) else both + (width.queries if part.gate == 1.0 else width.heads)
    qkv = gemm_operator(
        "qkv",
        Gemm.of(size.tokens, model.hidden, wide),
        bias=part.qkv_bias * both,
        saved=size.entering + size.tokens * (wide if none(copies) else wide + copies * both) * value,
        operand=size.entering,
        fused=3.0 if none(part.shared_kv) else 2.0,
        before=size.enter,
        after_back=size.leave,
        gather_back=size.again,
    )
    out = gemm_operator(
        "out",
        Gemm.of(size.tokens, width.context, model.hidden),
        bias=part.out_bias * model.hidden,
        saved=size.tokens * width.context * value,
        after=size.leave,
        before_back=size.enter,
    )
    rotated = size.tokens * (width.queries + width.keys) * value
    rope = (pass_operator("rope", "pass", rotated, profile.rope_f, profile.rope_b),) if model.rotary else ()
    return (
        qkv,
        *_qk_norm(part, strategy, width, rotated),
        *rope,
        *attention_core(part, model, strategy, size, width),
        *_output_gate(part, strategy, size, width),
        out,
    )


def _output_gate(part: Attention, strategy: Strategy, size: Local, width: Widths) -> tuple[Operator, ...]:
    """The context times a gate: one more product of the inner kind of a gated MLP."""
    if none(part.gate):
        return ()
    gated = size.tokens * width.context * strategy.precision.value
    profile = strategy.profile
    return (pass_operator("gate", "pass", gated, 2.0 * profile.gated_f, 2.0 * profile.gated_b, saved=gated),)


def _qk_norm(part: Attention, strategy: Strategy, width: Widths, rotated: Num) -> tuple[Operator, ...]:
    """Norms on queries and keys; per head dimension, or over all heads (OLMo 2)."""
    each = part.qk_norm * 2.0 * part.head_dim
    full = part.qk_norm_full * (width.heads + width.kv_heads) * part.head_dim
    used = maximum(part.qk_norm, part.qk_norm_full)
    if none(used):
        return ()
    profile, held = strategy.profile, used * rotated
    weights = each + full
    return (pass_operator("qk_norm", "pass", held, profile.norm_f, profile.norm_b, weights=weights, saved=held),)


def attention_core(
    part: Attention, model: Model, strategy: Strategy, size: Local, width: Widths
) -> tuple[Operator, ...]:
    """softmax(q k^T) v: one fused kernel, or score matrices that are written and read.

    Causal half: forward s_l s heads (d_qk + d_v) FLOPs per sequence (`attended`), fused backward 2.5 times that (Dao
    2023, section 3.1: five products instead of two). Unfused kernels compute the full square: two batched GEMMs
    forward, four back.
    """
    rows = size.tokens
    sinks = part.sinks * width.heads
    if strategy.flash == 1.0:
        keys = attended(model.seq, part.window, part.chunk, part.causal)
        if width.plain:
            flops = 2.0 * (rows * keys) * (width.heads * part.head_dim)
        else:
            flops = (rows * keys) * (width.queries + width.context)
        ring = _key_value_ring(part, model, strategy, width)
        met = keys_met(minimum(keys, model.seq), model.seq, strategy)
        return (fused(flops, part.head_dim, met, strategy, rows * width.heads, ring, sinks),)
    batch = width.heads * strategy.micro_batch
    copied = rows * (2.0 * width.heads + 2.0 * width.kv_heads) * part.head_dim * strategy.precision.value
    sizes = (part.head_dim, part.head_dim if none(part.v_head_dim) else part.v_head_dim)
    return unfused(sizes, model, strategy, size, batch, copied, sinks)


def keys_met(keys: Num, seq: Num, strategy: Strategy) -> Num:
    """Keys that one kernel sees of the `keys` that a token attends to: a ring brings them rank by rank, seq / context
    at a time (Liu et al. 2023, arXiv 2310.01889, section 3); an all-gather brings all before the kernel starts."""
    ring = strategy.profile.context_ring
    if none(ring):
        return keys
    return keys + ring * (minimum(keys, seq / strategy.context) - keys)


def fused(
    flops: Num, head_dim: Num, keys: Num, strategy: Strategy, rows: Num, ring: tuple[Exchange, ...], weights: Num = 0.0
) -> Operator:
    """One fused attention kernel; it saves two statistics per query row and head (`rows` of them)."""
    return Operator(
        "attention",
        "attention",
        Work(AttentionCore(flops, head_dim, keys), exchanges=ring),
        Work(AttentionCore(2.5 * flops, head_dim, keys), exchanges=ring + ring),
        weights=weights,
        saved=2.0 * strategy.precision.full * rows,
        module=CORE,
    )


def unfused(
    sizes: tuple[Num, Num], model: Model, strategy: Strategy, size: Local, batch: Num, copied: Num, weights: Num = 0.0
) -> tuple[Operator, ...]:
    """Score matrices of the full square for `batch` heads of all sequences; `sizes` = widths of a key and of a value
    head, `copied` = bytes of queries, keys, values and context that are copied around the products."""
    profile, value, rows = strategy.profile, strategy.precision.value, size.tokens / strategy.micro_batch
    scores = (rows * model.seq) * batch
    keys, values = (
        (Gemm.of(rows, width, model.seq, batch), Gemm.of(rows, width, model.seq, 2.0 * batch)) for width in sizes
    )
    kept = value + profile.dropout * (strategy.precision.mask + value)
    return (
        Operator("scores", "score", Work(keys[0]), Work(keys[1]), weights=weights, module=CORE),
        Operator(
            "softmax",
            "pass",
            Work(traffic=scores * value * profile.score_f),
            Work(traffic=scores * value * profile.score_b),
            saved=scores * kept,
            module=CORE,
        ),
        Operator("context", "score", Work(values[0]), Work(values[1]), module=CORE),
        pass_operator("copies", "pass", copied / 4.0, profile.copy_f, profile.copy_b),
    )


def _key_value_ring(part: Attention, model: Model, strategy: Strategy, width: Widths) -> tuple[Exchange, ...]:
    volume = strategy.micro_batch * model.seq * 2.0 * width.kv_heads * part.head_dim * strategy.precision.value
    return key_value_ring(strategy, volume)


def key_value_ring(strategy: Strategy, volume: Num) -> tuple[Exchange, ...]:
    """Context parallelism: every rank's keys and values (`volume` bytes of all ranks) reach every other rank of the
    group, by an all-gather (Llama 3, arXiv 2407.21783) or from neighbour to neighbour round a ring (Liu et al. 2023,
    arXiv 2310.01889), as the profile says."""
    ring = strategy.profile.context_ring
    gathered = Exchange("all_gather", "context", volume, 1.0 - ring)
    return (gathered,) if none(ring) else (gathered, Exchange("ring_pass", "context", volume, ring))
