"""Figures that are known to be wrong for a known part: bidirectional link rates, peaks that count 2:4 sparsity.

They are data (catalog/traps.toml) and are refused only where a person typed them, in a file or with --set.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tradespace.errors import InputError
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.files import CATALOG, read
from tradespace.inputs.units import parse

TOLERANCE = 0.01
_UNITS = {"peak": "FLOP/s", "peak_fp8": "FLOP/s", "peak_fp4": "FLOP/s", "bandwidth": "byte/s"}


@cache
def known() -> list[dict[str, Any]]:
    """The known wrong figures: devices, field, wrong and right value with unit, why."""
    return list(read(CATALOG / "traps.toml")["trap"])


def check_value(device: str, path: str, value: float, where: str) -> None:
    """Refuse `value` for `path` ("device.peak") if it is a known wrong figure of this device, within 1 %."""
    for trap in known():
        if trap["field"] != path or device not in trap["devices"]:
            continue
        wrong = parse(trap["wrong"], _UNITS[path.rpartition(".")[2]], "traps")
        if abs(value - wrong) <= TOLERANCE * wrong:
            raise InputError(
                f"{where}: {trap['wrong']} of the {device} {trap['why']}; the value here is {trap['right']}"
                f" (for a part of your own, give it another key first: device.key=my-{device})"
            )


def check_cluster(cluster: Cluster, where: str) -> None:
    """Refuse known wrong figures in a cluster that a person wrote."""
    device = cluster.device
    for name in ("peak", "peak_fp8", "peak_fp4"):
        check_value(device.key, f"device.{name}", float(getattr(device, name)), f"{where}.device.{name}")
    for dim in cluster.network:
        path = f"network.{dim.name}.bandwidth"
        check_value(device.key, path, float(dim.bandwidth), f"{where}.{path}")
