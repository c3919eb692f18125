"""Transformers: blocks of operators of one microbatch on one device, one block per kind of layer.

Tensor parallelism splits heads, the MLP's inner width and the vocabulary (Shoeybi et al. 2019, section 3); with
sequence parallelism norms and residuals are split over the sequence and the all-reduces become all-gather and
reduce-scatter (Korthikanti et al. 2022, section 4.2.2). Saved activations follow that paper's section 4 operator by
operator, so its equations 1 to 6 come out as sums (tests/workload/test_activations.py).
"""

from __future__ import annotations

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.workload.adapters import trained
from tradespace.workload.local import Local, local_sizes, none, norm
from tradespace.workload.operator import Block, Gemm, Operator, Work, gemm_operator, pass_operator
from tradespace.workload.parts import layer, operators


def blocks(model: Model, strategy: Strategy) -> dict[str, Block]:
    """Block kinds of a Transformer: its kinds of layers (`layer` in a dense model), `embedding`, `head`."""
    size = local_sizes(model, strategy)
    found = {
        kind.name: Block.of(
            kind.name,
            trained(layer(kind, model, strategy, size), model, strategy),
            size.held,
            size.volume,
            model.frozen,
        )
        for kind in model.layer_kinds()
    }
    for name, operators_of in (("embedding", embedding), ("head", head)):
        found[name] = Block.of(name, trained(operators_of(model, strategy, size), model, strategy), frozen=model.frozen)
    return found


def embedding(model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Token (and learned position) look-up, split over the vocabulary, summed over the tensor group; other parts."""
    mask = size.held * (strategy.precision.mask / strategy.precision.value) if strategy.profile.dropout else 0.0
    last = (norm("embedding_norm", model, strategy, size),) if model.embedding_norm else ()
    lookup = Operator(
        "embedding",
        "lookup",
        Work(traffic=2.0 * size.volume, exchanges=size.leave),
        None,
        Work(traffic=3.0 * size.volume, exchanges=size.enter),
        weights=size.vocab * model.hidden + model.positions * model.hidden,
        saved=mask,
    )
    front = [op for part in model.front for op in operators(part, model, strategy, size)]
    return (lookup, *front, *last)


def head(model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Other parts, final norm, output projection on the vocabulary shard, cross-entropy (traffic per logit by the
    profile); no projection without a vocabulary."""
    profile = strategy.profile
    back = [op for part in model.back for op in operators(part, model, strategy, size)]
    first = (*back, norm("final_norm", model, strategy, size))
    if none(model.vocab):
        return first
    logits = gemm_operator(
        "logits",
        Gemm.of(size.tokens, model.hidden, size.vocab),
        bias=model.head_bias * size.vocab,
        saved=size.entering,
        operand=size.entering,
        before=size.enter,
        after_back=size.leave,
        gather_back=size.again,
        kind="head",
    )
    loss = pass_operator("loss", "pass", size.tokens * size.vocab, profile.loss_f, profile.loss_b)
    return (*first, logits, loss)
