"""A study: a space and what to keep of it, from a TOML file or a table of the same keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.explore.exploration import Keep
from tradespace.explore.expression import Expression
from tradespace.explore.plan import experts_of
from tradespace.explore.space import Axis, Space, full_path
from tradespace.explore.values import Bases, axis, linked
from tradespace.inputs import load
from tradespace.inputs.files import read
from tradespace.inputs.strategies import given

ALL_ROWS = 10_000_000
"""Candidates up to which a study that does not say otherwise keeps every one."""
RULES = {"sequence_parallel": "tensor > 1", "expert_tensor": "tensor"}
"""Defaults of the notation that follow the tensor degree where that is open."""
TOP = (
    "model",
    "cluster",
    "seq",
    "devices",
    "global_batch",
    "strategy",
    "axes",
    "linked",
    "derived",
    "constraints",
    "objectives",
    "keep",
)
KEEP = ("rows", "best_per", "by", "top", "pareto", "histograms")


@dataclass(frozen=True, eq=False)
class Study:
    """A space, what to keep of it, whether every candidate is a row of the result, and the names of its axes' columns
    in the order of the file. `table` is the file as it was read."""

    space: Space
    keep: Keep
    every: bool
    columns: tuple[str, ...]
    table: Mapping[str, Any]


def read_space(path: Path | str) -> Space:
    """The space of a study file, whatever it wants to keep."""
    return study(path).space


def study(source: Path | str | Mapping[str, Any]) -> Study:
    """A study from a TOML file, or a table with the same keys.

    `model`, `cluster`, `seq`, `devices`, `global_batch`, `strategy` (text or table) are fixed values; `[axes]` maps
    fields to lists, ranges or names; each `[linked.NAME]` is one axis of rows; `[derived]` fields follow from
    expressions; `[constraints]`, `[objectives]` are named expressions; `[keep]` says what to keep.

    Axes are ordered from the outside: choices, those of `best_per`, the cluster's, capacities (they only decide what
    fits), then the strategy's; blocks cut the outer ones, and each time is computed once for all capacities.

    >>> study({
    ...     "model": "llama-3.1-8b", "cluster": "dgx-h100", "global_batch": 64,
    ...     "axes": {"tp": [1, 2, 4], "network.nvlink.bandwidth": ["150 GB/s", "450 GB/s"]},
    ...     "constraints": {"small": "tp <= 2"},
    ... }).space.shape
    (2, 3)
    """
    where = "study" if isinstance(source, Mapping) else str(source)
    table = dict(source) if isinstance(source, Mapping) else read(source)
    _known(table, TOP, where)
    for key in ("model", "cluster"):
        if key not in table and key not in _part(table, "axes", where):
            raise InputError(f"{where}: {key} is missing")
    bases = _bases(table, where)
    axes = [axis(name, values, bases, f"{where}: axes.{name}") for name, values in _part(table, "axes", where).items()]
    axes += [linked(name, one, bases, f"{where}: linked.{name}") for name, one in _part(table, "linked", where).items()]
    if not axes:
        raise InputError(f"{where}: [axes] needs at least one field with a list of values, such as tensor = [1, 2, 4]")
    derived = _expressions(table, "derived", where)
    for name in derived:
        bases.check_number(full_path(name, f"{where}: derived"), f"{where}: derived.{name}")
    kept = _part(table, "keep", where)
    _known(kept, KEEP, f"{where}: keep")
    first = _names(kept, "best_per", where) if "best_per" in kept else []
    space = Space(
        next(iter(bases.models.values())),
        next(iter(bases.clusters.values())),
        bases.strategy,
        tuple(sorted(axes, key=lambda one: _depth(one, first))),
        {**_defaults(table, axes, derived, bases, where), **derived},
        _expressions(table, "constraints", where),
        _expressions(table, "objectives", where),
    )
    _check(space, bases, where)
    columns = tuple(name for one in axes for name in one.shown())
    keep, every = _keep(kept, space, where)
    return Study(space, keep, every, columns, table)


def _known(table: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in names:
            raise InputError(f"{where}: unknown key '{key}'{nearest(str(key), names)}")


def _part(table: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """A table in the file; TOML keys with dots that are not quoted are tables in tables, and are joined again."""
    part = table.get(key, {})
    if not isinstance(part, Mapping):
        raise InputError(f"{where}: [{key}] must be a table, such as [{key}] with one line for each name")
    return _flat(part) if key in ("axes", "derived") else dict(part)


def _flat(part: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in part.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and "from" not in value and "to" not in value and value:
            found |= _flat(value, f"{name}.")
        else:
            found[name] = value
    return found


def _expressions(table: Mapping[str, Any], key: str, where: str) -> dict[str, Expression]:
    found = {name: Expression(text, f"{where}: {key}.{name}") for name, text in _part(table, key, where).items()}
    for expression in found.values():
        _ = expression.tree
    return found


def _names(kept: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = kept.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InputError(f"{where}: keep.{key} must be a list of names, not {value!r}")
    return value


def _bases(table: Mapping[str, Any], where: str) -> Bases:
    """Every model and cluster that the study may choose, and the strategy that its axes change."""
    axes = _part(table, "axes", where)
    found: dict[str, list[Any]] = {}
    for key in ("model", "cluster"):
        if key in axes and key in table:
            raise InputError(f"{where}: {key} is fixed and an axis; keep one of them")
        keys = axes.get(key, [table.get(key)])
        if not isinstance(keys, list) or not keys or not all(isinstance(one, str) for one in keys):
            raise InputError(f"{where}: {key} must be a key or a file, or a list of them as an axis, not {keys!r}")
        if len(set(keys)) < len(keys):
            raise InputError(f"{where}: axes.{key}: a name is there twice")
        found[key] = keys
    models = {key: load.model(key, table.get("seq")) for key in found["model"]}
    clusters = {key: load.cluster(key, table.get("devices")) for key in found["cluster"]}
    fixed = _strategy(table, where)
    strategies = [load.strategy(fixed, cluster=cluster) for cluster in clusters.values()]
    return Bases(models, clusters, strategies[0])


def _strategy(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fixed keys of the strategy with the global batch, which must be stated somewhere."""
    source = table.get("strategy", {})
    if not isinstance(source, (str, Mapping)):
        raise InputError(f"{where}: strategy must be a text such as 'precision=fp8,tp=8' or a table, not {source!r}")
    fixed = given(source)
    if "global_batch" in table:
        if "global_batch" in fixed:
            raise InputError(f"{where}: global_batch is given twice, in the strategy and beside it")
        fixed |= given({"global_batch": table["global_batch"]})
    if "global_batch" not in fixed:
        linked_names = [name for one in _part(table, "linked", where).values() for name in one]
        if "global_batch" not in {*_part(table, "axes", where), *_part(table, "derived", where), *linked_names}:
            raise InputError(f"{where}: global_batch is missing (sequences per step over all devices)")
        fixed["global_batch"] = 1.0
    return fixed


def _defaults(
    table: Mapping[str, Any], axes: list[Axis], derived: Mapping[str, Expression], bases: Bases, where: str
) -> dict[str, Expression]:
    """Defaults of the notation that follow an open tensor degree: sequence parallelism above 1, experts split alike."""
    swept = {path for one in axes for path in one.paths} | {full_path(name) for name in derived}
    fixed = set(_strategy(table, where))
    stated = {key for key in ("devices", "seq", "global_batch") if key in table} | fixed - {"global_batch", "data"}
    for name in sorted(stated):
        if full_path(name) in swept:
            raise InputError(f"{where}: {name} is fixed and an axis or derived; keep one of them")
    if "strategy.tensor" not in swept or bases.strategy.schedule == "comet-loop":
        return {}
    experts = any(experts_of(model) for model in bases.models.values())
    rules = {name: text for name, text in RULES.items() if experts or name != "expert_tensor"}
    free = {name: text for name, text in rules.items() if f"strategy.{name}" not in swept and name not in fixed}
    return {name: Expression(text, f"derived.{name}") for name, text in free.items()}


def _depth(one: Axis, first: list[str]) -> tuple[int, int]:
    """Rank of an axis from the outside."""
    kind = 2 if one.paths[0].startswith("strategy.") else 1 if one.paths[0].endswith(".capacity") else 0
    return (0 if one.choice else 1 if one.name in first else 2, kind)


def _check(space: Space, bases: Bases, where: str) -> None:
    """Names in expressions, and bounds of derived fields at the first and the last candidates."""
    from tradespace.predict import predict

    ends = tuple(size - 1 for size in space.shape)
    for place in (tuple(0 for _ in ends), ends):
        step = predict(*space.candidate(place))
        lookup = space.lookup(step)
        for name in space.derived:
            bases.value(full_path(name), float(lookup(name, "derived")), f"{where}: derived.{name}")
        for expression in (*space.constraints.values(), *space.objectives.values()):
            expression.value(lookup)


def _keep(kept: Mapping[str, Any], space: Space, where: str) -> tuple[Keep, bool]:
    """What to keep; without a word on it all of a small space, of a large one the best for each cluster and model."""
    rows = kept.get("rows", "best" if "best_per" in kept or space.size > ALL_ROWS else "all")
    if rows not in ("all", "best"):
        raise InputError(f"{where}: keep.rows must be 'all' or 'best', not {rows!r}")
    if rows == "all" and "best_per" in kept:
        raise InputError(f"{where}: keep.best_per needs rows = 'best'; with rows = 'all' every candidate is kept")
    outside = [one.name for one in space.axes if not one.paths[0].startswith("strategy.")]
    cells = _names(kept, "best_per", where) if "best_per" in kept else [] if rows == "all" else outside
    by, top = kept.get("by", "step_time_s"), kept.get("top", 10)
    if not isinstance(by, str) or not isinstance(top, int) or isinstance(top, bool):
        raise InputError(f"{where}: keep.by must be a name and keep.top a whole number")
    lists = {key: tuple(_names(kept, key, where)) for key in ("pareto", "histograms")}
    keep = Keep(tuple(cells), by, top, **lists)
    try:
        keep.check(space)
    except InputError as fault:
        raise InputError(f"{where}: keep.{fault}") from None
    return keep, rows == "all"
