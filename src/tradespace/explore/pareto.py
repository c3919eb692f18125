"""The Pareto front of a sweep, exact, in one pass over blocks of millions of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tradespace.explore.reduce import Block, Floats, Integers, Measure

FEW = 100
"""Values of a measure in a block up to which candidates are grouped by them."""
FILTERS = 6
"""Known points that a block is compared with before its own front is looked for: they drop nearly all of it."""


@dataclass(eq=False)
class Front:
    """The Pareto front: candidates that no other beats in one measure without losing in another.

    Of candidates with the same values the one at the lowest position is kept. `values` has a row for each measure;
    columns are sorted by the first.
    """

    measures: tuple[Measure, ...]
    values: Floats = field(default_factory=lambda: np.empty((0, 0)))
    positions: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def add(self, block: Block) -> None:
        """Take what no candidate of the front dominates."""
        columns = [block.masked(measure).reshape(-1) for measure in self.measures]
        inside = np.flatnonzero(np.logical_and.reduce([np.isfinite(column) for column in columns]))
        columns = [column[inside] for column in columns]
        for point in self._filters(columns):
            keep = _better(columns, point)
            inside, columns = inside[keep], [column[keep] for column in columns]
        groups, few = self._groups(block, inside)
        rest = [i for i in range(len(columns)) if i not in few]
        found = [group[undominated([columns[i][group] for i in rest])] for group in groups]
        if found:
            chosen = np.sort(np.concatenate(found))
            self._join(np.array([column[chosen] for column in columns]), block.positions(inside[chosen]))

    def _groups(self, block: Block, inside: Integers) -> tuple[list[Integers], list[int]]:
        """Candidates that agree in the measures with few values in the block (a price, a number of devices), and which
        measures those are: within a group only the others count."""
        number = np.zeros(len(inside), dtype=np.int64)
        few: list[int] = []
        for i, measure in enumerate(self.measures):
            values = np.asarray(measure(block.step))
            if values.size <= FEW and len(few) < len(self.measures) - 1:
                known, codes = np.unique(values, return_inverse=True)
                number = number * len(known) + block.full(codes.reshape(values.shape)).reshape(-1)[inside]
                few.append(i)
        order = np.argsort(number, kind="stable")
        edges = np.flatnonzero(np.diff(number[order])) + 1
        return (np.split(order, edges) if len(order) else []), few

    def _filters(self, columns: Sequence[Floats]) -> list[Floats]:
        """Points of the front that may dominate much of a block: not worse in what is the same all over the block."""
        if not len(self.positions) or not len(columns[0]):
            return []
        fixed = [i for i, column in enumerate(columns) if (column == column[0]).all()]
        usable = np.ones(len(self.positions), dtype=bool)
        for i in fixed:
            usable &= self.values[i] <= columns[i][0]
        chosen = np.flatnonzero(usable)
        order = chosen[np.argsort(_sums(list(self.values[:, chosen])), kind="stable")]
        return [self.values[:, i] for i in order[:: max(1, len(order) // FILTERS)][:FILTERS]]

    def _join(self, values: Floats, positions: Integers) -> None:
        """Merge two fronts: new points that an old one dominates go, then old points that a new one dominates."""
        if not len(positions):
            return
        if len(self.positions):
            wins = np.array([self._stands(values[:, i], positions[i]) for i in range(len(positions))])
            values, positions = values[:, wins], positions[wins]
        mutual = undominated(list(values))
        values, positions = values[:, mutual], positions[mutual]
        if len(self.positions):
            old = np.ones(len(self.positions), dtype=bool)
            for i in range(len(positions)):
                old &= _better(list(self.values), values[:, i])
            values = np.concatenate([self.values[:, old], values], axis=1)
            positions = np.concatenate([self.positions[old], positions])
        order = np.lexsort((positions, *values[::-1]))
        self.values, self.positions = values[:, order], positions[order]

    def _stands(self, point: Floats, position: int) -> bool:
        """Whether no point of the front dominates a new one, or equals it at a lower position."""
        covering = np.flatnonzero(
            np.logical_and.reduce([column <= v for column, v in zip(self.values, point, strict=True)])
        )
        return all((self.values[:, k] == point).all() and position < self.positions[k] for k in covering)

    def merge(self, other: Self) -> None:
        """Take what another one found."""
        self._join(other.values, other.positions)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything it found."""
        return {"values": self.values, "positions": self.positions}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Become one that found this."""
        self.values, self.positions = state["values"], state["positions"]


def undominated(columns: Sequence[Floats]) -> Integers:
    """Indices of the points (one column per measure) that no other dominates; of equal ones the first.

    Nothing dominates the point with the least sum of scaled measures (sums round monotonically, ties go to the least
    in order), so it belongs to the front, and what is better than it in nothing goes; then the next.

    >>> undominated([np.array([1.0, 2.0, 2.0]), np.array([2.0, 1.0, 2.0])])
    array([0, 1])
    """
    left, columns, sums = np.arange(len(columns[0])), list(columns), _sums(columns)
    found = []
    while len(left):
        ties = np.flatnonzero(sums == sums.min())
        least = ties[np.lexsort((ties, *(column[ties] for column in columns[::-1])))[0]]
        found.append(left[least])
        keep = _better(columns, [column[least] for column in columns])
        left, sums, columns = left[keep], sums[keep], [column[keep] for column in columns]
    return np.array(sorted(found), dtype=np.int64)


def _better(columns: Sequence[Floats], point: Sequence[Any] | Floats) -> NDArray[np.bool_]:
    """Which points are better than one in some measure."""
    return np.asarray(np.logical_or.reduce([column < value for column, value in zip(columns, point, strict=True)]))


def _sums(columns: Sequence[Floats]) -> Floats:
    """Sums of the measures, each over its largest size."""
    scales = [max(float(np.abs(column).max(initial=0.0)), np.finfo(float).tiny) for column in columns]
    return np.asarray(sum(column / scale for column, scale in zip(columns, scales, strict=True)))
