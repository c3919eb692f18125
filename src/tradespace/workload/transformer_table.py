"""The Transformer as COMET's table of nine layers (Kadiyala et al. 2022, arXiv 2211.16648, section III).

Q, K, V (column split), QK and softmax V (batched per head), Concat (the output projection, row split), XW1 (column
split), XW2 (row split), and one memory-bound pass for the norms and residuals. Attention is the full square; softmax
and activation functions are not counted; embedding and head are left out.
"""

from __future__ import annotations

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.workload.layer_table import Stack, gradients
from tradespace.workload.operator import Block, Exchange, Gemm, Operator, Work


def stacks(model: Model, strategy: Strategy, samples: Num) -> tuple[Stack, ...]:
    """One stack of nine layers, `model.layers` times, for `samples` sequences of a replica.

    Exchanges of T d values on the tensor group: forward all-reduces after Concat and XW2, input-gradient all-reduces at
    Q and at XW2, and at K an all-gather of the sharded checkpoint that the next stack is recomputed from: with the
    recomputed forward ones six all-reduces and one all-gather per stack. Weight gradients are reduced over the data
    group. (The all-gather runs beside the weight gradient of a d x d layer: only then do the reference times of
    tests/studies/comet_reference.csv come out within 0.2 %; before the recomputation it would add up to 3 %.)

    >>> from tradespace.inputs import load
    >>> strategy = load.strategy("tp=8,sp=0,global_batch=8", cluster=load.cluster("dgx-a100"))
    >>> [stack] = stacks(load.model("transformer-1t"), strategy, 8.0)
    >>> stack.block.weights * 8 == 12 * 25600**2, stack.count
    (True, 128.0)
    """
    value = strategy.precision.value
    tokens = samples * model.seq
    volume = tokens * model.hidden * value
    summed = (Exchange("all_reduce", "tensor", volume),)
    operators = (
        *_projections(model, strategy, tokens, summed, volume),
        *_square(model, strategy, samples),
        _linear("Concat", tokens, _width(model) / strategy.tensor, model.hidden, strategy, forward=summed),
        *_mlp(model, strategy, tokens, summed),
        _norms(model, strategy, tokens),
    )
    block = Block.of("layer", operators, boundary=volume / strategy.tensor, volume=volume)
    return (Stack(block, model.layers),)


def _width(model: Model) -> Num:
    return model.heads * model.head_dim


def _linear(
    name: str,
    tokens: Num,
    inputs: Num,
    outputs: Num,
    strategy: Strategy,
    *,
    forward: tuple[Exchange, ...] = (),
    back: tuple[Exchange, ...] = (),
    saved: Num = 0.0,
) -> Operator:
    """A projection whose weights are reduced over the data group; `saved` values."""
    shape = Gemm.of(tokens, inputs, outputs)
    return Operator(
        name,
        "gemm",
        Work(shape, exchanges=forward),
        Work(shape.input_grad, exchanges=back),
        Work(shape.weight_grad, exchanges=gradients(shape.right, strategy)),
        weights=shape.right,
        saved=saved * strategy.precision.value,
    )


def _projections(
    model: Model, strategy: Strategy, tokens: Num, summed: tuple[Exchange, ...], volume: Num
) -> tuple[Operator, ...]:
    """Q, K and V; their outputs are saved (2 bytes each per value: 6 T d of the working activations)."""
    gathered = (Exchange("all_gather", "tensor", volume, strategy.at_least("recompute", 2.0)),)
    width = _width(model) / strategy.tensor
    kv_width = model.kv_heads * model.head_dim / strategy.tensor
    q = _linear("Q", tokens, model.hidden, width, strategy, back=summed, saved=tokens * width)
    k = _linear("K", tokens, model.hidden, kv_width, strategy, back=gathered, saved=tokens * kv_width)
    v = _linear("V", tokens, model.hidden, kv_width, strategy, saved=tokens * kv_width)
    return q, k, v


def _square(model: Model, strategy: Strategy, samples: Num) -> tuple[Operator, ...]:
    """QK and softmax V, one product per head and sequence, the full square; one score matrix is saved."""
    batch = samples * (model.heads / strategy.tensor)
    value = strategy.precision.value
    found = []
    for name, k, n in (("QK", model.head_dim, model.seq), ("softmax V", model.seq, model.head_dim)):
        shape = Gemm.of(model.seq, k, n, batch)
        works = (Work(shape), Work(shape.input_grad), Work(shape.weight_grad))
        found.append(Operator(name, "gemm", *works, saved=batch * (model.seq * n) * value))
    return tuple(found)


def _mlp(model: Model, strategy: Strategy, tokens: Num, summed: tuple[Exchange, ...]) -> tuple[Operator, ...]:
    """XW1 and XW2; the inner activation is saved (gated MLPs have two inner projections in XW1)."""
    ffn = model.ffn / strategy.tensor
    inner = (1.0 + model.gated) * ffn
    return (
        _linear("XW1", tokens, model.hidden, inner, strategy, saved=tokens * inner),
        _linear("XW2", tokens, ffn, model.hidden, strategy, forward=summed, back=summed),
    )


def _norms(model: Model, strategy: Strategy, tokens: Num) -> Operator:
    """Two norms, each read and written, not split over the tensor group: 10 T d FLOPs and 8 T d bytes forward and in
    the input gradient."""
    values = tokens * model.hidden
    work = Work(traffic=4.0 * values * strategy.precision.value, flops=10.0 * values)
    return Operator("LayerNorm", "pass", work, work)
