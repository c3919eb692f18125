"""The table of pipeline schedules: a new schedule is a file with the same functions and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tradespace.num import Num
from tradespace.schedule import gpipe, one_forward_one_backward
from tradespace.schedule.passes import Order
from tradespace.schedule.patterns import in_flight_1f1b, in_flight_gpipe
from tradespace.schedule.stage_times import StageTimes


@dataclass(frozen=True)
class Schedule:
    """One pipeline schedule: closed forms on open axes, and the order of passes that the timeline runs.

    `makespan(times)`: seconds from the first forward's start to the last backward's end, without data-parallel
    exchange and optimizer. `in_flight(stage, pipeline, virtual_stages, microbatches)`: microbatches through all layers
    of the stage whose activations it holds. `order(pipeline, virtual_stages, microbatches)`: each stage's passes.
    `exact` says where `makespan` equals the timeline.

    >>> SCHEDULES["1f1b"].in_flight(1.0, 4.0, 1.0, 16.0)
    3.0
    """

    name: str
    makespan: Callable[[StageTimes], Num]
    in_flight: Callable[[Num, Num, Num, Num], Num]
    order: Callable[[int, int, int], Order]
    exact: str
    sources: tuple[str, ...]


_1F1B = one_forward_one_backward

SCHEDULES: Mapping[str, Schedule] = {
    "1f1b": Schedule("1f1b", _1F1B.makespan, in_flight_1f1b, _1F1B.order, _1F1B.EXACT, _1F1B.SOURCES),
    "gpipe": Schedule("gpipe", gpipe.makespan, in_flight_gpipe, gpipe.order, gpipe.EXACT, gpipe.SOURCES),
    "interleaved": Schedule("interleaved", _1F1B.makespan, in_flight_1f1b, _1F1B.order, _1F1B.EXACT, _1F1B.SOURCES),
}
"""By the name in `Strategy.schedule`. Interleaved is 1F1B with more than one virtual stage."""
