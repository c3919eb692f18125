"""A space from a file: fixed values, axes and linked axes in TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.explore.space import Axis, Space
from tradespace.inputs import load
from tradespace.inputs.files import read
from tradespace.inputs.settings import checked
from tradespace.inputs.strategies import SHORT, value_of
from tradespace.inputs.strategy import Strategy

TOP = ("model", "cluster", "seq", "devices", "strategy", "global_batch", "axes")
STRATEGY_FIELDS = {item.name for item in fields(Strategy)}
LONGEST_AXIS = 100_000


def read_space(path: Path | str) -> Space:
    """The space of a TOML file: `model`, `cluster`, `seq`, `devices`, `global_batch`, a `strategy` text of fixed
    keys, and `[axes]`: field -> list of values, units and words allowed.

    Axes of the cluster come first whatever their order in the file, so that blocks cut them; a block that keeps the
    capacities open computes each time once for all of them.
    """
    table = read(path)
    where = str(path)
    for key in table:
        if key not in TOP:
            raise InputError(f"{where}: unknown key '{key}'{nearest(key, TOP)}")
    for key in ("model", "cluster", "global_batch"):
        if key not in table:
            raise InputError(f"{where}: {key} is missing")
    model = load.model(table["model"], table.get("seq"))
    cluster = load.cluster(table["cluster"], table.get("devices"))
    fixed = f"global_batch={table['global_batch']}," + str(table.get("strategy", ""))
    strategy = load.strategy(fixed, cluster=cluster)
    roots = {"model": model, "cluster": cluster, "strategy": strategy}
    axes = [_axis(name, values, roots, where) for name, values in _axes(table, where).items()]
    return Space(model, cluster, strategy, tuple(sorted(axes, key=_depth)))


def _depth(axis: Axis) -> int:
    """Rank of an axis from the outside: cluster, then capacities (they only decide what fits), then strategy."""
    if axis.paths[0].startswith("strategy."):
        return 2
    return 1 if axis.paths[0].endswith(".capacity") else 0


def _axes(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    axes = table.get("axes", {})
    if not isinstance(axes, Mapping) or not axes:
        raise InputError(f"{where}: [axes] needs at least one field with a list of values, such as tensor = [1, 2, 4]")
    return dict(axes)


def _axis(name: str, values: Any, roots: Mapping[str, Any], where: str) -> Axis:
    """One axis: a strategy field by its short or long name, `devices`, or a dotted path as in --set."""
    if not isinstance(values, list) or not 1 <= len(values) <= LONGEST_AXIS:
        raise InputError(f"{where}: axes.{name} must be a list of 1 to {LONGEST_AXIS:,} values")
    long = SHORT.get(name, name)
    if long in STRATEGY_FIELDS:
        numbers = [value_of(long, value, f"{where}: axes.{name}") for value in values]
        if not all(isinstance(number, float) for number in numbers):
            raise InputError(f'{where}: axes.{name} cannot be an axis; fix it with strategy = "{name}=..."')
        return Axis.of(f"strategy.{long}", numbers)
    path = "cluster.devices" if name == "devices" else name
    root, _, rest = path.partition(".")
    if root in ("device", "network"):
        root, rest = "cluster", path
    if root not in roots or not rest:
        raise InputError(f"{where}: axes.{name} is no field{nearest(name, STRATEGY_FIELDS | {'devices'})}")
    numbers = [checked(roots[root], rest, value, f"{where}: axes.{name}") for value in values]
    return Axis.of(path, numbers)
