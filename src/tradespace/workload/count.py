"""Exact parameter counts and model FLOPs, summed over the same operators that time and memory come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Optimizer, Precision, Profile, Strategy
from tradespace.num import Num
from tradespace.workload.families import blocks_of
from tradespace.workload.loops import held_parameters, is_looped, operators, product_flops, stacks_of
from tradespace.workload.operator import AttentionCore, Block, Gemm, Operator

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


def numbers(model: Model) -> dict[str, Num]:
    """How many layers of each kind a model has.

    >>> from tradespace.inputs.load import model
    >>> numbers(model("llama-3.1-8b"))
    {'layer': 32.0}
    """
    if not model.kinds:
        return {"layer": model.layers}
    return {kind.name: float(model.pattern.count(float(i))) for i, kind in enumerate(model.kinds)}


def parameters(model: Model) -> Parameters:
    """Parameters of the model, exactly (tied tables counted once, no padding). Active ones are those that one token
    uses: all but the routed experts that it is not sent to.

    >>> from tradespace.inputs.load import model
    >>> int(parameters(model("llama-3.1-8b")).total)
    8030261248
    """
    if is_looped(model):
        return _of_stacks(model)
    kinds = whole(model)
    table = model.vocab * model.hidden
    parts: dict[str, Num] = {"embedding": table, "positions": model.positions * model.hidden}
    unused: Num = 0.0
    for name, number in numbers(model).items():
        for op in kinds[name].operators:
            if isinstance(op.weights, float) and op.weights == 0.0:
                continue
            parts[op.name] = parts.get(op.name, 0.0) + number * op.weights
            unused = unused + number * (op.weights - used(op))
    for op in (*kinds["embedding"].operators[1:], *kinds["head"].operators):
        if op.name == "logits":
            parts["head"] = op.weights - model.tied * table
        elif op.name != "loss":
            parts[op.name] = op.weights
    total = sum(parts.values(), 0.0)
    inputs = table + sum((op.weights for op in kinds["embedding"].operators[1:] if op.kind == "lookup"), 0.0)
    return Parameters(total, total - unused, total - unused - inputs, parts)


def _of_stacks(model: Model) -> Parameters:
    """Parameters of a layer table or a recommendation model; active are those outside look-up tables."""
    stacks = stacks_of(model, _WHOLE, 1.0, 1.0)
    parts: dict[str, Num] = {}
    for number, op in operators(stacks):
        if op.kind == "lookup":
            parts[op.name] = op.weights
        elif not (isinstance(op.weights, float) and op.weights == 0.0):
            parts[op.name] = parts.get(op.name, 0.0) + number * op.weights
    layers, tables = held_parameters(stacks)
    return Parameters(layers + tables, layers, layers, parts)


def used(op: Operator) -> Num:
    """Weights of an operator that one token multiplies.

    >>> from tradespace.workload.operator import Operator, Work
    >>> used(Operator("experts", "grouped", Work(), weights=64.0, chosen=(2.0, 8.0)))
    16.0
    """
    if op.shared and isinstance(op.forward.shape, Gemm):
        return op.forward.shape.right
    return op.weights if op.chosen is None else op.weights * op.chosen[0] / op.chosen[1]


def multiplied(block: Block) -> Num:
    """Weights of a block that multiply every token (scales of norms too)."""
    plain = ("gemm", "pass", "head", "attention", "adapter")
    if all(op.chosen is None and op.kind in plain and not op.shared for op in block.operators):
        return block.weights
    return sum((used(op) for op in block.operators if op.kind not in ("once", "held", "lookup")), 0.0)


def flops_per_token(model: Model) -> Num:
    """Model FLOPs of training one token: 6 N + 3 sum over layers of heads (d_qk + d_v) s_l.

    N: parameters that multiply activations of a token (norm scales too, routed experts by their share), with the head,
    tied or not, without the embedding tables. s_l = seq for causal attention (half the square), 2w - w(w - 1)/seq for a
    window w, 2 seq for encoders. Frozen weights cost 4 N (no weight gradient), adapters beside them 6 N. Recomputation
    is not counted. Source: Chowdhery et al. 2022, appendix B, with half the square.

    >>> from tradespace.inputs.load import model
    >>> round(flops_per_token(model("llama-3.1-8b", seq=8192)) / 1e9, 4)
    51.472
    """
    if is_looped(model):
        return product_flops(stacks_of(model, _WHOLE, 1.0, 1.0))
    weights, core = forward_sums(model)
    kinds = whole(model)
    passed = weights + multiplied(kinds["head"])
    front = sum((op.weights for op in kinds["embedding"].operators if op.kind == "gemm"), 0.0)
    if model.front:
        passed = passed + front
    found = 6.0 * passed + 3.0 * core / model.seq
    if isinstance(model.frozen, float) and model.frozen == 0.0:
        return found
    adapters = sum((number * kinds[name].adapters for name, number in numbers(model).items()), 0.0)
    return found - 2.0 * model.frozen * (passed - adapters)


def forward_sums(model: Model) -> tuple[Num, Num]:
    """Over all layers: weights that multiply a token, and forward FLOPs of the attention cores of one sequence."""
    kinds = whole(model)
    weights: Num = 0.0
    core: Num = 0.0
    for name, number in numbers(model).items():
        weights = weights + number * multiplied(kinds[name])
        core = core + number * core_flops(kinds[name])
    return weights, core


def core_flops(layer: Block) -> Num:
    """Forward FLOPs of a layer's attention core for one microbatch."""
    total: Num = 0.0
    for op in layer.operators:
        if isinstance(op.forward.shape, AttentionCore):
            total = total + op.forward.shape.flops
    return total


def recomputed_flops(model: Model) -> tuple[Num, Num]:
    """FLOPs per token that selective and full recomputation repeat: the attention core, and all of the forward."""
    weights, total = forward_sums(model)
    core = total / model.seq
    return core, core + 2.0 * weights
