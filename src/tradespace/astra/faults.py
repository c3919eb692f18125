"""What ASTRA-sim gets wrong: warnings that name the fault, each once per call.

Source: measured on `astra-sim/astra-sim` with both analytical backends; the measured numbers are in `docs/astra.md`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from tradespace.network.astra import Network, System


class AstraWarning(UserWarning):
    """ASTRA-sim's answer is reproduced, but it is not what the hardware does, or not what was asked for."""


def warn(text: str) -> None:
    """Emit one `AstraWarning`."""
    warnings.warn(text, AstraWarning, stacklevel=3)


def physical_notes(net: Network, system: System, groups: Iterable[tuple[int, ...]]) -> list[str]:
    """The known physical errors that these inputs run into, one sentence each.

    >>> from tradespace.network.astra import Dim
    >>> ring = Network((Dim("Ring", 8, 50, 500),))
    >>> physical_notes(ring, System({"all_to_all": ("ring",)}), [])[0]
    'Ring dims: ring collectives use one direction of each link only; a two-way ring has twice this bandwidth'
    """
    notes = []
    used = [(dim, name) for names in system.algorithms.values() for dim, name in zip(net.dims, names, strict=False)]
    if any(dim.kind == "Ring" and name == "ring" for dim, name in used):
        notes.append(
            "Ring dims: ring collectives use one direction of each link only; a two-way ring has twice this bandwidth"
        )
    crowded = [dim for dim, name in used if dim.kind == "Switch" and "irect" in name and not name.endswith("irect1")]
    if not net.aware and any(dim.size > 2 for dim in crowded):
        notes.append(
            "direct on a Switch: the congestion-unaware backend lets a device send to all peers at once at "
            "full speed, up to (n-1) times too fast"
        )
    if net.aware and any(dim.kind == "Switch" for dim in net.dims):
        notes.append(
            "Switch: the congestion-aware backend stores and forwards whole chunks, about 2 times too slow "
            "with few chunks"
        )
    if not net.aware and system.active > 1:
        notes.append(
            "active-chunks-per-dimension > 1: the congestion-unaware backend does not share bandwidth among "
            "active chunks, up to that factor too fast"
        )
    ring = system.algorithms.get("all_to_all", ())
    if any(dim.size > 2 and "ing" in name for dim, name in zip(net.dims, ring, strict=False)):
        notes.append("ring all-to-all: charged as n(n-1)/2 whole neighbour steps, too slow where transfers overlap")
    if any(_spans(net, group) for group in groups):
        which = "highest" if net.highest else "lowest"
        notes.append(
            f"groups or pairs that differ in several dims: each message is charged on the {which} differing "
            "dim alone, the others are free"
        )
    return notes


def _spans(net: Network, group: tuple[int, ...]) -> bool:
    varying = 0
    for index, dim in enumerate(net.dims):
        stride = net.stride(index)
        varying += len({rank // stride % dim.size for rank in group}) > 1
    return varying > 1 and len(group) < net.size
