"""Memory in several tiers: how fast data is reached that local memory alone does not hold.

Three models, chosen by `Profile.hybrid`; with the share s_i of the data in tier i and its bandwidth B_i as shared:

serial    seconds per byte = sum_i s_i / B_i: one tier after another (COMET, arXiv 2211.16648, hybrid memory model)
parallel  seconds per byte = max_i s_i / B_i: all tiers at once
placed    each class of tensors lies in tiers of its own, the hottest class first; an operator pays for what it touches
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tradespace.errors import InputError, nearest
from tradespace.inputs.cluster import Device, MemoryTier
from tradespace.num import Num, maximum, minimum, where

HOTTEST_FIRST = ("working", "weights", "gradients", "activations", "tables", "states")
"""Classes of tensors in the order in which they take local memory (placed): by how often a step touches a byte.

working: activations of the layer at work. activations: kept for backward (checkpoints). states: optimizer and masters.
"""
USED_KINDS = ("local", "expanded")
"""Tiers that tensors live in; host memory and NVMe are reached by offloading instead."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Seconds per byte of streams and of random look-ups, and the latency of the slowest tier touched."""

    stream: Num
    random: Num
    latency: Num


def tiers_of(device: Device) -> tuple[MemoryTier, ...]:
    """Local memory and its expansions, in the order of the file."""
    return tuple(tier for tier in device.memory if tier.kind in USED_KINDS)


def capacity(device: Device) -> Num:
    """Bytes of all tiers that tensors live in, without the device's reserve."""
    return sum((tier.capacity for tier in tiers_of(device)), 0.0) - device.reserve


def rate(tier: MemoryTier) -> Num:
    """Bytes per second of streams for one device: efficiency counted, divided among the devices that share it.

    >>> rate(MemoryTier(name="cxl", capacity=1e12, bandwidth=100.0, efficiency=1.0, shared_by=4.0))
    25.0
    """
    return tier.bandwidth * tier.efficiency / tier.shared_by


def spread(size: Num, room: Sequence[Num]) -> list[Num]:
    """Bytes of `size` in each tier: as much as fits in each, the rest in the last one.

    >>> spread(10.0, [4.0, 3.0])
    [4.0, 6.0]
    """
    left = size
    held: list[Num] = []
    for capacity_left in room[:-1]:
        here = minimum(left, maximum(capacity_left, 0.0))
        held.append(here)
        left = left - here
    return [*held, left]


def access(shares: Sequence[Num], tiers: Sequence[MemoryTier], parallel: bool) -> Access:
    """Cost of data of which `shares` lie in each tier.

    >>> fast = MemoryTier(name="hbm", capacity=1.0, bandwidth=2.0, efficiency=1.0)
    >>> slow = MemoryTier(name="cxl", capacity=9.0, bandwidth=1.0, efficiency=1.0)
    >>> access([0.5, 0.5], [fast, slow], False).stream, access([0.5, 0.5], [fast, slow], True).stream
    (0.75, 0.5)
    """
    stream: Num = 0.0
    random: Num = 0.0
    latency: Num = 0.0
    for share, tier in zip(shares, tiers, strict=True):
        here = share / rate(tier)
        scattered = here / tier.random
        stream = maximum(stream, here) if parallel else stream + here
        random = maximum(random, scattered) if parallel else random + scattered
        latency = maximum(latency, where(share > 0.0, tier.latency, 0.0))
    return Access(stream, random, latency)


def _shares(held: Sequence[Num], size: Num) -> list[Num]:
    """Shares of the bytes in each tier; data of no size counts as local."""
    some = size > 0.0
    safe = where(some, size, 1.0)
    return [where(some, here / safe, 1.0 if i == 0 else 0.0) for i, here in enumerate(held)]


Accesses = Mapping[str, Access]


def accesses(device: Device, sizes: Mapping[str, Num], hybrid: str) -> Accesses:
    """How each class of tensors (`HOTTEST_FIRST`) is reached, for `sizes` bytes of each on one device.

    >>> from tradespace.inputs import load
    >>> found = accesses(load.device("a100-sxm-80gb"), {"weights": 1e9}, "serial")
    >>> round(1 / found["weights"].stream / 1e12, 3)
    1.51
    """
    tiers = tiers_of(device)
    if hybrid not in HYBRIDS:
        raise InputError(f"profile.hybrid: unknown model '{hybrid}'{nearest(hybrid, HYBRIDS)}")
    room: list[Num] = [tier.capacity for tier in tiers]
    room[0] = room[0] - device.reserve
    if hybrid != "placed":
        size = sum(sizes.values(), 0.0)
        same = access(_shares(spread(size, room), size), tiers, hybrid == "parallel")
        return dict.fromkeys(HOTTEST_FIRST, same)
    found: dict[str, Access] = {}
    for name in HOTTEST_FIRST:
        size = sizes.get(name, 0.0)
        held = spread(size, room)
        room = [left - here for left, here in zip(room, held, strict=True)]
        found[name] = access(_shares(held, size), tiers, False)
    return found


HYBRIDS = ("serial", "parallel", "placed")
