"""explore(space): the best candidate per cell, the best of all, the Pareto front and histograms, in one pass."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradespace.errors import InputError, nearest
from tradespace.explore.columns import COLUMNS, FLAGS, MEASURES
from tradespace.explore.pareto import Front
from tradespace.explore.reduce import Best, Cells, Histogram, Reducer
from tradespace.explore.space import Index, Space
from tradespace.explore.sweep import BLOCK, Counts, Progress, survey
from tradespace.predict import predict
from tradespace.step import Step

Table = dict[str, NDArray[Any]]
MOST_CELLS, MOST_TOP = 10_000_000, 100_000
CHUNK = 1 << 17
"""Rows of a table that are made at a time."""
ROWS = 1 << 14
"""Candidates that are predicted at a time for a table of scattered ones."""


@dataclass(frozen=True)
class Keep:
    """What a sweep keeps: the best candidate for each combination of the axes `best_per`, the `top` best of all, the
    Pareto front over names in `pareto`, how often the numbers in `histograms` occur. `by` is what is best."""

    best_per: tuple[str, ...] = ()
    by: str = "step_time_s"
    top: int = 10
    pareto: tuple[str, ...] = ()
    histograms: tuple[str, ...] = ()

    def reducers(self, space: Space) -> dict[str, Reducer]:
        """An empty reducer for each thing to keep."""
        goal = space.measure(self.by, "by")
        found: dict[str, Reducer] = {"top": Best(self.top, goal)}
        if self.best_per:
            found["best"] = Cells(_axes(space, self.best_per), goal)
        if self.pareto:
            found["pareto"] = Front(tuple(space.measure(name, "pareto") for name in self.pareto))
        found |= {f"histogram.{name}": Histogram(space.measure(name, "histograms")) for name in self.histograms}
        return found

    def check(self, space: Space) -> None:
        """One sentence for what cannot be kept."""
        cells = 1.0
        for axis in _axes(space, self.best_per):
            cells *= space.axes[axis].size
        if cells > MOST_CELLS:
            raise InputError(f"best_per: {cells:,.0f} cells, but at most {MOST_CELLS:,} can be kept; name fewer axes")
        if not 0 <= self.top <= MOST_TOP:
            raise InputError(f"top: {self.top} is not between 0 and {MOST_TOP:,}")
        if len(self.pareto) == 1:
            raise InputError("pareto: one name has no front; name two or more, such as step_time_s and devices")
        step = predict(*space.candidate((0,) * len(space.axes)))
        for where, names in (("by", (self.by,)), ("pareto", self.pareto), ("histograms", self.histograms)):
            for name in names:
                space.measure(name, where)(step)


def _axes(space: Space, names: Sequence[str]) -> tuple[int, ...]:
    """Axes by name, in the order of the space."""
    known = [axis.name for axis in space.axes]
    for name in names:
        if name not in known:
            raise InputError(f"best_per: no axis '{name}'{nearest(name, known)}")
    return tuple(i for i, name in enumerate(known) if name in names)


@dataclass(frozen=True, eq=False)
class Explored:
    """What an exploration found. Tables are mappings from column to array: the axes, then `columns.COLUMNS`."""

    space: Space
    keep: Keep
    counts: Counts
    seconds: float
    reducers: Mapping[str, Reducer]

    def table(self, kind: str = "best") -> Table:
        """The rows of one kind: best (a row per cell), top, pareto, or histogram.NAME (bin, count).

        A cell in which nothing fits has a row with `fits` false and nothing else but its place.
        """
        reducer = self.reducers.get(kind)
        if reducer is None:
            raise InputError(f"no table '{kind}' was kept{nearest(kind, self.reducers)}")
        if isinstance(reducer, Histogram):
            low, counts = reducer.bins()
            return {"from": low, "count": counts}
        return worded(self.space, self.coded(kind))

    def coded(self, kind: str) -> Table:
        """The same with positions along the axis (-1 for none) in the columns of words."""
        parts = list(self.chunks(kind))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def chunks(self, kind: str) -> Iterator[Table]:
        """The same in tables of bounded length, at least one."""
        reducer = self.reducers[kind]
        if isinstance(reducer, Cells):
            count = int(np.prod([self.space.shape[i] for i in reducer.axes]))
            for start in range(0, count, CHUNK):
                yield cell_table(self.space, reducer, start, min(start + CHUNK, count))
            return
        assert isinstance(reducer, (Best, Front))
        for start in range(0, max(1, len(reducer.positions)), CHUNK):
            yield rows(self.space, reducer.positions[start : start + CHUNK])

    def step(self, rank: int = 0) -> Step:
        """The Step of the rank-th best candidate of all (0 = best)."""
        top = self.reducers["top"]
        assert isinstance(top, Best)
        if rank >= len(top.positions):
            raise InputError(f"explore: {len(top.positions)} candidates were kept; there is no rank {rank}")
        index = np.unravel_index(int(top.positions[rank]), self.space.shape)
        return predict(*self.space.candidate(tuple(int(i) for i in index)))


def explore(
    space: Space,
    *,
    best_per: Sequence[str] = (),
    by: str = "step_time_s",
    top: int = 10,
    pareto: Sequence[str] = (),
    histograms: Sequence[str] = (),
    progress: Progress | None = None,
) -> Explored:
    """Every candidate of a space, in blocks of bounded memory.

    Names are results (`columns.COLUMNS`), objectives of the space, axes and fields, or expressions of them; results
    whose larger values are better (mfu) are turned round by themselves, of everything else the smallest is best.

    >>> from tradespace.explore.space import Axis
    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100", devices=8)
    >>> axes = (Axis.of("network.nvlink.bandwidth", [150e9, 450e9]), Axis.of("tp", [1, 2, 4]))
    >>> space = Space(load.model("llama-3.1-8b"), cluster, load.strategy("global_batch=64", cluster=cluster), axes)
    >>> found = explore(space, best_per=["network.nvlink.bandwidth"], pareto=["step_time_s", "memory_total"])
    >>> found.table("best")["network.nvlink.bandwidth"]
    array([1.5e+11, 4.5e+11])
    """
    started = time.perf_counter()
    keep = Keep(tuple(best_per), by, top, tuple(pareto), tuple(histograms))
    keep.check(space)
    counts, reducers = explore_part(space, keep, None, progress)
    return Explored(space, keep, counts, time.perf_counter() - started, reducers)


def explore_part(
    space: Space, keep: Keep, inside: Index | None, progress: Progress | None = None, block: int = BLOCK
) -> tuple[Counts, dict[str, Reducer]]:
    """The counts and reducers of a slice of the space."""
    reducers = keep.reducers(space)
    counts = survey(space, list(reducers.values()), inside=inside, progress=progress, block=block)
    return counts, reducers


def rows(space: Space, positions: NDArray[np.int64]) -> Table:
    """The table of scattered candidates: their axes, then their results."""
    parts = [_rows(space, positions[i : i + ROWS]) for i in range(0, len(positions), ROWS)] or [_rows(space, positions)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _rows(space: Space, positions: NDArray[np.int64]) -> Table:
    """Rows of one call, or of one for each combination of choices."""
    found: Table = {}
    places = np.unravel_index(positions, space.shape)
    choices = [i for i, axis in enumerate(space.axes) if axis.choice]
    kinds, group = (
        np.unique(np.stack([places[i] for i in choices], 1), axis=0, return_inverse=True)
        if choices
        else (
            [()],
            np.zeros(len(positions), int),
        )
    )
    for number, chosen in enumerate(kinds):
        inside = np.flatnonzero(group.reshape(-1) == number)
        fixed = dict(zip(choices, chosen, strict=True))
        values: dict[str, Any] = {}
        for i, axis in enumerate(space.axes):
            for path, column in zip(axis.paths, axis.values, strict=True):
                values[path] = column[fixed[i]] if i in fixed else np.asarray(column)[places[i][inside]]
        step = predict(*space.replaced(values))
        for name, value in results(space, step).items():
            full = np.broadcast_to(value, len(inside))
            found.setdefault(name, np.empty(len(positions), full.dtype))[inside] = full
    return {**axis_columns(space, places), **found}


def axis_columns(space: Space, places: Sequence[NDArray[np.int64]]) -> Table:
    """The axes' columns at positions along each axis; words as the position."""
    return {
        name: place.astype(np.int32) if isinstance(column[0], str) else np.asarray(column)[place]
        for axis, place in zip(space.axes, places, strict=True)
        for name, column in axis.shown().items()
    }


def words(space: Space) -> dict[str, tuple[str, ...]]:
    """The words of each column that shows words."""
    shown = [item for axis in space.axes for item in axis.shown().items()]
    return {name: column for name, column in shown if isinstance(column[0], str)}


def worded(space: Space, table: Table) -> Table:
    """A table with its words in place of their positions; no word where there is none."""
    known = {name: np.asarray([*labels, ""]) for name, labels in words(space).items()}
    return {name: known[name][column] if name in known else column for name, column in table.items()}


def results(space: Space, step: Step) -> Table:
    """Derived fields, results and objectives of a step on its own axes; no measure where it is not legal."""
    lookup = space.lookup(step)
    found = {name: np.asarray(lookup(name, "derived"), dtype=float) for name in space.derived}
    legal = np.asarray(step.legal)
    for name, column in COLUMNS.items():
        value = np.asarray(column.value(step), dtype=bool if name in FLAGS else float)
        found[name] = np.where(legal & np.isfinite(value), value, np.nan) if name in MEASURES else value
    for name, objective in space.objectives.items():
        found[name] = np.where(legal, np.asarray(objective.value(lookup), dtype=float), np.nan)
    return found


def cell_table(space: Space, cells: Cells, start: int = 0, stop: int | None = None) -> Table:
    """One row for each cell from `start` to `stop`, also for those in which nothing counts."""
    sizes = tuple(space.shape[i] for i in cells.axes)
    wanted = np.arange(start, int(np.prod(sizes)) if stop is None else stop)
    every = np.unravel_index(wanted, sizes)
    known, _, positions = cells.found()
    inside = slice(*np.searchsorted(known, (wanted[0], wanted[-1] + 1)))
    best = rows(space, positions[inside])
    first = np.zeros(len(wanted), dtype=np.int64)
    places = [every[cells.axes.index(i)] if i in cells.axes else first for i in range(len(space.axes))]
    own = {name for i in cells.axes for name in space.axes[i].shown()}
    place = axis_columns(space, places)
    table: Table = {}
    for name, column in best.items():
        none: Any = False if name in FLAGS else -1 if column.dtype.kind == "i" else np.nan
        table[name] = place[name] if name in own else np.full(len(wanted), none, column.dtype)
        if name not in own:
            table[name][known[inside] - start] = column
    return table
