"""What no framework can run: named conditions, True where a candidate breaks them."""

from __future__ import annotations

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
    "sequence": "the sequence does not split over context (in two halves each) and tensor ranks",
    "layers": "the layers do not spread over the stages, or not evenly over the chunks of an interleaved schedule",
    "virtual_stages": "virtual stages need a 1F1B pipeline and as many microbatches as stages, or a multiple of them",
    "sequence_parallel": "sequence parallelism needs a tensor degree above 1",
    "shard": "the shard group does not divide the data-parallel ranks",
}


def illegal(model: Model, strategy: Strategy, data: Num, microbatches: Num) -> dict[str, Bool]:
    """Conditions of `REASONS` for every candidate, each on the axes that it touches."""
    tensor, context, pipeline = strategy.tensor, strategy.context, strategy.pipeline
    whole_data = both(data == floor(data), data >= 1.0)
    pieces = context * (1.0 + at_least(context, 2.0)) * (1.0 + strategy.sequence_parallel * (tensor - 1.0))
    shares = either(is_multiple(model.kv_heads, tensor), is_multiple(tensor, model.kv_heads))
    interleaved = strategy.virtual_stages > 1.0
    groups = both(pipeline > 1.0, is_multiple(microbatches, pipeline))
    if strategy.schedule == "gpipe":
        groups = False
    group_size = where(strategy.shard > 0.0, strategy.shard, data * context)
    return {
        "devices": negate(whole_data),
        "batch": negate(microbatches == strategy.global_batch / (data * strategy.micro_batch)),
        "heads": negate(is_multiple(model.heads, tensor)),
        "kv_heads": negate(shares),
        "ffn": negate(is_multiple(model.ffn, tensor)),
        "sequence": negate(is_multiple(model.seq, pieces)),
        "layers": negate(chunks_fit(model.layers, pipeline, strategy.virtual_stages)),
        "virtual_stages": both(interleaved, negate(groups)),
        "sequence_parallel": both(strategy.sequence_parallel > 0.0, tensor == 1.0),
        "shard": negate(is_multiple(data * context, group_size)),
    }
