"""Columns of results: what a table of candidates says about each of them, by name, unit and direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tradespace.step import Step


@dataclass(frozen=True)
class Column:
    """One column: `best` is 1 where smaller is better, -1 where larger is."""

    unit: str
    doc: str
    value: Callable[[Step], Any]
    best: float = 1.0


COLUMNS: Mapping[str, Column] = {
    "step_time_s": Column("s", "time of one training step", lambda step: step.step_time),
    "tokens_per_s_per_device": Column(
        "1/s", "trained tokens per second and device", lambda step: step.tokens_per_s_per_device, -1.0
    ),
    "mfu": Column("", "model FLOPs utilization of the dense 16-bit peak", lambda step: step.mfu, -1.0),
    "hfu": Column("", "the same with recomputed FLOPs", lambda step: step.hfu, -1.0),
    "memory_total": Column("byte", "memory of the worst stage", lambda step: step.memory_total),
    "capacity": Column("byte", "memory of the device that tensors may use", lambda step: step.capacity, -1.0),
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

MEASURES = ("step_time_s", "tokens_per_s_per_device", "mfu", "hfu", "data", "microbatches")
"""Columns that mean nothing for a candidate that no framework can run: empty where it is not legal."""
