"""How many devices of each pod a job uses: 64 of the 72 of an NVL72 rack where 256 are wanted."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tradespace.inputs.cluster import Cluster, Dim
from tradespace.num import Num, any_true, is_multiple, minimum, negate, where

SHARE = 8.0 / 9.0  # of a switched pod that is used at least: 64 of 72, as racks of 72 are run (Megatron-Bridge, MLPerf)


def used(dim: Dim, devices: Num) -> Num:
    """Members of the dim that each pod of a job of so many members uses.

    All of them where whole pods hold the job, the whole job where it is smaller; else the largest divisor of the
    job, so that groups tile pods. A torus may be cut at will; of a switched pod at most one member in nine stays idle,
    otherwise the job fills pods one after the other.

    >>> rack = Dim(name="nvlink", kind="switch", size=72.0, bandwidth=9e11)
    >>> used(rack, 8.0), used(rack, 144.0), used(rack, 256.0), used(rack, 1024.0), used(rack, 100.0)
    (8.0, 72.0, 64.0, 64.0, 72.0)
    """
    whole = minimum(dim.size, devices)
    if not any_true(negate(is_multiple(devices, whole))):
        return whole
    least = SHARE if dim.kind == "switch" else 0.0
    if isinstance(dim.size, float) and isinstance(devices, float):
        return _even(dim.size, devices, least)
    even = np.frompyfunc(lambda size, job: _even(float(size), float(job), least), 2, 1)
    cut: Num = even(dim.size, devices).astype(np.float64)
    return cut


@lru_cache(maxsize=65536)
def _even(size: float, devices: float, least: float) -> float:
    """The largest divisor of `devices` up to `size`, or min(size, devices) where that leaves too much idle."""
    whole = min(size, devices)
    if whole % 1.0 or devices % 1.0:
        return whole
    part = next(n for n in range(int(whole), 0, -1) if devices % n == 0)
    return float(part) if part >= least * size * (1.0 - 1e-12) else whole


def idle(cluster: Cluster) -> Num:
    """Devices paid for over devices used: a switched pod of which a job uses all but a ninth is nobody else's.

    >>> from tradespace.inputs import load
    >>> idle(load.cluster("gb200-nvl72", devices=128)), idle(load.cluster("gb200-nvl72", devices=8))
    (1.125, 1.0)
    """
    share: Num = 1.0
    devices = cluster.devices
    for dim in cluster.network[:-1]:
        size = used(dim, devices)
        if dim.kind == "switch":
            share = share * where(size >= SHARE * dim.size * (1.0 - 1e-12), dim.size / size, 1.0)
        devices = devices / size
    return share
