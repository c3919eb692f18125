"""`--set path=value`: one field anywhere in the model, the cluster or the strategy, by its dotted name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from tradespace.errors import InputError, nearest
from tradespace.inputs.build import field_value, hints
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.load import check_network
from tradespace.inputs.model import FLAT, Model
from tradespace.inputs.predicted import with_predicted
from tradespace.inputs.strategies import value_of
from tradespace.inputs.strategy import Strategy
from tradespace.inputs.traps import check_value

T = TypeVar("T")
ROOTS = ("model", "device", "network", "cluster", "strategy")


def apply(
    settings: Sequence[str], model: Model, cluster: Cluster, strategy: Strategy
) -> tuple[Model, Cluster, Strategy]:
    """The three inputs with each `path=value` set, in order.

    Paths start with model, device, network, cluster or strategy; network dims and memory tiers go by name, GEMM and
    attention rates by key: device.memory.hbm.capacity=141GB, network.nvlink.bandwidth="600 GB/s".
    """
    for setting in settings:
        path, text = _path_and_text(setting, ROOTS)
        root, _, rest = path.partition(".")
        if root == "model":
            model = with_predicted(replace_path(model, rest, checked(model, rest, text, path)))
        elif root == "strategy":
            known = "." not in rest and rest in {item.name for item in fields(Strategy)}
            value = value_of(rest, text, path) if known else checked(strategy, rest, text, path)
            strategy = replace_path(strategy, rest, value)
        else:
            cluster = _set_cluster(cluster, path, text)
    return model, cluster, strategy


def apply_to_cluster(settings: Sequence[str], cluster: Cluster) -> Cluster:
    """The cluster with each `path=value` set, for what needs no model and no strategy.

    >>> from tradespace.inputs import load
    >>> apply_to_cluster(["network.fabric.bandwidth=100 GB/s"], load.cluster("dgx-h100")).network[1].bandwidth
    100000000000.0
    """
    for setting in settings:
        cluster = _set_cluster(cluster, *_path_and_text(setting, ("device", "network", "cluster")))
    return cluster


def _path_and_text(setting: str, roots: Sequence[str]) -> tuple[str, str]:
    path, equals, text = (part.strip() for part in setting.partition("="))
    if not (path and equals and text):
        raise InputError(f"--set: '{setting}' is not path=value, such as device.memory.hbm.capacity=141GB")
    root, _, rest = path.partition(".")
    if root not in roots:
        raise InputError(f"--set {path}: unknown start '{root}'{nearest(root, roots)}")
    if not rest:
        raise InputError(f"--set {path}: name one field of it, such as device.memory.hbm.capacity")
    return path, text


def _set_cluster(cluster: Cluster, path: str, text: str) -> Cluster:
    inside = path.removeprefix("cluster.")
    value = checked(cluster, inside, text, path)
    if isinstance(value, float):
        check_value(cluster.device.key, inside, value, path)
    changed = replace_path(cluster, inside, value)
    check_network(changed, "cluster")
    return changed


def replace_path(node: T, path: str, value: Any) -> T:
    """A copy of a dataclass with one nested field replaced by any value (an array too); nothing else is checked.

    >>> from tradespace.inputs.load import cluster
    >>> replace_path(cluster("dgx-a100"), "network.fabric.bandwidth", 5e10).network[1].bandwidth
    50000000000.0
    """
    return cast(T, _replaced(node, path.split("."), value, path))


def value_at(node: Any, path: str, where: str) -> Any:
    """The value of the field at `path`, whatever it is.

    >>> from tradespace.inputs.load import cluster
    >>> value_at(cluster("dgx-a100"), "network.fabric.bandwidth", "--set")
    25000000000.0
    """
    for part in path.split("."):
        node = _child(node, part, where)
    return node


def checked(node: Any, path: str, text: Any, where: str) -> Any:
    """The value of the field at `path` that `text` states, in SI base units and within bounds."""
    *parents, last = path.split(".")
    for part in parents:
        node = _child(node, part, where)
    item = _field(node, last, where)
    if isinstance(node, Model) and node.kinds and last in FLAT:
        known = ", ".join(f"kinds.{kind.name}" for kind in node.kinds)
        raise InputError(f"{where}: {node.name} has layers of its own sizes; set those of {known}, or edit its file")
    owner: type = type(node)
    kind = hints(owner)[last]
    if "quantity" not in item.metadata and kind not in (str, bool):
        names = _names(_child(node, last, where))
        hint = f", such as {where}.{names[0]}" if names else ""
        raise InputError(f"{where}: holds several values; name one of them{hint}")
    words = {"1": True, "true": True, "0": False, "false": False}
    return field_value(item, kind, words.get(str(text).lower(), text) if kind is bool else text, where)


def _replaced(node: Any, parts: Sequence[str], value: Any, where: str) -> Any:
    """The copy of `node` with the value at the end of `parts`."""
    head, rest = parts[0], parts[1:]
    child = _child(node, head, where)
    new = _replaced(child, rest, value, where) if rest else value
    if isinstance(node, tuple):
        return tuple(new if entry is child else entry for entry in node)
    if isinstance(node, Mapping):
        return {**node, head: new}
    return replace(node, **{head: new})


def _names(node: Any) -> list[str]:
    """What may follow in a path: fields, names of a tuple's entries, keys of a mapping."""
    if isinstance(node, tuple):
        return [str(entry.name) for entry in node if hasattr(entry, "name")]
    if isinstance(node, Mapping):
        return [str(key) for key in node]
    return [item.name for item in fields(node)] if is_dataclass(node) else []


def _child(node: Any, name: str, where: str) -> Any:
    names = _names(node)
    if name not in names:
        raise InputError(f"{where}: no '{name}' here{nearest(name, names) if names else ''}")
    if isinstance(node, tuple):
        return node[names.index(name)]
    return node[name] if isinstance(node, Mapping) else getattr(node, name)


def _field(node: Any, name: str, where: str) -> Field[Any]:
    if not is_dataclass(node):
        _child(node, name, where)
        raise InputError(f"{where}: holds several fields; name one of them")
    for item in fields(node):
        if item.name == name:
            return item
    raise InputError(f"{where}: no '{name}' here{nearest(name, _names(node))}")
