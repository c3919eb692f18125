"""Sweeps: a whole space in blocks of bounded memory, keeping the best candidates and the counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tradespace.explore.space import Index, Space
from tradespace.num import Num
from tradespace.predict import predict
from tradespace.step import Step

BLOCK = 1 << 20
"""Candidates of one block: 8 MiB per full-size array, a dozen of them live."""

Objective = Callable[[Step], Num]
Filter = Callable[[Step], NDArray[np.bool_] | bool]


def step_time(step: Step) -> Num:
    """The objective of a sweep that looks for speed: seconds per step."""
    return step.step_time


def memory_total(step: Step) -> Num:
    """The objective of a sweep that looks for room: bytes on the worst stage."""
    return step.memory_total


def fits(step: Step) -> NDArray[np.bool_] | bool:
    """The candidates whose memory fits, at risk or surely."""
    return step.fits


def fits_surely(step: Step) -> NDArray[np.bool_] | bool:
    """The candidates whose memory fits with the room that allocators need."""
    return step.fits_surely


@dataclass(eq=False)
class Best:
    """The best candidates so far: objective values (ascending) and flat positions in the space."""

    keep: int
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    positions: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def add(self, values: NDArray[np.float64], positions: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
        """Take what is better than the worst kept; ties go to the lower position, so any block size agrees."""
        flat = values.reshape(-1)
        worst = self.values[-1] if len(self.values) == self.keep else np.inf
        if worst < np.inf:
            (close,) = np.nonzero(flat <= worst)
        else:
            (close,) = np.nonzero(np.isfinite(flat))
        if len(close) == 0:
            return
        if len(close) > 4 * self.keep:
            limit = np.partition(flat[close], self.keep - 1)[self.keep - 1]
            close = close[flat[close] <= limit]
        merged = np.concatenate([self.values, flat[close]])
        where = np.concatenate([self.positions, positions(close)])
        order = np.lexsort((where, merged))[: self.keep]
        self.values, self.positions = merged[order], where[order]


@dataclass(frozen=True, eq=False)
class Swept:
    """What a sweep found: counts, seconds, and the best candidates by position in the space.

    `nearest` is the position of the legal candidate with the smallest share of its capacity, -1 without any.
    """

    space: Space
    total: int
    legal: int
    fitting: int
    seconds: float
    values: NDArray[np.float64]
    positions: NDArray[np.int64]
    nearest: int

    def step(self, rank: int) -> Step:
        """The Step of the rank-th best candidate (0 = best)."""
        return self.at(int(self.positions[rank]))

    def at(self, position: int) -> Step:
        """The Step of a candidate by its flat position."""
        index = np.unravel_index(position, self.space.shape)
        return predict(*self.space.candidate(tuple(int(i) for i in index)))


def sweep(
    space: Space,
    *,
    keep: int = 10,
    objective: Objective = step_time,
    allowed: Filter | None = None,
    room: Filter = fits,
    block: int = BLOCK,
    progress: Callable[[int, int], None] | None = None,
) -> Swept:
    """Every candidate of a space; memory is bounded by the block, whatever the size of the space.

    `allowed` drops candidates (a framework's), `room` decides which of the legal ones fit, `progress(done, total)`
    is called after each block. The best are legal, fit and are sorted by the objective, ties by position.

    >>> from tradespace.explore.space import Axis
    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100", devices=8)
    >>> base = load.strategy("global_batch=64", cluster=cluster)
    >>> found = sweep(Space(load.model("llama-3.1-8b"), cluster, base, (Axis.of("strategy.micro_batch", [1, 2, 4]),)))
    >>> found.total, found.legal
    (3, 3)
    """
    started = time.perf_counter()
    keep_heap()
    best, nearest = Best(keep), Best(1)
    total = legal = fitting = 0
    for index in space.blocks(block):
        step = predict(*space.at(index))
        shape = tuple(cut.stop - cut.start for cut in index)
        valid = step.legal if allowed is None else step.legal & allowed(step)
        size = int(np.prod(shape))
        legal += _count(valid, size)
        good = valid & room(step)
        here = _count(good, size)
        fitting += here

        def flat(inside: NDArray[np.int64], index: Index = index, shape: tuple[int, ...] = shape) -> NDArray[np.int64]:
            return _positions(space, index, shape, inside)

        if here:
            best.add(_full(np.where(good, objective(step), np.inf), shape), flat)
        if not fitting:
            nearest.add(_full(np.where(valid, step.memory_total / step.capacity, np.inf), shape), flat)
        total += size
        if progress is not None:
            progress(total, space.size)
    near = int(nearest.positions[0]) if len(nearest.positions) else -1
    seconds = time.perf_counter() - started
    return Swept(space, total, legal, fitting, seconds, best.values, best.positions, near)


def keep_heap() -> None:
    """Free one large array: glibc then keeps freed memory instead of returning it page by page (a third of the time
    of a sweep went into page faults)."""
    np.empty(4_000_000 - 16)


def _count(flags: NDArray[np.bool_] | bool, size: int) -> int:
    """True candidates of a block of `size`; flags may miss axes that they do not depend on."""
    array = np.asarray(flags)
    return int(np.count_nonzero(array)) * (size // array.size)


def _full(values: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Values over all axes of a block, axes of one position included."""
    return np.broadcast_to(values, tuple(n for n in shape if n > 1)).reshape(shape)


def _positions(space: Space, index: Index, shape: tuple[int, ...], inside: NDArray[np.int64]) -> NDArray[np.int64]:
    """Flat positions in the space of flat positions in a block."""
    local = np.unravel_index(inside, shape)
    moved = tuple(part + cut.start for part, cut in zip(local, index, strict=True))
    return np.asarray(np.ravel_multi_index(moved, space.shape), dtype=np.int64)
