"""What no framework can run: named conditions, True where a candidate breaks them."""

from __future__ import annotations

from functools import reduce

from tradespace.inputs.layers import Attention, Experts, Part
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Bool, Num, at_least, both, either, floor, is_multiple, negate, where
from tradespace.workload.partition import chunks_fit

REASONS = {
    "devices": "the devices are no multiple of tensor x context x pipeline",
    "batch": "the global batch is no multiple of data x microbatch",
    "heads": "the query heads are no multiple of the tensor degree",
    "kv_heads": "key/value heads and tensor degree do not divide one another",
    "ffn": "the MLP width is no multiple of the tensor degree",
    "experts": "the experts or their width do not split over the expert and expert-tensor degrees",
    "expert_group": "expert x expert_tensor does not divide tensor x context x data",
    "sequence": "the sequence does not split over context (in two halves each) and tensor ranks",
    "layers": "there are more stages than layers, or more chunks than layers, embedding and head",
    "virtual_stages": "virtual stages need a 1F1B pipeline and as many microbatches as stages, or a multiple of them",
    "sequence_parallel": "sequence parallelism needs a tensor degree above 1",
    "loop": "COMET's loop knows tensor and data parallelism alone (no pipeline, context or sequence parallelism; a "
    "recommendation model data parallelism alone)",
    "shard": "the shard group does not divide the data-parallel ranks",
}


def illegal(model: Model, strategy: Strategy, data: Num, microbatches: Num) -> dict[str, Bool]:
    """Conditions of `REASONS` for every candidate, each on the axes that it touches."""
    tensor, context, pipeline = strategy.tensor, strategy.context, strategy.pipeline
    whole_data = both(data == floor(data), data >= 1.0)
    pieces = context * (1.0 + at_least(context, 2.0)) * (1.0 + strategy.sequence_parallel * (tensor - 1.0))
    parts = [part for kind in model.layer_kinds() for part in kind.parts]
    interleaved = strategy.virtual_stages > 1.0
    groups = both(pipeline > 1.0, is_multiple(microbatches, pipeline))
    if strategy.schedule == "gpipe":
        groups = False
    whole = isinstance(strategy.shard, float) and strategy.shard == 0.0
    group_size = 1.0 if whole else where(strategy.shard > 0.0, strategy.shard, data * context)
    return {
        "devices": negate(whole_data),
        "batch": negate(microbatches == strategy.global_batch / (data * strategy.micro_batch)),
        **_divided(parts, tensor),
        **_experts(parts, strategy, data),
        "sequence": negate(is_multiple(model.seq, pieces)),
        "layers": negate(chunks_fit(model.layers, pipeline, strategy.virtual_stages)),
        "virtual_stages": both(interleaved, negate(groups)),
        "sequence_parallel": both(strategy.sequence_parallel > 0.0, tensor == 1.0),
        "shard": False if whole else negate(is_multiple(data * context, group_size)),
    }


def _divided(parts: list[Part], tensor: Num) -> dict[str, Bool]:
    """Heads and widths that the tensor degree must divide, of every kind of layer."""
    wrong: dict[str, list[Bool]] = {"heads": [], "kv_heads": [], "ffn": []}
    for part in parts:
        for reason, width in part.split:
            wrong[reason].append(negate(is_multiple(width, tensor)))
        if isinstance(part, Attention):
            shares = either(is_multiple(part.kv_heads, tensor), is_multiple(tensor, part.kv_heads))
            wrong["kv_heads"].append(negate(shares))
    return {reason: reduce(either, found) if found else False for reason, found in wrong.items()}


def _experts(parts: list[Part], strategy: Strategy, data: Num) -> dict[str, Bool]:
    """Experts over the expert group, and that group over the devices of a stage; a model without experts has none."""
    found = [part for part in parts if isinstance(part, Experts)]
    wrong: Bool = False if found else strategy.expert > 1.0
    for part in found:
        width = is_multiple(part.ffn, strategy.expert_tensor)
        wrong = either(wrong, negate(both(is_multiple(part.experts, strategy.expert), width)))
    if not found:
        return {"experts": wrong}
    group = strategy.expert * strategy.expert_tensor
    return {"experts": wrong, "expert_group": negate(is_multiple(strategy.tensor * strategy.context * data, group))}
