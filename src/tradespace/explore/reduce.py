"""What a sweep keeps of the blocks that pass by: each reducer is small, merges with another of its kind, and gives the
same answer whatever the blocks and their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tradespace.explore.space import Index, Space
from tradespace.num import Bool, Num
from tradespace.step import Step

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Measure = Callable[[Step], Num]
CELLS_LIMIT = 1 << 20
"""Cell entries that are held, at least, before entries of the same cell are merged."""
BIN_BITS = 49
"""Bits of a float that a histogram drops: 3 of the 52 mantissa bits are left, 8 bins for each factor of two."""
BINS = 1 << (63 - BIN_BITS)


@dataclass(eq=False)
class Block:
    """One call of `predict`: where it lies in the space, its step, and which candidates are legal and which count.

    `seen` says how many candidates of earlier blocks counted.
    """

    space: Space
    index: Index
    step: Step
    valid: Bool
    good: Bool
    seen: int
    _known: dict[int, Floats] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions of each axis, those of one position included."""
        return tuple(cut.stop - cut.start for cut in self.index)

    def full(self, values: Any) -> Any:
        """Numbers or flags over all axes."""
        return np.broadcast_to(values, tuple(n for n in self.shape if n > 1)).reshape(self.shape)

    def masked(self, measure: Measure) -> Floats:
        """A measure over all axes, infinite where a candidate does not count."""
        if id(measure) not in self._known:
            self._known[id(measure)] = self.full(np.where(self.good, measure(self.step), np.inf))
        return self._known[id(measure)]

    def positions(self, inside: Integers) -> Integers:
        """Flat positions in the space of flat positions in the block."""
        local = np.unravel_index(inside, self.shape)
        moved = tuple(part + cut.start for part, cut in zip(local, self.index, strict=True))
        return np.asarray(np.ravel_multi_index(moved, self.space.shape), dtype=np.int64)


class Reducer(Protocol):
    """Takes blocks, merges with its own kind, and is a few named arrays to write down."""

    def add(self, block: Block) -> None:
        """Take one block."""

    def merge(self, other: Self) -> None:
        """Take what another one found."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything it found."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Become one that found this."""


@dataclass(eq=False)
class Best:
    """The best candidates so far: values (ascending) and flat positions in the space; ties go to the lower position."""

    keep: int
    measure: Measure
    values: Floats = field(default_factory=lambda: np.empty(0))
    positions: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def add(self, block: Block) -> None:
        """Take what is better than the worst kept."""
        self._take(block.masked(self.measure), block)

    def _take(self, values: Floats, block: Block) -> None:
        flat = values.reshape(-1)
        if not self.keep:
            return
        worst = self.values[-1] if len(self.values) == self.keep else np.inf
        close = np.flatnonzero(flat <= worst) if worst < np.inf else np.flatnonzero(np.isfinite(flat))
        if len(close) > 4 * self.keep:
            limit = np.partition(flat[close], self.keep - 1)[self.keep - 1]
            close = close[flat[close] <= limit]
        if len(close):
            self._join(flat[close], block.positions(close))

    def _join(self, values: Floats, positions: Integers) -> None:
        merged, where = np.concatenate([self.values, values]), np.concatenate([self.positions, positions])
        order = np.lexsort((where, merged))[: self.keep]
        self.values, self.positions = merged[order], where[order]

    def merge(self, other: Self) -> None:
        """Take what another one found."""
        self._join(other.values, other.positions)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything it found."""
        return {"values": self.values, "positions": self.positions}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Become one that found this."""
        self.values, self.positions = state["values"], state["positions"]


class Nearest(Best):
    """The legal candidate that fills the least of its memory, looked for until one counts."""

    def add(self, block: Block) -> None:
        """Take the least full legal candidates."""
        if not block.seen:
            self._take(block.full(np.where(block.valid, self.measure(block.step), np.inf)), block)


@dataclass(eq=False)
class Cells:
    """The best candidate of each cell: of each combination of positions of some axes; ties to the lower position."""

    axes: tuple[int, ...]
    measure: Measure
    parts: list[tuple[Integers, Floats, Integers]] = field(default_factory=list)
    loose: int = 0

    def add(self, block: Block) -> None:
        """Take the best of each cell that the block touches."""
        shape = block.shape
        rest = tuple(i for i in range(len(shape)) if i not in self.axes)
        inner = tuple(shape[i] for i in self.axes)
        table = block.masked(self.measure).transpose(*self.axes, *rest).reshape(prod(inner), -1)
        where = table.argmin(axis=1)
        values = table[np.arange(len(table)), where]
        found = np.flatnonzero(np.isfinite(values))
        cell, other = np.unravel_index(found, inner), np.unravel_index(where[found], tuple(shape[i] for i in rest))
        place = dict(zip((*self.axes, *rest), (*cell, *other), strict=True))
        moved = [place[i] + cut.start for i, cut in enumerate(block.index)]
        sizes = block.space.shape
        number = np.ravel_multi_index([moved[i] for i in self.axes], tuple(sizes[i] for i in self.axes))
        self._join(np.atleast_1d(number), values[found], np.ravel_multi_index(moved, sizes))

    def _join(self, cells: Any, values: Floats, positions: Any) -> None:
        self.parts.append((np.asarray(cells, np.int64), values, np.asarray(positions, np.int64)))
        self.loose += len(values)
        if self.loose > max(CELLS_LIMIT, 2 * len(self.parts[0][0])):
            self.found()

    def found(self) -> tuple[Integers, Floats, Integers]:
        """Cells (ascending), values and positions."""
        if len(self.parts) != 1:
            empty = (np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))
            cells, values, positions = (np.concatenate(column) for column in zip(empty, *self.parts, strict=True))
            order = np.lexsort((positions, values, cells))
            cells, values, positions = cells[order], values[order], positions[order]
            first = np.concatenate([[True], cells[1:] != cells[:-1]]) if len(cells) else np.empty(0, bool)
            self.parts, self.loose = [(cells[first], values[first], positions[first])], 0
        return self.parts[0]

    def merge(self, other: Self) -> None:
        """Take what another one found."""
        self._join(*other.found())

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything it found."""
        return dict(zip(("cells", "values", "positions"), self.found(), strict=True))

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Become one that found this."""
        self.parts = [(state["cells"], state["values"], state["positions"])]


@dataclass(eq=False)
class Histogram:
    """How many candidates have a measure in each bin; 8 bins for each factor of two, whatever the range.

    A bin is the leading bits of the number itself, so no logarithm rounds and any machine counts the same.
    """

    measure: Measure
    counts: Integers = field(default_factory=lambda: np.zeros(BINS, dtype=np.int64))

    def add(self, block: Block) -> None:
        """Count the positive finite values."""
        values = np.abs(block.masked(self.measure).reshape(-1))  # a measure is negative where larger is better
        bits = values[np.isfinite(values)].view(np.int64) >> BIN_BITS
        self.counts += np.bincount(bits, minlength=BINS)

    def merge(self, other: Self) -> None:
        """Take what another one found."""
        self.counts = self.counts + other.counts

    def bins(self) -> tuple[Floats, Integers]:
        """Lower edges and counts of the bins from the first to the last with a candidate."""
        used = np.flatnonzero(self.counts)
        chosen = np.arange(used[0], used[-1] + 1) if len(used) else used
        return (chosen << BIN_BITS).view(np.float64), self.counts[chosen]

    @staticmethod
    def upper(low: Floats) -> Floats:
        """Upper edges of bins from their lower ones."""
        return (low.view(np.int64) + (1 << BIN_BITS)).view(np.float64)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything it found."""
        used = np.flatnonzero(self.counts)
        return {"bins": used, "counts": self.counts[used]}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Become one that found this."""
        self.counts = np.zeros(BINS, dtype=np.int64)
        self.counts[state["bins"]] = state["counts"]
