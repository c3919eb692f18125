"""Space: named axes over any field of model, cluster and strategy; a block of it is one call of `predict`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.settings import replace_path
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num

Index = tuple[slice, ...]
STRATEGY_ROOT, MODEL_ROOT = "strategy", "model"


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis: fields that move together (`paths`), each with one value per position.

    Paths start with model, device, network, cluster or strategy, as in `--set`.

    >>> Axis.of("strategy.tensor", [1, 2, 4]).size
    3
    """

    name: str
    paths: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]

    @staticmethod
    def of(path: str, values: list[float] | tuple[float, ...]) -> Axis:
        """An axis over one field, named by its path."""
        return Axis(path, (path,), (tuple(float(value) for value in values),))

    @staticmethod
    def linked(name: str, columns: Mapping[str, list[float]]) -> Axis:
        """An axis whose positions are rows of a table: fields that only make sense together.

        >>> Axis.linked("degrees", {"strategy.tensor": [1, 8], "strategy.pipeline": [8, 1]}).size
        2
        """
        return Axis(name, tuple(columns), tuple(tuple(float(v) for v in column) for column in columns.values()))

    @property
    def size(self) -> int:
        """Number of positions."""
        return len(self.values[0])


@dataclass(frozen=True, eq=False)
class Space:
    """The product of axes around a base model, cluster and strategy; axes outermost first.

    Put axes of the cluster before those of the strategy: blocks cut the outer axes, and what touches few axes is
    computed once per block.
    """

    model: Model
    cluster: Cluster
    strategy: Strategy
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions of each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Candidates in the space."""
        return prod(self.shape)

    def blocks(self, limit: int) -> Iterator[Index]:
        """Slices that cover the space, outer axes cut first, with at most `limit` candidates each (one at least)."""
        inner, cut = 1, len(self.axes)
        while cut > 0 and inner * self.axes[cut - 1].size <= limit:
            cut -= 1
            inner *= self.axes[cut].size
        rest = tuple(slice(0, axis.size) for axis in self.axes[cut:])
        if cut == 0:
            yield rest
            return
        outer, split = self.axes[: cut - 1], self.axes[cut - 1]
        step = max(1, limit // inner)
        for position in np.ndindex(*(axis.size for axis in outer)):
            for start in range(0, split.size, step):
                yield (*(slice(i, i + 1) for i in position), slice(start, min(start + step, split.size)), *rest)

    def at(self, index: Index) -> tuple[Model, Cluster, Strategy]:
        """The inputs of a block, its axes open; an axis cut to one position is a plain number."""
        open_axes = [i for i, cut in enumerate(index) if cut.stop - cut.start > 1]
        values: dict[str, Num] = {}
        for i, (axis, cut) in enumerate(zip(self.axes, index, strict=True)):
            for path, column in zip(axis.paths, axis.values, strict=True):
                values[path] = _open(column[cut], len(open_axes), open_axes.index(i) if i in open_axes else -1)
        return self.replaced(values)

    def candidate(self, position: tuple[int, ...]) -> tuple[Model, Cluster, Strategy]:
        """The inputs of one candidate, plain numbers."""
        return self.at(tuple(slice(i, i + 1) for i in position))

    def replaced(self, values: Mapping[str, Num]) -> tuple[Model, Cluster, Strategy]:
        """The base inputs with fields replaced by path."""
        roots: dict[str, Any] = {MODEL_ROOT: self.model, "cluster": self.cluster, STRATEGY_ROOT: self.strategy}
        for path, value in values.items():
            root, _, rest = path.partition(".")
            if root in ("device", "network"):
                root, rest = "cluster", path
            roots[root] = replace_path(roots[root], rest, value)
        return roots[MODEL_ROOT], roots["cluster"], roots[STRATEGY_ROOT]


def _open(column: tuple[float, ...], axes: int, axis: int) -> Num:
    if len(column) == 1:
        return column[0]
    shape = [1] * axes
    shape[axis] = len(column)
    return np.asarray(column).reshape(shape)
