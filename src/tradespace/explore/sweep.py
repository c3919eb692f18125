"""Sweeps: a whole space in blocks of bounded memory, keeping the best candidates and the counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tradespace.explore.reduce import Best, Block, Nearest, Reducer
from tradespace.explore.space import Index, Space
from tradespace.num import Num
from tradespace.predict import predict
from tradespace.step import Step

BLOCK = 1 << 20
"""Candidates of one block: 8 MiB per full-size array, a dozen of them live."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names and numbers of glibc's malloc.h
Objective = Callable[[Step], Num]
Filter = Callable[[Step], NDArray[np.bool_] | bool]
Progress = Callable[[int, int], None]


def step_time(step: Step) -> Num:
    """The objective of a sweep that looks for speed: seconds per step."""
    return step.step_time


def memory_total(step: Step) -> Num:
    """The objective of a sweep that looks for room: bytes on the worst stage."""
    return step.memory_total


def memory_share(step: Step) -> Num:
    """How full the memory is: bytes on the worst stage over the capacity."""
    return step.memory_total / step.capacity


def fits(step: Step) -> NDArray[np.bool_] | bool:
    """The candidates whose memory fits, at risk or surely."""
    return step.fits


def fits_surely(step: Step) -> NDArray[np.bool_] | bool:
    """The candidates whose memory fits with the room that allocators need."""
    return step.fits_surely


@dataclass(eq=False)
class Counts:
    """Candidates in all, legal ones that meet the constraints, those of them that fit, and how many candidates break
    each constraint."""

    total: int = 0
    legal: int = 0
    fitting: int = 0
    excluded: dict[str, int] = field(default_factory=dict)

    def merge(self, other: Counts) -> None:
        """Add what others counted."""
        self.total += other.total
        self.legal += other.legal
        self.fitting += other.fitting
        for name, number in other.excluded.items():
            self.excluded[name] = self.excluded.get(name, 0) + number


def survey(
    space: Space,
    reducers: Sequence[Reducer],
    *,
    allowed: Filter | None = None,
    room: Filter = fits,
    block: int = BLOCK,
    inside: Index | None = None,
    progress: Progress | None = None,
) -> Counts:
    """Predict a space (or a slice of it) block by block and show each block to the reducers."""
    keep_heap()
    counts = Counts(excluded=dict.fromkeys(space.constraints, 0))
    for index, step, ruled in _steps(space, block, inside, counts):
        size = int(np.prod([cut.stop - cut.start for cut in index]))
        valid = step.legal if ruled is None else step.legal & ruled
        valid = valid if allowed is None else valid & allowed(step)
        good = valid & room(step)
        found = Block(space, index, step, valid, good, counts.fitting)
        for reducer in reducers:
            reducer.add(found)
        counts.merge(Counts(size, _count(valid, size), _count(good, size)))
        if progress is not None:
            progress(counts.total, space.size)
    return counts


def _steps(
    space: Space, block: int, inside: Index | None, counts: Counts
) -> Iterator[tuple[Index, Step, NDArray[np.bool_] | bool | None]]:
    """Each block's step with the candidates that meet the constraints (None without any)."""
    for index in space.blocks(block, inside):
        step = predict(*space.at(index))
        size = int(np.prod([cut.stop - cut.start for cut in index]))
        ruled: NDArray[np.bool_] | bool | None = None
        for name, condition in space.constraints.items():
            met = np.asarray(condition.value(space.lookup(step)), dtype=bool)
            counts.excluded[name] += size - _count(met, size)
            ruled = met if ruled is None else ruled & met
        yield index, step, ruled


def _count(flags: NDArray[np.bool_] | bool, size: int) -> int:
    """True candidates of a block of `size`; flags may miss axes that they do not depend on."""
    array = np.asarray(flags)
    return int(np.count_nonzero(array)) * (size // array.size)


def keep_heap() -> None:
    """Let glibc keep freed memory instead of returning it page by page: a third of the time of a sweep went into page
    faults, and 40 % in workers of Dask, which tells glibc to return more. Other C libraries are left as they are."""
    from ctypes import CDLL

    try:
        mallopt = CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    for parameter, size in ((M_MMAP_THRESHOLD, 1 << 25), (M_TRIM_THRESHOLD, 1 << 30)):
        mallopt(parameter, size)


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
    progress: Progress | None = None,
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
    best, nearest = Best(keep, objective), Nearest(1, memory_share)
    counts = survey(space, (best, nearest), allowed=allowed, room=room, block=block, progress=progress)
    near = int(nearest.positions[0]) if len(nearest.positions) else -1
    seconds = time.perf_counter() - started
    return Swept(space, counts.total, counts.legal, counts.fitting, seconds, best.values, best.positions, near)
