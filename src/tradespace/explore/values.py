"""Values of an axis in a study file: a list, a range, or words that choose whole inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.explore.space import STRATEGY_FIELDS, Axis, full_path
from tradespace.inputs import load
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.settings import checked, value_at
from tradespace.inputs.strategies import default_profile, value_of
from tradespace.inputs.strategy import Strategy
from tradespace.inputs.units import in_si

LONGEST_AXIS = 100_000
RANGE_KEYS = ("from", "to", "steps", "step", "factor")
WAYS = ("steps", "step", "factor")


@dataclass(frozen=True)
class Bases:
    """What the paths of a study are checked against: each model and cluster that it may choose, and a strategy."""

    models: Mapping[str, Model]
    clusters: Mapping[str, Cluster]
    strategy: Strategy

    def check_number(self, path: str, where: str) -> None:
        """One sentence where a path leads to something else than a number."""
        root, _, rest = path.partition(".")
        if root in ("device", "network"):
            root, rest = "cluster", path
        nodes: Mapping[str, Any] = {"cluster": self.clusters, "model": self.models, "strategy": {"": self.strategy}}
        for node in nodes[root].values():
            if not rest or not isinstance(value_at(node, rest, where), float):
                raise InputError(f"{where}: {path} is not one number; name a field such as micro_batch")

    def value(self, path: str, value: Any, where: str) -> Any:
        """The checked value of the field at a path, in SI base units; the path must exist in all of them."""
        root, _, rest = path.partition(".")
        if root == "strategy" and rest in STRATEGY_FIELDS:
            for cluster in self.clusters.values() if rest == "precision" else ():
                load.strategy({"global_batch": 1, "precision": value}, cluster=cluster)  # a type that the device has
            return value_of(rest, value, where)
        if root in ("device", "network"):
            root, rest = "cluster", path
        if not rest:
            raise InputError(f"{where}: name one field of it, such as {path}.hidden")
        nodes: Mapping[str, Sequence[Any]] = {
            "model": list(self.models.values()),
            "cluster": list(self.clusters.values()),
            "strategy": [self.strategy],
        }
        found = [checked(node, rest, value, where) for node in nodes[root]]
        for model in self.models.values() if path == "model.seq" else ():
            if 0.0 < float(model.positions) < found[0]:
                rows = f"{float(model.positions):g} rows"
                raise InputError(f"{where}: {value} tokens, but the position table of {model.name} has {rows}")
        return found[0]


def axis(name: str, values: Any, bases: Bases, where: str) -> Axis:
    """One axis: a strategy field by its short or long name, devices, seq, a dotted path as in --set, or a choice of
    models, clusters, schedules, precisions, optimizers or profiles by name."""
    if name in ("model", "cluster"):
        return _whole_inputs(name, _list(values, where), bases)
    path = full_path(name, where)
    found = [bases.value(path, value, where) for value in numbers(values, path, bases, where)]
    if all(isinstance(value, float) for value in found):
        _distinct(found, where)
        return Axis.of(name, found)
    labels = [value if isinstance(value, str) else str(value).lower() for value in _list(values, where)]
    _distinct(labels, where)
    return Axis.of(name, found, labels)


def linked(name: str, table: Any, bases: Bases, where: str) -> Axis:
    """An axis of rows: columns of equal length, `label` for their names."""
    if not isinstance(table, Mapping) or not set(table) - {"label"}:
        raise InputError(f"{where}: a table of columns of equal length is needed, such as tensor = [1, 8]")
    columns = {key: _list(values, f"{where}.{key}") for key, values in table.items()}
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise InputError(f"{where}: linked columns need as many values each, but {told}")
    labels = [str(label) for label in columns.pop("label", [])]
    found = {
        key: [bases.value(full_path(key, where), value, f"{where}.{key}") for value in values]
        for key, values in columns.items()
    }
    for key, values in found.items():
        if not all(isinstance(value, float) for value in values):
            raise InputError(f"{where}.{key}: only numbers can be linked; make it an axis of its own")
    return Axis.linked(name, found, labels)


def _whole_inputs(name: str, keys: Sequence[Any], bases: Bases) -> Axis:
    """A choice of models or clusters; each cluster brings the profile that its device is usually run with."""
    if name == "model":
        return Axis.of(name, [bases.models[key] for key in keys], keys)
    clusters = [bases.clusters[key] for key in keys]
    columns: dict[str, list[Any]] = {"cluster": clusters}
    usual = {default_profile(cluster.device) for cluster in clusters}
    if len(usual) > 1 and bases.strategy.profile.name == load.profile(default_profile(clusters[0].device)).name:
        columns["profile"] = [load.profile(default_profile(cluster.device)) for cluster in clusters]
    return Axis.linked(name, columns, keys)


def _list(values: Any, where: str) -> list[Any]:
    if not isinstance(values, list) or not 1 <= len(values) <= LONGEST_AXIS:
        raise InputError(f"{where} must be a list of 1 to {LONGEST_AXIS:,} values, or a range with from and to")
    return values


def _distinct(values: Sequence[Any], where: str) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise InputError(f"{where}: {value if isinstance(value, str) else format(value, 'g')} is there twice")
        seen.add(value)


def numbers(values: Any, path: str, bases: Bases, where: str) -> list[Any]:
    """The values of a list as they are, or those of a range: {from, to} with steps (how many, evenly spaced), step
    (the distance) or factor (the ratio), both ends included where they are met."""
    if not isinstance(values, Mapping):
        return _list(values, where)
    for key in values:
        if key not in RANGE_KEYS:
            raise InputError(f"{where}: unknown key '{key}' of a range{nearest(str(key), RANGE_KEYS)}")
    ways = [key for key in WAYS if key in values]
    if "from" not in values or "to" not in values or len(ways) != 1:
        raise InputError(f"{where}: a range needs from, to and one of steps, step or factor")
    low, high = (bases.value(path, values[key], f"{where}.{key}") for key in ("from", "to"))
    if not isinstance(low, float) or not isinstance(high, float) or low >= high:
        raise InputError(f"{where}: from = {values['from']!r} must be a number below to = {values['to']!r}")
    stride = values[ways[0]]
    stride = in_si(stride, f"{where}.{ways[0]}") if isinstance(stride, str) else stride
    if not isinstance(stride, (int, float)) or isinstance(stride, bool) or not math.isfinite(stride):
        raise InputError(f"{where}.{ways[0]}: a number is needed, not {stride!r}")
    return _range(low, high, ways[0], float(stride), where)


def _range(low: float, high: float, way: str, stride: float, where: str) -> list[float]:
    """The numbers of a checked range."""
    if stride <= (0.0 if way == "step" else 1.0) or (way == "steps" and stride != math.floor(stride)):
        least = {"steps": "a whole number above 1", "step": "above 0", "factor": "above 1"}[way]
        raise InputError(f"{where}.{way}: {stride:g} must be {least}")
    if way == "factor" and low <= 0.0:
        raise InputError(f"{where}: a range with a factor must start above 0")
    slack = 1e-9  # an end that rounding misses is still met
    spans = {"steps": stride - 1.0, "step": (high - low) / stride + slack}
    last = math.floor(math.log(high / low) / math.log(stride) + slack) if way == "factor" else math.floor(spans[way])
    if last >= LONGEST_AXIS:
        raise InputError(f"{where}: the range has {last + 1:,} values, but an axis has at most {LONGEST_AXIS:,}")
    if way == "factor":
        return [low * stride**i for i in range(last + 1)]
    gap = (high - low) / (stride - 1.0) if way == "steps" else stride
    return [*(low + gap * i for i in range(last)), high if way == "steps" else low + gap * last]
