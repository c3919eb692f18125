"""Layers over pipeline stages: a few classes of stage with the number of layers that each holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tradespace.inputs.model import Model
from tradespace.num import Bool, Num, at_least, both, either, floor, maximum, minimum, take, whole


@dataclass(frozen=True, slots=True, eq=False)
class StageClass:
    """Stages that hold the same blocks: `count` of them, the first one at `index` (0 = first stage).

    `numbers` are the layers of each kind, a mean over the class where its stages differ; they sum to `layers`.
    """

    name: str
    count: Num
    index: Num
    layers: Num
    embedding: Num  # 1 where the stage holds the input embedding
    head: Num  # 1 where it holds final norm, output head and loss
    numbers: Mapping[str, Num]


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
        _dense("first", 1.0, 0.0, first_layers, 1.0, single),
        _dense("middle", heavy, 1.0, at_least(heavy, 1.0) * (base + 1.0), 0.0, 0.0),
        _dense("lighter middle", middle - heavy, 1.0 + heavy, at_least(middle - heavy, 1.0) * base, 0.0, 0.0),
        _dense("last", 1.0 - single, pipeline - 1.0, last_layers, 0.0, 1.0 - single),
    )


def _dense(name: str, count: Num, index: Num, layers: Num, embedding: Num, head: Num) -> StageClass:
    """A class whose layers are all of one kind."""
    return StageClass(name, count, index, layers, embedding, head, {"layer": layers})


def by_kind(stages: tuple[StageClass, ...], model: Model) -> tuple[StageClass, ...]:
    """The classes with the layers of each kind that the model's pattern puts there.

    Stages hold runs of layers in order, so a class holds one run as well; its stages share what the run has of each
    kind. With virtual stages layers go around; the same runs are taken, which places dense first layers on the first
    stage alone.

    >>> from tradespace.inputs.load import model
    >>> deepseek = model("deepseek-v3")
    >>> [dict(c.numbers) for c in by_kind(partition(61.0, 2.0, 0.0), deepseek)][0]
    {'dense': 3.0, 'moe': 28.0}
    """
    if not model.kinds:
        return stages
    found: list[StageClass] = []
    start: Num = 0.0
    for stage in stages:
        end = start + stage.count * stage.layers
        share = maximum(stage.count, 1.0)
        numbers = {
            kind.name: (take(table, whole(end)) - take(table, whole(start))) / share
            for kind, table in zip(model.kinds, _running(model), strict=True)
        }
        found.append(replace(stage, numbers=numbers))
        start = end
    return tuple(found)


@lru_cache(maxsize=64)
def _running(model: Model) -> list[NDArray[np.float64]]:
    """For each kind, how many of the first 0, 1, 2 ... layers are of it."""
    pattern = np.asarray(model.pattern)
    return [np.concatenate(([0.0], np.cumsum(pattern == i, dtype=np.float64))) for i in range(len(model.kinds))]


def chunks_fit(layers: Num, pipeline: Num, virtual_stages: Num) -> Bool:
    """Whether layers can be spread over stages and model chunks: every chunk holds a layer, the embedding or the head.

    Stages and chunks may be uneven: where the larger chunks come first, stages run larger ones at the same time and the
    step is that of the fullest stage (the timeline: within 1.5 % on average). Such layouts are set by hand in
    Megatron-LM (pipeline-model-parallel-layout); what a framework cannot do, its own rules say.

    >>> chunks_fit(126.0, 16.0, 8.0), chunks_fit(61.0, 2.0, 8.0), chunks_fit(61.0, 16.0, 4.0)
    (True, True, False)
    """
    return both(pipeline <= layers, either(virtual_stages == 1.0, pipeline * virtual_stages <= layers + 2.0))
