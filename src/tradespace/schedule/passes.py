"""Passes and orders of passes: what a schedule says, without any time in it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Pass(NamedTuple):
    """One pass of one microbatch through one model chunk; chunks are numbered along the model, from 0."""

    kind: str
    chunk: int
    microbatch: int


Order: TypeAlias = list[list[Pass]]
"""The passes of each stage, in the order in which the stage runs them."""


class Kind(NamedTuple):
    """What a kind of pass waits for and what it holds.

    A pass waits for the pass `after` of the same microbatch on the chunk `step` further along the model. Beyond the
    end of the model it waits for the pass `turn` of its own chunk instead, if there is one. `held` is +1 where the
    pass takes hold of a chunk's activations when it starts, -1 where it lets go of them when it ends.
    """

    after: str | None
    step: int
    turn: str | None
    held: int


KINDS = {
    "forward": Kind("forward", -1, None, 1),
    "backward": Kind("backward", 1, "forward", -1),
    "input_grad": Kind("input_grad", 1, "forward", 0),
    "weight_grad": Kind("input_grad", 0, None, -1),
}


def alternate(forwards: list[Pass], backwards: list[Pass], warmup: int) -> list[Pass]:
    """`warmup` forwards, then one forward and one backward in turn, then the remaining backwards.

    >>> passes = alternate([Pass("forward", 0, j) for j in range(3)], [Pass("backward", 0, j) for j in range(3)], 1)
    >>> "".join(f"{p.kind[0]}{p.microbatch} " for p in passes)
    'f0 f1 b0 f2 b1 b2 '
    """
    steady = [p for pair in zip(forwards[warmup:], backwards, strict=False) for p in pair]
    return forwards[:warmup] + steady + backwards[len(forwards) - warmup :]
