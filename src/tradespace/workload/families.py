"""The table of model families: a family is a function from model and strategy to blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.workload import transformer
from tradespace.workload.operator import Block

FAMILIES: Mapping[str, Callable[[Model, Strategy], dict[str, Block]]] = {"dense": transformer.blocks}


def blocks_of(model: Model, strategy: Strategy) -> dict[str, Block]:
    """Blocks of one microbatch on one device: kind of block -> operators."""
    return FAMILIES[model.family](model, strategy)
