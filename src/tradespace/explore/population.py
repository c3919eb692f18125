"""Populations: an approximate Pareto front of a space that is too large to sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradespace.errors import InputError
from tradespace.explore.columns import COLUMNS
from tradespace.explore.exploration import Table, rows, worded
from tradespace.explore.space import Space


def population(
    space: Space,
    objectives: Sequence[str],
    *,
    size: int = 128,
    generations: int = 40,
    seed: int = 0,
) -> Table:
    """The front that NSGA-II finds: a table as `explore` gives, one row per candidate that none of the others beats.

    `objectives` are columns of results or objectives of the space; those whose larger values are better are turned
    round. A generation is one prediction over arrays. Where `explore` can sweep the space its front is exact; this one
    is not. Source: Deb et al. 2002, A fast and elitist multiobjective genetic algorithm.
    """
    if len(objectives) < 2:
        raise InputError("population: name two or more objectives, such as step_time_s and memory_total")
    if space.constraints:
        raise InputError("population: spaces with constraints are not searched; sweep them with explore")
    known = {**{name: column.best for name, column in COLUMNS.items()}, **dict.fromkeys(space.objectives, 1.0)}
    for name in objectives:
        if name not in known:
            raise InputError(f"population: '{name}' is no result and no objective of the space")
    found = _search(space, [(name, known[name]) for name in objectives], size, generations, seed)
    table = rows(space, found)
    return worded(space, {name: column[table["fits"]] for name, column in table.items()})


def _search(
    space: Space, objectives: Sequence[tuple[str, float]], size: int, generations: int, seed: int
) -> NDArray[np.int64]:
    """Positions of the last front, each once."""
    try:
        from pymoo.algorithms.moo.nsga2 import NSGA2
        from pymoo.core.problem import Problem
        from pymoo.operators.crossover.sbx import SBX
        from pymoo.operators.mutation.pm import PM
        from pymoo.operators.repair.rounding import RoundingRepair
        from pymoo.operators.sampling.rnd import IntegerRandomSampling
        from pymoo.optimize import minimize
    except ModuleNotFoundError:
        raise InputError("populations need pymoo: install the extra tradespace[sensitivity]") from None
    last = np.asarray(space.shape) - 1

    class Choice(Problem):  # type: ignore[misc]
        """Positions along the axes as whole numbers; what does not fit breaks the one constraint."""

        def __init__(self) -> None:
            super().__init__(n_var=len(last), n_obj=len(objectives), n_ieq_constr=1, xl=0, xu=last, vtype=int)

        def _evaluate(self, x: NDArray[Any], out: dict[str, Any], *_: Any, **__: Any) -> None:
            table = rows(space, _positions(space, x))
            values = np.stack([table[name] * sign for name, sign in objectives], axis=1)
            out["F"] = np.where(np.isfinite(values), values, 1e30)
            out["G"] = np.where(table["fits"], -1.0, 1.0)[:, None]

    algorithm = NSGA2(
        pop_size=size,
        sampling=IntegerRandomSampling(),
        crossover=SBX(prob=0.9, eta=3, vtype=float, repair=RoundingRepair()),
        mutation=PM(eta=3, vtype=float, repair=RoundingRepair()),
        eliminate_duplicates=True,
    )
    result = minimize(Choice(), algorithm, ("n_gen", generations), seed=seed, verbose=False)
    if result.X is None:
        return np.empty(0, dtype=np.int64)
    return np.unique(_positions(space, np.atleast_2d(result.X)))


def _positions(space: Space, x: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(np.ravel_multi_index(tuple(x.astype(np.int64).T), space.shape), dtype=np.int64)
