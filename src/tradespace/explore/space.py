"""Space: named axes over any field of model, cluster and strategy; a block of it is one call of `predict`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite, prod
from typing import Any

import numpy as np

from tradespace.errors import InputError, nearest
from tradespace.explore.columns import COLUMNS
from tradespace.explore.expression import Expression
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.settings import replace_path, value_at
from tradespace.inputs.strategies import SHORT
from tradespace.inputs.strategy import RECOMPUTE_CODES, Strategy
from tradespace.num import Num
from tradespace.step import Step

Index = tuple[slice, ...]
Inputs = tuple[Model, Cluster, Strategy]
ALIASES = {"devices": "cluster.devices", "seq": "model.seq"}
RECOMPUTE_WORDS = {code: word for word, code in RECOMPUTE_CODES.items()}
STRATEGY_FIELDS = {item.name for item in fields(Strategy)}
LARGEST = 1e15
"""Candidates beyond which a sweep would take a thousand machines months; also far below what a position can hold."""


def full_path(name: str, where: str = "axis") -> str:
    """The dotted path that a name means: short and long strategy keys, devices, seq, or a path as in `--set`.

    >>> full_path("tp"), full_path("devices"), full_path("device.peak")
    ('strategy.tensor', 'cluster.devices', 'device.peak')
    """
    long = SHORT.get(name, name)
    if long in STRATEGY_FIELDS:
        return f"strategy.{long}"
    if name in ALIASES:
        return ALIASES[name]
    if name in ("model", "cluster") or name.partition(".")[0] in ("model", "device", "network", "cluster", "strategy"):
        return name
    raise InputError(f"{where}: '{name}' is no field{nearest(name, STRATEGY_FIELDS | set(ALIASES) | {'device.peak'})}")


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis: fields that move together (`paths`), each with one value per position.

    `columns` are the fields' names as written, `labels` words for the positions. Values that are no numbers (a whole
    cluster, a schedule) make it a choice: it is never open in a block.

    >>> Axis.of("tp", [1, 2, 4]).paths
    ('strategy.tensor',)
    """

    name: str
    paths: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    columns: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, values: Sequence[Any], labels: Sequence[str] = ()) -> Axis:
        """An axis over one field, named as written: a strategy key, devices, seq, or a path as in `--set`."""
        return Axis.linked(name, {name: values}, labels)

    @staticmethod
    def linked(name: str, columns: Mapping[str, Sequence[Any]], labels: Sequence[str] = ()) -> Axis:
        """An axis whose positions are rows of a table: fields that only make sense together.

        >>> Axis.linked("degrees", {"strategy.tensor": [1, 8], "strategy.pipeline": [8, 1]}).size
        2
        """
        where = f"axis {name}"
        lengths = {len(column) for column in columns.values()} | ({len(labels)} if labels else set())
        if len(lengths) != 1 or 0 in lengths:
            raise InputError(f"{where}: needs values, as many in each of {', '.join(columns) or 'its fields'}")
        paths = tuple(full_path(column, where) for column in columns)
        values = tuple(tuple(_value(v, where) for v in column) for column in columns.values())
        return Axis(name, paths, values, tuple(columns), tuple(labels))

    @property
    def size(self) -> int:
        """Number of positions."""
        return len(self.values[0])

    @property
    def choice(self) -> bool:
        """Whether a position is more than numbers."""
        return not all(isinstance(column[0], float) for column in self.values)

    def shown(self) -> dict[str, tuple[Any, ...]]:
        """Columns of a table: the labels under the axis's name, and each field's numbers under its own."""
        found: dict[str, tuple[Any, ...]] = {self.name: self.labels} if self.labels else {}
        for name, path, column in zip(self.columns, self.paths, self.values, strict=True):
            if path == "strategy.recompute":
                found.setdefault(name, tuple(RECOMPUTE_WORDS.get(code, str(code)) for code in column))
            elif isinstance(column[0], float):
                found.setdefault(name, column)
        return found


def _value(value: Any, where: str) -> Any:
    """A number as a float; words and whole inputs as they are; text that looks like a quantity is refused here."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        if not isfinite(value):
            raise InputError(f"{where}: {value!r} is not a finite number")
        return float(value)
    return value


@dataclass(frozen=True, eq=False)
class Space:
    """The product of axes around a base model, cluster and strategy; axes outermost first.

    Choices stand outside. Put axes of the cluster before those of the strategy: blocks cut the outer axes, and what
    touches few axes is computed once per block. `derived` are fields (by path) that follow from others, in order;
    `constraints` are conditions that a candidate must meet; `objectives` are named numbers to look for or to show.
    """

    model: Model
    cluster: Cluster
    strategy: Strategy
    axes: tuple[Axis, ...]
    derived: Mapping[str, Expression] = field(default_factory=dict)
    constraints: Mapping[str, Expression] = field(default_factory=dict)
    objectives: Mapping[str, Expression] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [name for axis in self.axes for name in axis.shown()]
        taken = [name.lower() for name in (*names, *self.derived, *self.objectives, *COLUMNS)]
        for name in (*names, *self.derived, *self.objectives):
            if taken.count(name.lower()) > 1:  # SQL does not tell large letters from small ones
                raise InputError(f"space: the name '{name}' is used twice; an axis and a column need their own")
        used = [path for axis in self.axes for path in axis.paths] + [full_path(name) for name in self.derived]
        for path in used:
            if used.count(path) > 1:
                raise InputError(f"space: {path} is set by two axes; keep one of them or link them")
        if self.size > LARGEST:
            raise InputError(f"space: {self.size:.3g} candidates, but at most {LARGEST:.0e} can be swept")
        choices = [axis.choice for axis in self.axes]
        if choices != sorted(choices, reverse=True):
            raise InputError("space: axes of words (cluster, schedule, ...) must come before axes of numbers")
        self.candidate((0,) * len(self.axes))

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions of each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Candidates in the space."""
        return prod(self.shape)

    def blocks(self, limit: int, inside: Index | None = None) -> Iterator[Index]:
        """Slices that cover the space (or a slice of it), outer axes cut first, at most `limit` candidates each."""
        ranges = inside or tuple(slice(0, size) for size in self.shape)
        sizes = [cut.stop - cut.start for cut in ranges]
        fixed = sum(axis.choice for axis in self.axes)
        inner, cut = 1, len(sizes)
        while cut > fixed and inner * sizes[cut - 1] <= limit:
            cut -= 1
            inner *= sizes[cut]
        if cut == 0:
            yield ranges
            return
        step = max(1, limit // inner) if cut > fixed else 1
        first = ranges[cut - 1]
        for position in np.ndindex(*sizes[: cut - 1]):
            outer = (slice(r.start + i, r.start + i + 1) for r, i in zip(ranges, position, strict=False))
            place = tuple(outer)
            for start in range(first.start, first.stop, step):
                yield (*place, slice(start, min(start + step, first.stop)), *ranges[cut:])

    def at(self, index: Index) -> Inputs:
        """The inputs of a block, its axes open; an axis cut to one position is a plain number."""
        open_axes = [i for i, cut in enumerate(index) if cut.stop - cut.start > 1]
        values: dict[str, Any] = {}
        for i, (axis, cut) in enumerate(zip(self.axes, index, strict=True)):
            for path, column in zip(axis.paths, axis.values, strict=True):
                values[path] = _open(column[cut], len(open_axes), open_axes.index(i) if i in open_axes else -1)
        return self.replaced(values)

    def candidate(self, position: tuple[int, ...]) -> Inputs:
        """The inputs of one candidate, plain numbers."""
        return self.at(tuple(slice(i, i + 1) for i in position))

    def replaced(self, values: Mapping[str, Any]) -> Inputs:
        """The base inputs with fields replaced by path, then the derived ones."""
        roots: dict[str, Any] = {"model": self.model, "cluster": self.cluster, "strategy": self.strategy}
        for path, value in values.items():
            _put(roots, path, value)
        for name, expression in self.derived.items():
            value = expression.value(lambda asked, where: _input(roots, asked, where))
            _put(roots, full_path(name), value * 1.0)
        return roots["model"], roots["cluster"], roots["strategy"]

    def lookup(self, step: Step) -> Callable[[str, str], Any]:
        """What a name in a constraint or an objective means for a step: a result, an objective, or an input."""

        def found(name: str, where: str) -> Any:
            if name in COLUMNS:
                return COLUMNS[name].value(step)
            if name in self.objectives:
                return self.objectives[name].value(found)
            return _input({"model": step.model, "cluster": step.cluster, "strategy": step.strategy}, name, where)

        return found

    def measure(self, name: str, where: str = "objective") -> Callable[[Step], Num]:
        """The number called `name` of a step, such that smaller is better: an objective, a result or an input."""
        if name in COLUMNS:
            column = COLUMNS[name]
            return column.value if column.best > 0 else lambda step: -1.0 * column.value(step)
        expression = Expression(name, where)

        def value(step: Step) -> Num:
            found = np.asarray(expression.value(self.lookup(step)), dtype=np.float64)
            return np.where(np.isnan(found), np.inf, found)

        return value


def _put(roots: dict[str, Any], path: str, value: Any) -> None:
    root, _, rest = path.partition(".")
    if root in ("device", "network"):
        root, rest = "cluster", path
    roots[root] = replace_path(roots[root], rest, value) if rest else value


def _input(roots: Mapping[str, Any], name: str, where: str) -> Any:
    """The value of an input field by name: a number, an array, or a word (a key, the name of an entry)."""
    long = SHORT.get(name, name)
    if long not in STRATEGY_FIELDS and name not in ALIASES and "." not in name and name not in roots:
        known = STRATEGY_FIELDS | set(ALIASES) | set(COLUMNS)
        raise InputError(f"{where}: unknown name '{name}'{nearest(name, known)}")
    path = full_path(name, where)
    root, _, rest = path.partition(".")
    if root in ("device", "network"):
        root, rest = "cluster", path
    found = value_at(roots[root], rest, where) if rest else roots[root]
    if isinstance(found, (float, int, str, np.ndarray)):
        return found
    word = getattr(found, "key", getattr(found, "name", None))
    if not isinstance(word, str):
        raise InputError(f"{where}: '{name}' holds several values; name one of them")
    return word


def _open(column: tuple[Any, ...], axes: int, axis: int) -> Any:
    if len(column) == 1:
        return column[0]
    shape = [1] * axes
    shape[axis] = len(column)
    return np.asarray(column).reshape(shape)
