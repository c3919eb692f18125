"""From the strategy notation ("tp=8,pp=16,global_batch=512", "MP8_DP128", TOML) to a checked Strategy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from tradespace.errors import InputError, nearest
from tradespace.inputs.build import build, field_value, hints
from tradespace.inputs.cluster import Cluster, Device
from tradespace.inputs.fields import Quantity
from tradespace.inputs.files import CATALOG, Source, is_path, read, resolve
from tradespace.inputs.strategy import ORDER, RECOMPUTE_CODES, Optimizer, Overlap, Precision, Profile, Strategy
from tradespace.inputs.units import number

T = TypeVar("T")

SHORT = {
    "tp": "tensor",
    "sp": "sequence_parallel",
    "cp": "context",
    "ep": "expert",
    "etp": "expert_tensor",
    "pp": "pipeline",
    "vp": "virtual_stages",
    "dp": "data",
}
EXTRA = ("data", "offload")
"""Keys of the notation that are not fields of Strategy: derived, or not modelled."""
MODULES = ("attention_core", "layernorm", "mla_up_proj", "moe_act", "moe")
"""What selective recomputation can repeat (Megatron-Core's --recompute-modules)."""
SCHEDULES = ("1f1b", "gpipe", "interleaved", "comet-loop")
LATER_SCHEDULES = ("zb-h1", "zb-v", "dualpipe", "dualpipe-v")
_DEGREE = Quantity("", "a parallel degree", 1.0, 1e9, True)
_COMET = re.compile(r"mp(\d+)_dp(\d+)", re.IGNORECASE)


def profile(source: Source) -> Profile:
    """A framework profile from a catalog key, a file or a table."""
    return _part(Profile, "profiles", source)


def precision(source: Source) -> Precision:
    """A precision recipe from a catalog key, a file or a table."""
    return _part(Precision, "precisions", source)


def optimizer(source: Source) -> Optimizer:
    """An optimizer from a catalog key, a file or a table."""
    return _part(Optimizer, "optimizers", source)


def _part(cls: type[T], kind: str, source: Any) -> T:
    if isinstance(source, cls):
        return source
    if not isinstance(source, (str, Path, Mapping)):
        raise InputError(f"{kind.removesuffix('s')}: a catalog key, a path or a table is needed, not {source!r}")
    table, where, _ = resolve(kind, source)
    table.pop("key", None)
    return build(cls, table, where)


@cache
def _defaults() -> dict[str, Any]:
    """Profile by device, precision and optimizer where the user names none."""
    return read(CATALOG / "default_profiles.toml")


def default_profile(device: Device) -> str:
    """The key of the profile that a device is usually run with: by its key, else its vendor, else the default."""
    table = _defaults()
    by_vendor: str = table["vendor"].get(device.vendor, table["profile"])
    found: str = table["device"].get(device.key, by_vendor)
    return found


def strategy(source: Source, *, cluster: Cluster, profile: Source | Profile | None = None) -> Strategy:
    """A strategy for `cluster` from text, a TOML file or a table; keys short or long, defaults of the notation.

    Sequence parallelism is on where tensor > 1; `profile` names the one to use where the text names none, else it
    follows from the device. `MPx_DPy` is tensor = x, data = y and, if no global batch is given, one sequence per
    device (COMET, arXiv 2211.16648). A data degree is only checked: it is derived from the devices.

    >>> from tradespace.inputs.load import cluster
    >>> found = strategy("tp=8,pp=16,global_batch=512,recompute=full", cluster=cluster("dgx-a100", 1024))
    >>> found.tensor, found.pipeline, found.sequence_parallel, found.recompute
    (8.0, 16.0, 1.0, 2.0)
    """
    table, where = _table(source)
    given = _long_names(table, where)
    known = {item.name for item in fields(Strategy)} | set(EXTRA)
    for key in given:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'{nearest(key, known | set(SHORT))}")
    _check_unmodelled(given, where)
    if "global_batch" not in given:
        raise InputError(f"{where}: global_batch is missing (sequences per step over all devices)")
    values = {key: value_of(key, value, f"{where}.{key}") for key, value in given.items() if key not in EXTRA}
    split = values.get("tensor", 1.0) > 1.0 and values.get("schedule") != "comet-loop"
    values.setdefault("sequence_parallel", 1.0 if split else 0.0)
    values.setdefault("expert_tensor", values.get("tensor", 1.0))
    values |= _recomputed_modules(given)
    if "profile" not in values:
        values["profile"] = _part(Profile, "profiles", profile or default_profile(cluster.device))
    for key, part in (("precision", Precision), ("optimizer", Optimizer)):
        values.setdefault(key, _part(part, f"{key}s", _defaults()[key]))
    built = Strategy(**values)
    _check_data(given, built, cluster, where)
    _check_precision(built.precision, cluster.device, where)
    return built


def given(source: Source) -> dict[str, Any]:
    """The checked values that a strategy text, file or table states, by long name, without any defaults.

    >>> given("tp=8,recompute=full")
    {'tensor': 8.0, 'recompute': 2.0}
    """
    table, where = _table(source)
    stated = _long_names(table, where)
    known = {item.name for item in fields(Strategy)} | set(EXTRA)
    for key in stated:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'{nearest(key, known | set(SHORT))}")
    _check_unmodelled(stated, where)
    found = {key: value_of(key, value, f"{where}.{key}") for key, value in stated.items() if key not in EXTRA}
    if "data" in stated:
        found["data"] = number(stated["data"], _DEGREE, f"{where}.data")
    return found


def _table(source: Source) -> tuple[dict[str, Any], str]:
    """Keys and values of text, file or table, and the place for errors."""
    if isinstance(source, Mapping):
        return dict(source), "strategy"
    if isinstance(source, Path) or (is_path(source) and "=" not in source):
        return read(source), str(source)
    found: dict[str, Any] = {}
    batch: int | None = None
    for item in (part.strip() for part in str(source).split(",") if part.strip()):
        key, _, value = (word.strip() for word in item.partition("="))
        comet = _COMET.fullmatch(item)
        if comet:
            batch = int(comet[1]) * int(comet[2])
        elif not (key and value):
            raise InputError(f"strategy: '{item}' is neither key=value, such as tp=8, nor MP8_DP128")
        for name, text in {"tensor": comet[1], "data": comet[2]}.items() if comet else ((key, value),):
            if name in found:
                raise InputError(f"strategy: '{name}' is given twice")
            found[name] = text
    if batch is not None:
        found.setdefault("global_batch", batch)
    return found, "strategy"


def _long_names(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for key, value in table.items():
        name = SHORT.get(key, key)
        if name in given:
            raise InputError(f"{where}: '{key}' and another name for {name} are both given")
        given[name] = value
    return given


def _check_unmodelled(given: Mapping[str, Any], where: str) -> None:
    """Offload is a key of the notation that the model does not know yet."""
    if given.get("offload", "none") != "none":
        raise InputError(f"{where}: offload = {given['offload']!r}, but only 'none' is modelled yet")


def value_of(key: str, value: Any, where: str) -> Any:
    """The checked value of one Strategy field: words become codes, catalog keys become their entries."""
    if key in ("profile", "precision", "optimizer"):
        classes: dict[str, Any] = {"profile": Profile, "precision": Precision, "optimizer": Optimizer}
        return _part(classes[key], f"{key}s", value)
    if key == "recompute" and isinstance(value, str) and not value.isdigit():
        if value in RECOMPUTE_CODES:
            return RECOMPUTE_CODES[value]
        for word in value.split("+"):
            if word not in MODULES:
                raise InputError(f"{where}: unknown value '{word}'{nearest(word, (*RECOMPUTE_CODES, *MODULES))}")
        return RECOMPUTE_CODES["selective"]
    if key == "modules":
        return _modules(value, where)
    if key == "shard" and value == "data":
        return 0.0
    if key == "schedule":
        return _schedule(value, where)
    if key == "overlap":
        return _overlap(value, where)
    if key == "order":
        return _order(value, where)
    item = next(item for item in fields(Strategy) if item.name == key)
    return field_value(item, hints(Strategy)[key], value, where)


def _modules(value: Any, where: str) -> tuple[str, ...]:
    """Names of modules, as text joined by + or as a list."""
    words = value.split("+") if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else [value]
    for word in words:
        if word not in MODULES:
            raise InputError(f"{where}: unknown module {word!r}{nearest(str(word), MODULES)}")
    return tuple(words)


def _recomputed_modules(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The modules that `recompute=mla_up_proj+moe_act` names; nothing for none, selective and full."""
    value = given.get("recompute")
    named = isinstance(value, str) and not value.isdigit() and value not in RECOMPUTE_CODES
    return {"modules": tuple(str(value).split("+"))} if named else {}


def _schedule(value: Any, where: str) -> str:
    if value in LATER_SCHEDULES:
        raise InputError(f"{where}: '{value}' is not modelled yet; known: {', '.join(SCHEDULES)}")
    if value not in SCHEDULES:
        raise InputError(f"{where}: unknown schedule {value!r}{nearest(str(value), SCHEDULES)}")
    return str(value)


def _overlap(value: Any, where: str) -> Overlap:
    """All switches on or off, or a table of them."""
    if isinstance(value, (Mapping, Overlap)):
        return value if isinstance(value, Overlap) else build(Overlap, value, where)
    words = {"all": 1.0, "on": 1.0, "1": 1.0, "none": 0.0, "off": 0.0, "0": 0.0}
    word = str(value).lower()
    if word not in words:
        raise InputError(f"{where}: unknown value {value!r}{nearest(word, words)}")
    switch = words[word]
    return replace(Overlap(), **{item.name: switch for item in fields(Overlap)})


def _order(value: Any, where: str) -> tuple[str, ...]:
    """tp-cp-ep-dp-pp, inner to outer, as long names."""
    words = value.split("-") if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else []
    order = tuple(SHORT.get(str(word), str(word)) for word in words)
    if sorted(order) != sorted(ORDER):
        raise InputError(f"{where}: {value!r} must name each of tp, cp, ep, dp, pp once, as in tp-cp-ep-dp-pp")
    return order


def _check_data(given: Mapping[str, Any], built: Strategy, cluster: Cluster, where: str) -> None:
    """A data degree that is given must be what the devices leave."""
    if "data" not in given:
        return
    data = number(given["data"], _DEGREE, f"{where}.data")
    devices, model = float(cluster.devices), built.tensor * built.context * built.pipeline
    if data * model != devices:
        ways = f"tp {built.tensor:g} x cp {built.context:g} x pp {built.pipeline:g} x dp {data:g} = {data * model:g}"
        raise InputError(f"{where}: {ways}, but the cluster has {devices:g} devices")


def _check_precision(recipe: Precision, device: Device, where: str) -> None:
    if recipe.gemm not in ("bf16", "fp16") and getattr(device, f"peak_{recipe.gemm}", 0.0) == 0.0:
        missing = f"multiplies in {recipe.gemm}, which {device.key} does not have"
        raise InputError(f"{where}: precision '{recipe.name}' {missing}")
