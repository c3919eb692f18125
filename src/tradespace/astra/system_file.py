"""System files: ASTRA-sim's current JSON and the `key: value` text of its first version.

Source: the keys that `astra-sim/astra-sim` parses. Local memory bandwidth in GB/s of 1e9, peak in TFLOPS, delays in ns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tradespace.astra.faults import warn
from tradespace.astra.files import json_object, number, read_text, whole
from tradespace.astra.plans import MAX_CHUNKS, ORDERS
from tradespace.errors import InputError, nearest
from tradespace.network.astra import COLLECTIVES, System

ALGORITHM = re.compile(
    r"ring|direct(?:[1-9]\d{0,5})?|halvingDoubling|doubleBinaryTree"
    r"|oneRing|oneDirect(?:[1-9]\d{0,5})?|oneHalvingDoubling"
)
TIMELESS = {
    "boost-mode",
    "trace-enabled",
    "track-local-mem",
    "local-mem-trace-filename",
    "L",
    "o",
    "g",
    "G",
    "local-reduction-delay",
    "intra-dimension-scheduling",
    "scheduling-policy",
}
READ = {
    "endpoint-delay",
    "active-chunks-per-dimension",
    "preferred-dataset-splits",
    "collective-optimization",
    "local-mem-bw",
    "peak-perf",
    "roofline-enabled",
    "inter-dimension-scheduling",
    *(name.replace("_", "-") + "-implementation" for name in COLLECTIVES),
}


@dataclass(frozen=True)
class Machine:
    """A system file: how collectives run, and the roofline of compute (`peak` in FLOP/s, used if `roofline`)."""

    system: System
    roofline: bool = False
    peak: float | None = None


def read_system(path: str | Path, queues: int = 1) -> Machine:
    """System file of either version; `queues` is ASTRA-sim's command-line option num-queues-per-dim."""
    text = read_text(path)
    version2 = text.lstrip().startswith("{")
    values = json_object(text, path) if version2 else _text(text, path)
    return machine(values, path, version2, queues)


def machine(values: dict[str, Any], where: str | Path, version2: bool = True, queues: int = 1) -> Machine:
    """Checked meaning of the keys of a system file.

    >>> machine({"all-reduce-implementation": ["ring"], "local-mem-bw": 1600}, "x.json").system.algorithms
    {'all_reduce': ('ring',)}
    """
    _refuse(values, where)
    order = "ascending"
    if version2:
        if values.get("inter-dimension-scheduling", order) != order:
            warn(
                f"{where}: inter-dimension-scheduling is no longer read by ASTRA-sim, which takes the dims in "
                "ascending order"
            )
    else:
        order = _word(values, "inter-dimension-scheduling", where, ORDERS, order)
    _word(values, "scheduling-policy", where, ("LIFO", "FIFO", "EXPLICIT"), "LIFO")
    if not 1 <= queues <= 1024:
        raise InputError(f"num-queues-per-dim = {queues}, but it must be between 1 and 1024")
    memory = number(values, "local-mem-bw", where, 1e-6, 1e9) if "local-mem-bw" in values else None
    peak = number(values, "peak-perf", where, 1e-9, 1e12) * 1e12 if "peak-perf" in values else None
    roofline = bool(whole(values, "roofline-enabled", where, 0, 1, 0))
    if roofline and (peak is None or memory is None):
        raise InputError(f"{where}: roofline-enabled needs peak-perf and local-mem-bw")
    delay = whole(values, "endpoint-delay", where, 0, 10**12, 10)
    if not delay:
        raise InputError(f"{where}: endpoint-delay = 0, on which ASTRA-sim aborts; it must be at least 1 ns")
    system = System(
        {name: algorithms for name in COLLECTIVES if (algorithms := _algorithms(values, name, where))},
        delay,
        memory,
        whole(values, "preferred-dataset-splits", where, 1, MAX_CHUNKS // 2, 1),
        whole(values, "active-chunks-per-dimension", where, 1, MAX_CHUNKS, 1),
        queues,
        _word(values, "collective-optimization", where, ("baseline", "localBWAware"), "baseline"),
        order,
    )
    return Machine(system, roofline, peak)


def _refuse(values: dict[str, Any], where: str | Path) -> None:
    for key, value in values.items():
        custom = key.endswith("-implementation-custom") or key == "per-node-custom-implementation"
        if custom or (key in ("model-shared-bus", "replay-only") and value not in (0, "0", False)):
            raise InputError(f"{where}: {key} is not reproduced; remove it or set it to 0")
        if key not in READ and key not in TIMELESS and key not in ("model-shared-bus", "replay-only"):
            warn(
                f"{where}: {key[:60]} is not a key of a system file{nearest(key[:60], READ | TIMELESS)}; ASTRA-sim "
                "ignores it silently"
            )


def _word(values: dict[str, Any], key: str, where: str | Path, known: tuple[str, ...], default: str) -> str:
    value = values.get(key, default)
    if value not in known:
        raise InputError(f"{where}: {key} = {str(value)[:40]!r} is not reproduced{nearest(str(value)[:40], known)}")
    return str(value)


def _algorithms(values: dict[str, Any], collective: str, where: str | Path) -> tuple[str, ...]:
    key = collective.replace("_", "-") + "-implementation"
    value = values.get(key, [])
    names = value.split("_") if isinstance(value, str) else value
    if not isinstance(names, list) or len(names) > 10:
        raise InputError(f"{where}: {key} must be a list of algorithms, one per network dim")
    for name in names:
        if not isinstance(name, str) or not ALGORITHM.fullmatch(name):
            known = (
                "ring",
                "direct",
                "direct4",
                "halvingDoubling",
                "doubleBinaryTree",
                "oneRing",
                "oneDirect",
                "oneHalvingDoubling",
            )
            raise InputError(f"{where}: {key}: {str(name)[:40]!r} is not an algorithm{nearest(str(name)[:40], known)}")
    if (
        len(names) > 1
        and len({name for name in names if name.startswith("one")} | {names[0]}) > 1
        and any(name.startswith("one") for name in names)
    ):
        raise InputError(f"{where}: {key}: a one... algorithm runs over the whole machine; name it once, alone")
    return tuple(names)


def _text(text: str, where: str | Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for line, raw in enumerate(text.splitlines(), 1):
        if not raw.strip():
            continue
        key, colon, value = raw.partition(":")
        if not colon or not value.strip():
            raise InputError(f"{where}, line {line}: expected `key: value`, got {raw[:60]!r}")
        values[key.strip()] = value.strip()
    return values
