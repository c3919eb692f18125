"""The resources of a cluster that money can buy more of, each as a function that scales it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tradespace.inputs.cluster import Cluster, Device, Dim, MemoryTier
from tradespace.num import floor, maximum

SCALED = 0.2  # how far a tornado turns each resource down and up
PEAKS = ("peak", "peak_fp32", "peak_fp8", "peak_fp4")


@dataclass(frozen=True, eq=False)
class Resource:
    """One resource: its name as in `--set`, unit, value, the factors down and up, and the cluster with it scaled.

    What is counted in whole pods or powers of two is halved and doubled, all else turned by 20 %.
    """

    name: str
    unit: str
    value: float
    down: float
    up: float
    scaled: Callable[[float], Cluster]


def resources(cluster: Cluster) -> list[Resource]:
    """Every resource of a cluster: peak, tiers of memory, dims of the network, pod sizes, devices.

    >>> from tradespace.inputs import load
    >>> [resource.name for resource in resources(load.cluster("dgx-h100"))][:3]
    ['device.peak', 'device.memory.hbm.capacity', 'device.memory.hbm.bandwidth']
    """
    found = [_turned("device.peak", "FLOP/s", cluster.device.peak, lambda factor: _peak(cluster, factor))]
    for tier in cluster.device.memory:
        for field, unit in (("capacity", "byte"), ("bandwidth", "byte/s")):
            found.append(_tier(cluster, tier, field, unit))
    for dim in cluster.network:
        for field, unit in (("bandwidth", "byte/s"), ("latency", "s")):
            found.append(_dim(cluster, dim, field, unit))
    found += [pod_size(cluster, dim) for dim in cluster.network[:-1]]
    devices = float(cluster.devices)

    def more(factor: float) -> Cluster:
        return replace(cluster, devices=devices * factor)

    return [*found, Resource("devices", "", devices, 0.5, 2.0, more)]


def pod_size(cluster: Cluster, dim: Dim) -> Resource:
    """How many devices (or groups of the inner dims) one inner dim of the network connects."""

    def larger(factor: float) -> Cluster:
        return _with_dim(cluster, dim, replace(dim, size=maximum(floor(dim.size * factor), 1.0)))

    return Resource(f"network.{dim.name}.size", "", float(dim.size), 0.5, 2.0, larger)


def _turned(name: str, unit: str, value: object, scaled: Callable[[float], Cluster]) -> Resource:
    return Resource(name, unit, float(value), 1.0 - SCALED, 1.0 + SCALED, scaled)  # type: ignore[arg-type]


def _peak(cluster: Cluster, factor: float) -> Cluster:
    """All matrix peaks together: a faster chip is faster in every type."""
    changes = {name: getattr(cluster.device, name) * factor for name in PEAKS}
    return replace(cluster, device=replace(cluster.device, **changes))


def _tier(cluster: Cluster, tier: MemoryTier, field: str, unit: str) -> Resource:
    def scaled(factor: float) -> Cluster:
        new = replace(tier, **{field: getattr(tier, field) * factor})
        memory = tuple(new if old is tier else old for old in cluster.device.memory)
        device: Device = replace(cluster.device, memory=memory)
        return replace(cluster, device=device)

    return _turned(f"device.memory.{tier.name}.{field}", unit, getattr(tier, field), scaled)


def _dim(cluster: Cluster, dim: Dim, field: str, unit: str) -> Resource:
    def scaled(factor: float) -> Cluster:
        return _with_dim(cluster, dim, replace(dim, **{field: getattr(dim, field) * factor}))

    return _turned(f"network.{dim.name}.{field}", unit, getattr(dim, field), scaled)


def _with_dim(cluster: Cluster, old: Dim, new: Dim) -> Cluster:
    return replace(cluster, network=tuple(new if dim is old else dim for dim in cluster.network))
