"""Columns of results: what a table of candidates says about each of them, by name, unit and direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from tradespace.cost.price import million_tokens, rate
from tradespace.num import Num, where
from tradespace.step import Step


@dataclass(frozen=True)
class Column:
    """One column: `best` is 1 where smaller is better, -1 where larger is."""

    unit: str
    doc: str
    value: Callable[[Step], Any]
    best: float = 1.0


def _known(value: Num) -> Num:
    """Infinite where a price or a power is not known: never the least."""
    return where(value > 0.0, value, inf)


def _per_million(step: Step) -> Num:
    return _known(million_tokens(rate(step.cluster), step.tokens_per_s_per_device * step.cluster.devices))


COLUMNS: Mapping[str, Column] = {
    "step_time_s": Column("s", "time of one training step", lambda step: step.step_time),
    "tokens_per_s_per_device": Column(
        "1/s", "trained tokens per second and device", lambda step: step.tokens_per_s_per_device, -1.0
    ),
    "mfu": Column("", "model FLOPs utilization of the dense 16-bit peak", lambda step: step.mfu, -1.0),
    "hfu": Column("", "the same with recomputed FLOPs", lambda step: step.hfu, -1.0),
    "memory_total": Column("byte", "memory of the worst stage", lambda step: step.memory_total),
    "capacity": Column("byte", "memory of the device that tensors may use", lambda step: step.capacity, -1.0),
    "usd_per_step": Column("USD", "price of one step; none where no price is known", lambda step: _known(step.cost)),
    "usd_per_million_tokens": Column("USD", "price of a million trained tokens (or samples)", _per_million),
    "kwh_per_step": Column("kWh", "energy of one step at the site's meter", lambda step: _known(step.energy / 3.6e6)),
    "data": Column("", "data-parallel degree that the devices leave", lambda step: step.data),
    "microbatches": Column("", "microbatches of one step", lambda step: step.microbatches),
    "legal": Column("", "whether a framework could run it", lambda step: step.legal, -1.0),
    "fits": Column(
        "", "whether it is legal and its memory fits, at risk or surely", lambda step: step.legal & step.fits
    ),
    "fits_surely": Column(
        "", "the same with the room that allocators need", lambda step: step.legal & step.fits_surely, -1.0
    ),
}
"""In the order of the table."""

FLAGS = ("legal", "fits", "fits_surely")
"""Columns that are true or false."""

MEASURES = tuple(name for name in COLUMNS if name not in (*FLAGS, "memory_total", "capacity"))
"""Columns that mean nothing for a candidate that no framework can run: empty where it is not legal."""
