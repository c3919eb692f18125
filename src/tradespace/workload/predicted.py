"""Multi-token prediction (DeepSeek-AI 2024, arXiv 2412.19437, section 2.2): what stands around the layer itself.

Embedding and head are those of the model: they hold no parameters of their own, but on a pipeline's last stage the
embedding is a copy. The norm before each part (`parts.layer`) is that of the hidden state, and of the head.
"""

from __future__ import annotations

from dataclasses import replace

from tradespace.inputs.layers import Entry, SecondHead
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.workload.local import Local, norm
from tradespace.workload.operator import Gemm, Operator, Work, gemm_operator, pass_operator


def entry(part: Entry, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """The next token's embedding and its norm, then the projection of both back to the model's width."""
    copied = strategy.at_least("pipeline", 2.0) * (size.vocab * model.hidden)
    back = Work(traffic=3.0 * size.volume, exchanges=size.enter)
    shape = Gemm.of(size.tokens, 2.0 * model.hidden, model.hidden / strategy.tensor)
    return (
        Operator(
            f"{part.name}_embedding",
            "lookup",
            Work(traffic=2.0 * size.volume, exchanges=size.leave),
            None,
            back,
            weights=copied,
        ),
        norm(f"{part.name}_norm", model, strategy, size),
        gemm_operator(
            f"{part.name}_projection",
            shape,
            saved=2.0 * size.entering,
            operand=2.0 * size.entering,
            before=size.enter,
            after_back=size.leave,
            gather_back=size.again,
        ),
    )


def second_head(part: SecondHead, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Logits and loss of the predicted token; its logits live from forward to backward of the same microbatch."""
    profile = strategy.profile
    shape = Gemm.of(size.tokens, model.hidden, size.vocab)
    kept = shape.out * (profile.logit_bytes * (1.0 - strategy.fused_loss))
    logits = gemm_operator(
        f"{part.name}_logits",
        shape,
        kind="head",
        saved=size.entering + kept,
        before=size.enter,
        after_back=size.leave,
        gather_back=size.again,
    )
    loss = pass_operator(f"{part.name}_loss", "pass", shape.out, profile.loss_f, profile.loss_b)
    return (replace(logits, weights=0.0, shared=True), loss)
