"""Provisional table of schedules, replaced by the schedule room's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tradespace.num import Num, maximum, minimum, where
from tradespace.schedule.stage_times import StageTimes


@dataclass(frozen=True)
class Schedule:
    name: str
    makespan: Callable[[StageTimes], Num]
    in_flight: Callable[[Num, Num, Num, Num], Num]
    sources: tuple[str, ...] = ()


def _in_flight(i: Num, p: Num, v: Num, mb: Num) -> Num:
    one = minimum(p - i, mb)
    inter = minimum((v - 1) * p + 2 * (p - 1 - i) + 1, mb * v) / v
    return where(v > 1.0, inter, one)


def _makespan(t: StageTimes) -> Num:
    v, p, mb = t.virtual_stages, t.pipeline, t.microbatches
    x = where(p > 1.0, 2 * v * t.p2p, 0.0)
    tot = [f + b for f, b in zip(t.forward, t.backward, strict=True)]
    mx = tot[0]
    for a in tot[1:]:
        mx = maximum(mx, a)
    su: Num = 0.0
    for c, a in zip(t.counts, tot, strict=True):
        su = su + c * a
    return mb * (mx + x) + (p - 1) / v * (su / p + x)


SCHEDULES: Mapping[str, Schedule] = {n: Schedule(n, _makespan, _in_flight) for n in ("1f1b", "gpipe", "interleaved")}
