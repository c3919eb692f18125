"""One candidate's pipeline, pass by pass: the oracle of the closed forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tradespace.errors import InputError, nearest
from tradespace.schedule.passes import KINDS, Order, Pass
from tradespace.schedule.stage_times import StageTimes, transfer_per_pass
from tradespace.schedule.table import SCHEDULES


class Event(NamedTuple):
    """One pass as it ran; `start` and `end` in seconds from the first forward's start."""

    stage: int
    chunk: int
    microbatch: int
    kind: str
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """What happened: events stage by stage in the order in which each stage ran them, seconds, and per stage the
    busy time, the bubble (makespan - busy) and the largest number of chunks whose activations were alive at once
    (from the forward's start to the end of the pass that needs them last)."""

    events: tuple[Event, ...]
    makespan: float
    busy: tuple[float, ...]
    bubble: tuple[float, ...]
    live: tuple[int, ...]


def timeline(
    schedule: str,
    durations: Mapping[str, Sequence[float]],
    pipeline: int,
    microbatches: int,
    latency: float = 0.0,
) -> Timeline:
    """Run one step of a schedule.

    `durations` gives for each kind of pass ("forward", "backward") the seconds of each model chunk, in order along
    the model: `pipeline` entries, or a multiple with virtual stages. `latency` (seconds) passes between the end of a
    pass and the start of the one that needs its result on another stage; no stage is busy in it.

    >>> ran = timeline("1f1b", {"forward": [1.0, 1.0], "backward": [2.0, 2.0]}, 2, 4)
    >>> ran.makespan, ran.busy, ran.bubble, ran.live
    (15.0, (12.0, 12.0), (3.0, 3.0), (2, 1))
    """
    if schedule not in SCHEDULES:
        raise InputError(f"timeline: unknown schedule '{schedule}'{nearest(schedule, SCHEDULES)}")
    if pipeline < 1 or microbatches < 1:
        raise InputError(f"timeline: pipeline = {pipeline}, microbatches = {microbatches}, but both are at least 1")
    lengths = {len(seconds) for seconds in durations.values()}
    chunks = max(lengths, default=0)
    if len(lengths) != 1 or chunks % pipeline or not chunks:
        raise InputError(
            f"timeline: durations of {sorted(lengths)} chunks, but each kind of pass needs one per chunk, "
            f"a multiple of pipeline = {pipeline}"
        )
    order = SCHEDULES[schedule].order(pipeline, chunks // pipeline, microbatches)
    missing = {one.kind for one in order[0]} - durations.keys()
    if missing:
        raise InputError(f"timeline: no durations of '{min(missing)}', but {schedule} runs such passes")
    return evaluate(order, durations, latency)


def timeline_of(schedule: str, times: StageTimes, latency: float = 0.0) -> Timeline:
    """Run one step of a schedule for one candidate, whose `times` are plain numbers.

    >>> times = StageTimes((1.0, 0.0, 0.0, 1.0), (1.0, 0.0, 0.0, 1.0), (2.0, 0.0, 0.0, 2.0), 0.25, 2.0, 1.0, 4.0)
    >>> timeline_of("1f1b", times).makespan, SCHEDULES["1f1b"].makespan(times)
    (17.5, 17.5)
    """
    return timeline(schedule, chunk_durations(times), int(times.pipeline), int(times.microbatches), latency)


def chunk_durations(times: StageTimes) -> dict[str, list[float]]:
    """Seconds of each chunk by kind of pass: 1/v of its stage's time, and one transfer per pass.

    >>> times = StageTimes((1.0, 0.0, 0.0, 1.0), (1.0, 0.0, 0.0, 2.0), (2.0, 0.0, 0.0, 4.0), 0.25, 2.0, 2.0, 4.0)
    >>> chunk_durations(times)["forward"]
    [0.75, 1.25, 0.75, 1.25]
    """
    chunks, transfer = int(times.virtual_stages), float(transfer_per_pass(times))
    found: dict[str, list[float]] = {}
    for kind, seconds in (("forward", times.forward), ("backward", times.backward)):
        classes = zip(times.counts, seconds, strict=True)
        stages = [float(each) / chunks + transfer for count, each in classes for _ in range(int(count))]
        found[kind] = stages * chunks
    return found


def evaluate(order: Order, durations: Mapping[str, Sequence[float]], latency: float = 0.0) -> Timeline:
    """Start each pass as soon as its stage is free and what it waits for (`KINDS`) is there.

    Stages run their passes in the order given, so the times are lengths of longest paths and follow without a queue
    of events: each stage runs until its next pass lacks an input, in turn, until all are done. Raises `InputError`
    for an order in which stages wait for one another without end.

    >>> order = [[Pass("forward", 0, 0), Pass("backward", 0, 0)]]
    >>> evaluate(order, {"forward": [1.0], "backward": [2.0]}).makespan
    3.0
    """
    chunks = len(next(iter(durations.values())))
    home = {chunk: stage for stage, passes in enumerate(order) for chunk in {p.chunk for p in passes}}
    ends: dict[tuple[str, int, int], float] = {}
    ran: list[list[Event]] = [[] for _ in order]
    stuck = False
    while not stuck:
        stuck = True
        for stage, passes in enumerate(order):
            events = ran[stage]
            clock = events[-1].end if events else 0.0
            for index in range(len(events), len(passes)):
                kind, chunk, microbatch = passes[index]
                after, step, turn, _ = KINDS[kind]
                source = chunk + step
                if not 0 <= source < chunks:
                    after, source = turn, chunk
                start = clock
                if after:
                    ready = ends.get((after, source, microbatch))
                    if ready is None:
                        break
                    start = max(clock, ready + latency if home[source] != stage else ready)
                clock = start + durations[kind][chunk]
                ends[kind, chunk, microbatch] = clock
                events.append(Event(stage, chunk, microbatch, kind, start, clock))
                stuck = False
    return _summary(order, ran)


def _summary(order: Order, ran: list[list[Event]]) -> Timeline:
    """Per-stage sums of what ran; all passes must have run."""
    for stage, (passes, events) in enumerate(zip(order, ran, strict=True)):
        if len(events) < len(passes):
            kind, chunk, microbatch = passes[len(events)]
            raise InputError(
                f"order: stage {stage} waits without end to run {kind} of chunk {chunk}, microbatch {microbatch}; "
                "a pass must come after those that it needs"
            )
    makespan = max(events[-1].end for events in ran)
    busy = tuple(sum(event.end - event.start for event in events) for events in ran)
    return Timeline(
        events=tuple(event for events in ran for event in events),
        makespan=makespan,
        busy=busy,
        bubble=tuple(makespan - seconds for seconds in busy),
        live=tuple(_live(passes) for passes in order),
    )


def _live(passes: Sequence[Pass]) -> int:
    """The largest number of chunks alive at once; a stage runs one pass at a time, so the order alone decides."""
    alive = most = 0
    for one in passes:
        alive += KINDS[one.kind].held
        most = max(most, alive)
    return most
