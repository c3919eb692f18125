"""Layers over pipeline stages: a few classes of stage with the number of layers that each holds."""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.num import Bool, Num, at_least, both, either, floor, is_multiple, maximum, minimum


@dataclass(frozen=True, slots=True, eq=False)
class StageClass:
    """Stages that hold the same blocks: `count` of them, the first one at `index` (0 = first stage)."""

    name: str
    count: Num
    index: Num
    layers: Num
    embedding: Num  # 1 where the stage holds the input embedding
    head: Num  # 1 where it holds final norm, output head and loss


def partition(layers: Num, pipeline: Num, head_cost: Num) -> tuple[StageClass, StageClass, StageClass, StageClass]:
    """Classes first, heavier middle, lighter middle, last for `layers` over `pipeline` stages.

    `head_cost` is how many layers the split counts the head as (0: layers are split by count). Stages get
    floor(layers / pipeline), the remainder goes to the middle stages first: the ends carry the embedding and the head
    (126 layers on 16 stages: 7, fourteen times 8, 7, as Llama 3 405B was trained: Grattafiori et al. 2024, 3.3.2).

    >>> [(int(c.count), int(c.layers)) for c in partition(126.0, 16.0, 0.0)]
    [(1, 7), (14, 8), (0, 0), (1, 7)]
    """
    several = at_least(pipeline, 2.0)
    extra = several * minimum(head_cost, floor(layers / pipeline))
    places = layers + extra
    base = floor(places / pipeline)
    rest = places - base * pipeline
    middle = maximum(pipeline - 2.0, 0.0)
    heavy = minimum(rest, middle)
    single = 1.0 - several
    first_layers = base + (rest - heavy)
    last_layers = several * maximum(base - extra, 0.0)
    return (
        StageClass("first", 1.0, 0.0, first_layers, 1.0, single),
        StageClass("middle", heavy, 1.0, at_least(heavy, 1.0) * (base + 1.0), 0.0, 0.0),
        StageClass("lighter middle", middle - heavy, 1.0 + heavy, at_least(middle - heavy, 1.0) * base, 0.0, 0.0),
        StageClass("last", 1.0 - single, pipeline - 1.0, last_layers, 0.0, 1.0 - single),
    )


def chunks_fit(layers: Num, pipeline: Num, virtual_stages: Num) -> Bool:
    """Whether layers can be spread over stages and model chunks.

    Stages may be uneven; chunks of an interleaved schedule hold the same number of layers each, with the embedding,
    the head or both counted as one layer where that makes it even (Megatron-LM's account-for options).

    >>> chunks_fit(126.0, 16.0, 8.0), chunks_fit(126.0, 16.0, 5.0), chunks_fit(126.0, 4.0, 1.0)
    (True, False, True)
    """
    chunks = pipeline * virtual_stages
    alone = either(is_multiple(layers, chunks), is_multiple(layers + 1.0, chunks))
    even = either(alone, is_multiple(layers + 2.0, chunks))
    return both(pipeline <= layers, either(virtual_stages == 1.0, even))
