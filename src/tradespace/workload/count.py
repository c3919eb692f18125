"""Exact parameter counts and model FLOPs, summed over the same operators that time and memory come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Optimizer, Precision, Profile, Strategy
from tradespace.num import Num
from tradespace.workload.families import blocks_of
from tradespace.workload.operator import AttentionCore, Block

_WHOLE = Strategy(
    profile=Profile(name="one device", attention=(), vocab_multiple=1.0),
    precision=Precision(name="bf16", gemm="bf16", value=2.0, weight=2.0, gradient=4.0, reduce=4.0, master=4.0),
    optimizer=Optimizer(name="adam", state=8.0, traffic=0.0),
    global_batch=1.0,
)


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """Parameter counts: all, used by one token, and those without the input embedding; `parts` sum to `total`."""

    total: Num
    active: Num
    active_excl_input_embedding: Num
    parts: dict[str, Num]


@lru_cache(maxsize=64)
def whole(model: Model) -> dict[str, Block]:
    """Blocks of one sequence on one device that holds everything: what counts are taken from."""
    return blocks_of(model, _WHOLE)


def parameters(model: Model) -> Parameters:
    """Parameters of the model, exactly (tied tables counted once, no padding).

    >>> from tradespace.inputs.load import model
    >>> int(parameters(model("llama-3.1-8b")).total)
    8030261248
    """
    kinds = whole(model)
    table = model.vocab * model.hidden
    parts: dict[str, Num] = {"embedding": table, "positions": model.positions * model.hidden}
    parts.update({op.name: op.weights for op in kinds["embedding"].operators[1:]})
    for op in kinds["layer"].operators:
        if isinstance(op.weights, float) and op.weights == 0.0:
            continue
        parts[op.name] = model.layers * op.weights
    for op in kinds["head"].operators:
        if op.name == "logits":
            parts["head"] = op.weights - model.tied * table
        elif op.name != "loss":
            parts[op.name] = op.weights
    total = sum(parts.values(), 0.0)
    return Parameters(total, total, total - table, parts)


def flops_per_token(model: Model) -> Num:
    """Model FLOPs of training one token: 6 N + 3 sum over layers of heads (d_qk + d_v) seq.

    N: parameters that multiply activations (norm scales too), with the head, tied or not, without the embedding
    tables. Attention is the causal half of the square. Recomputation is not counted. Source: Chowdhery et al. 2022,
    appendix B, with half the square.

    >>> from tradespace.inputs.load import model
    >>> round(flops_per_token(model("llama-3.1-8b", seq=8192)) / 1e9, 4)
    51.472
    """
    kinds = whole(model)
    multiplied = model.layers * kinds["layer"].weights + kinds["head"].weights
    return 6.0 * multiplied + 3.0 * model.layers * core_flops(kinds["layer"]) / model.seq


def core_flops(layer: Block) -> Num:
    """Forward FLOPs of a layer's attention core for one microbatch."""
    total: Num = 0.0
    for op in layer.operators:
        if isinstance(op.forward.shape, AttentionCore):
            total = total + op.forward.shape.flops
    return total


def recomputed_flops(model: Model) -> tuple[Num, Num]:
    """FLOPs per token that selective and full recomputation repeat: the attention core, and all of the forward."""
    layer = whole(model)["layer"]
    core = model.layers * core_flops(layer) / model.seq
    return core, core + model.layers * 2.0 * layer.weights
