"""From a catalog key, a file or a table to a checked model, device, cluster or strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.inputs import families
from tradespace.inputs.based import on_base
from tradespace.inputs.build import build
from tradespace.inputs.cluster import Cluster, CollectiveCurve, Device
from tradespace.inputs.economics import Economics, economics
from tradespace.inputs.fields import quantities
from tradespace.inputs.files import CATALOG, Source, catalog_entry, entries, entry_path, is_path, read, resolve
from tradespace.inputs.model import Model
from tradespace.inputs.predicted import with_predicted
from tradespace.inputs.strategies import optimizer, precision, profile, strategy
from tradespace.inputs.traps import check_cluster
from tradespace.inputs.units import number

__all__ = [
    "catalog_entry",
    "cluster",
    "device",
    "entries",
    "is_path",
    "model",
    "optimizer",
    "precision",
    "profile",
    "sizing",
    "strategy",
]

LONGEST_DEFAULT = 4096.0


@cache
def _defaults() -> dict[str, Any]:
    """What is assumed where an entry states nothing: catalog/defaults.toml, with reasons."""
    return read(CATALOG / "defaults.toml")


def sizing() -> dict[str, Any]:
    """What `size` assumes where nothing is given: types of clusters, tokens per step, most devices.

    >>> "dgx-h100" in sizing()["clusters"]
    True
    """
    found: dict[str, Any] = _defaults()["size"]
    return found


def device(source: Source) -> Device:
    """A device from a catalog key, a TOML or JSON file, or a table; unmeasured rates come from the defaults.

    >>> device("h100-sxm").peak
    989400000000000.0
    """
    table, where, _ = resolve("devices", source)
    return build(Device, _with_rates(table), where)


def _with_rates(table: dict[str, Any]) -> dict[str, Any]:
    """The table with assumed GEMM and attention rates for what it does not state."""
    assumed = _defaults()["device"]
    gemm = {kind: rate for kind, rate in assumed["gemm"].items() if kind == "bf16" or table.get(f"peak_{kind}")}
    stated = table.get("gemm", {})
    if isinstance(stated, Mapping):
        stated = {**gemm, **stated}
    return {**table, "gemm": stated, "attention": table.get("attention") or assumed["attention"]}


def cluster(source: Source, devices: float | None = None) -> Cluster:
    """A cluster from a catalog key, a TOML or JSON file, or a table; `devices` defaults to what the entry states.

    `device` in the file is a catalog key, a path or a table; `curves` of a network dim is a key of catalog/curves,
    a table by collective (`base`: the key that gives the others), or absent (then the assumed ones of its kind).
    Catalog entries state one node or pod.

    >>> loaded = cluster("dgx-a100", 1024)
    >>> [dim.name for dim in loaded.network], loaded.devices, loaded.local.name
    (['nvlink', 'fabric'], 1024.0, 'hbm')
    """
    table, where, typed = resolve("clusters", source)
    if not isinstance(table.get("device", ""), Device):
        table["device"] = device(_device_source(table, where))
    network = table.get("network", [])
    if not isinstance(network, (list, tuple)) or not network:
        raise InputError(f"{where}: network needs at least one dim, inner to outer, each a [[network]] table")
    table["network"] = [_with_curves(dim, f"{where}.network") for dim in network]
    if devices is not None:
        table["devices"] = number(devices, quantities(Cluster)["devices"], "devices")
    table["economics"] = _economics(table.get("economics", {}), table["device"].key, where)
    built = build(Cluster, table, where)
    check_network(built, where)
    if typed:
        check_cluster(built, where)
    return built


def _economics(stated: Any, device_key: str, where: str) -> Economics:
    """What the cluster's file states, and the catalog's numbers of its device for the rest."""
    if isinstance(stated, Economics):
        return stated
    given = build(Economics, stated, f"{where}.economics")
    return replace(economics(device_key), **{name: getattr(given, name) for name in stated})


def _device_source(table: Mapping[str, Any], where: str) -> Source:
    source = table.get("device")
    if not isinstance(source, (str, Mapping)):
        raise InputError(f"{where}: device must be a catalog key, a path or a table, not {source!r}")
    return source


def _with_curves(dim: Any, where: str) -> Any:
    """A network dim with its curves looked up by key, or the assumed ones of its kind."""
    if not isinstance(dim, Mapping):
        return dim
    by_kind = _defaults()["curves"]
    kind, curves = dim.get("kind"), dim.get("curves")
    if not isinstance(kind, str) or kind not in by_kind:
        name = dim.get("name", "?")
        raise InputError(f"{where}[{name}].kind: unknown kind {kind!r}{nearest(str(kind), by_kind)}")
    if curves is None or isinstance(curves, str):
        curves = _curves(by_kind[kind] if curves is None else curves)
    elif isinstance(curves, Mapping) and isinstance(curves.get("base"), str):
        curves = {**_curves(curves["base"]), **{name: own for name, own in curves.items() if name != "base"}}
    return {**dim, "curves": curves, "curve_latency": dim.get("curve_latency", dim.get("latency", 0.0))}


@cache
def _curves(key: str) -> dict[str, CollectiveCurve]:
    """The collectives of one entry of catalog/curves."""
    table = catalog_entry("curves", key)
    common = {name: table[name] for name in ("source", "confidence")}
    rows = {name: {**common, **row} for name, row in table.items() if isinstance(row, dict)}
    return {name: build(CollectiveCurve, row, f"curves/{key}.{name}") for name, row in rows.items()}


def check_network(built: Cluster, where: str) -> None:
    """Distinct names, known kinds, no open size but the outermost, curves with one entry per size in ascending order.

    >>> check_network(cluster("dgx-h100"), "cluster")
    """
    for names in ([dim.name for dim in built.network], [tier.name for tier in built.device.memory]):
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{where}: the name '{name}' is used twice")
    if not built.device.memory:
        raise InputError(f"{where}: device {built.device.key} needs at least one memory tier")
    for dim in built.network[:-1]:
        if dim.size == 0.0:
            raise InputError(f"{where}.network[{dim.name}].size: only the outermost dim may be 0 (as many as needed)")
    for dim in built.network:
        if dim.kind not in (by_kind := _defaults()["curves"]):
            place = f"{where}.network[{dim.name}].kind"
            raise InputError(f"{place}: unknown kind {dim.kind!r}{nearest(dim.kind, by_kind)}")
        ranks = dim.congestion_ranks
        if len(ranks) != len(dim.congestion_share) or list(ranks) != sorted(set(ranks)):
            place = f"{where}.network[{dim.name}].congestion_ranks"
            raise InputError(f"{place}: ascending numbers of ranks, each with its congestion_share, are needed")
        for name, curve in dim.curves.items():
            lengths = {len(curve.sizes), len(curve.latency), len(curve.fraction), len(curve.root)}
            if len(lengths) != 1 or not curve.sizes or list(curve.sizes) != sorted(set(curve.sizes)):
                place = f"{where}.network[{dim.name}].curves.{name}"
                raise InputError(f"{place}: needs ascending sizes and one latency, fraction and root for each")


def model(source: Source, seq: float | None = None) -> Model:
    """A model from a catalog key, a Hugging Face config.json, a TOML file, a CSV layer table or a table.

    `seq` in tokens defaults to what the file states, else to 4096 or the model's maximum if that is smaller.

    >>> model("gpt3-175b").seq
    2048.0
    """
    stated = False
    file = None if isinstance(source, Mapping) else source if is_path(source) else entry_path("models", str(source))
    if file is not None and str(file).lower().endswith(".json"):
        config = read(file)
        from tradespace.inputs.hf import from_config

        built = from_config(config, str(source))
    else:
        if file is not None and str(file).lower().endswith(".csv"):
            table, where = families.from_csv(Path(file)), str(file)
        else:
            table, where, _ = resolve("models", source)
            if "base" not in table:
                table = families.completed(table, where, None if file is None else Path(file))
        stated = "seq" in table
        table.pop("key", None)
        if "base" in table:
            built = on_base(_base(table.pop("base"), where, file), table, where)
        else:
            built = build(Model, table, where)
        families.check(built, where)
    if seq is not None:
        built = replace(built, seq=number(seq, quantities(Model)["seq"], "seq"))
    elif not stated:
        longest = float(built.max_seq)
        built = replace(built, seq=min(LONGEST_DEFAULT, longest) if longest else LONGEST_DEFAULT)
    built = with_predicted(built)
    _check_pattern(built)
    if 0.0 < float(built.positions) < float(built.seq):
        raise InputError(f"{built.name}: seq = {built.seq:g}, but its position table has {built.positions:g} rows")
    return built


def _base(name: Any, where: str, file: str | Path | None) -> Model:
    """The model that a file builds on: a catalog key, or a path from the file's own folder."""
    if not isinstance(name, str):
        raise InputError(f"{where}.base: a catalog key or a path of a model is needed, not {name!r:.60}")
    folder = Path() if file is None else Path(file).parent
    try:
        return model(folder / name if is_path(name) else name)
    except RecursionError:
        raise InputError(f"{where}.base: the models build on one another in a circle") from None


def _check_pattern(built: Model) -> None:
    """One kind for every layer, and kinds with names of their own."""
    names = [kind.name for kind in built.kinds]
    if not names and not built.pattern:
        return
    if len(set(names)) != len(names) or {"embedding", "head"} & set(names):
        raise InputError(f"{built.name}: kinds need different names, none of them 'embedding' or 'head', not {names}")
    known = [float(i) for i in range(len(names))]
    if len(built.pattern) != built.layers or any(place not in known for place in built.pattern):
        ends = f"from 0 to {len(names) - 1}" if names else "of kinds"
        raise InputError(f"{built.name}: pattern needs one index {ends} for each of the {built.layers:g} layers")
