"""The evaluator itself: dependencies, orders, other kinds of passes, bad input."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tradespace.errors import InputError
from tradespace.schedule.passes import Order, Pass
from tradespace.schedule.table import SCHEDULES
from tradespace.schedule.timeline import Event, evaluate, timeline

RUNS = [("gpipe", 4, 1, 6), ("1f1b", 4, 1, 7), ("1f1b", 5, 1, 3), ("interleaved", 3, 4, 9), ("interleaved", 1, 2, 3)]


@pytest.mark.parametrize(("name", "p", "v", "m"), RUNS)
def test_every_pass_runs_once_and_after_its_inputs(name: str, p: int, v: int, m: int) -> None:
    """Uneven chunks and a latency between stages: the rules of a pipeline, read off the events."""
    draw = Random(1)
    durations = {kind: [draw.uniform(0.5, 2.0) for _ in range(p * v)] for kind in ("forward", "backward")}
    ran = timeline(name, durations, p, m, latency=0.25)
    found: dict[tuple[str, int, int], Event] = {(e.kind, e.chunk, e.microbatch): e for e in ran.events}
    assert len(found) == len(ran.events) == 2 * p * v * m
    for (kind, chunk, microbatch), event in found.items():
        assert event.stage == chunk % p
        assert event.end == event.start + durations[kind][chunk]
        near = found.get((kind, chunk - 1 if kind == "forward" else chunk + 1, microbatch))
        if near is not None:
            assert event.start >= near.end + (0.25 if near.stage != event.stage else 0.0)
        if kind == "backward":
            assert event.start >= found["forward", chunk, microbatch].end
    for stage in range(p):
        own = [event for event in ran.events if event.stage == stage]
        assert all(a.end <= b.start for a, b in pairwise(own))
        assert ran.busy[stage] == pytest.approx(sum(e.end - e.start for e in own))
        assert ran.bubble[stage] == pytest.approx(ran.makespan - ran.busy[stage])
    assert ran.makespan == max(event.end for event in ran.events)


@pytest.mark.parametrize(("name", "p", "v", "m"), RUNS)
def test_live_activations_equal_a_count_over_time(name: str, p: int, v: int, m: int) -> None:
    """A chunk is alive from its forward's start to its backward's end: the largest overlap of these intervals."""
    ran = timeline(name, {"forward": [1.0] * (p * v), "backward": [2.0] * (p * v)}, p, m)
    for stage in range(p):
        marks = [(e.start, 1) for e in ran.events if e.stage == stage and e.kind == "forward"]
        marks += [(e.end, -1) for e in ran.events if e.stage == stage and e.kind == "backward"]
        alive, most = 0, 0
        for _, step in sorted(marks):
            alive += step
            most = max(most, alive)
        assert ran.live[stage] == most


def test_interleaved_order_of_megatron() -> None:
    """Forwards of the comment in Megatron-LM's schedules.py on groups of microbatches, with groups of p = 2 and m = 4:
    microbatches 0 1 0 1 2 3 2 3, chunks of the stage 0 0 1 1 0 0 1 1; backwards take the chunks in reverse."""
    for stage, passes in enumerate(SCHEDULES["interleaved"].order(2, 2, 4)):
        forwards = [x for x in passes if x.kind == "forward"]
        backwards = [x for x in passes if x.kind == "backward"]
        assert [x.microbatch for x in forwards] == [x.microbatch for x in backwards] == [0, 1, 0, 1, 2, 3, 2, 3]
        assert [x.chunk // 2 for x in forwards] == [0, 0, 1, 1, 0, 0, 1, 1]
        assert [x.chunk // 2 for x in backwards] == [1, 1, 0, 0, 1, 1, 0, 0]
        warmup = next(i for i, x in enumerate(passes) if x.kind == "backward") - 1
        assert warmup == (2 - stage - 1) * 2 + (2 - 1) * 2


def zero_bubble_h1(p: int, m: int) -> Order:
    """Qi et al. 2023 (arXiv 2401.10241), section 2.1: 1F1B with the weight gradients split off, i of
    them put off on stage i, so that every stage holds as many microbatches."""
    stages: Order = []
    for i in range(p):
        warmup = min(p - 1 - i, m)
        passes = [Pass("forward", i, j) for j in range(warmup)]
        for j in range(m):
            if warmup + j < m:
                passes.append(Pass("forward", i, warmup + j))
            passes.append(Pass("input_grad", i, j))
            if j >= i:
                passes.append(Pass("weight_grad", i, j - i))
        stages.append(passes + [Pass("weight_grad", i, j) for j in range(max(m - i, 0), m)])
    return stages


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (8, 24)])
def test_split_backward_reaches_the_bubble_of_zero_bubble_h1(p: int, m: int) -> None:
    """arXiv 2401.10241, sections 2.1 and 2.3: 1F1B idles (p - 1)(F + B + W), ZB-H1 (p - 1)(F + B - W), a third of it
    with equal passes; both hold p microbatches at most."""
    one = [1.0] * p
    split = evaluate(zero_bubble_h1(p, m), {"forward": one, "input_grad": one, "weight_grad": one})
    whole = timeline("1f1b", {"forward": one, "backward": [2.0] * p}, p, m)
    assert split.makespan == 3.0 * m + (p - 1) * 1.0
    assert whole.makespan == 3.0 * m + (p - 1) * 3.0
    assert split.live == (p,) * p
    assert max(whole.live) == p


def test_latency_of_one_microbatch() -> None:
    """One microbatch crosses p - 1 boundaries each way, v p - 1 with virtual stages; stages are not busy meanwhile."""
    ran = timeline("1f1b", {"forward": [1.0] * 4, "backward": [2.0] * 4}, 4, 1, latency=0.5)
    assert (ran.makespan, ran.busy) == (12.0 + 2 * 3 * 0.5, (3.0,) * 4)
    alone = timeline("interleaved", {"forward": [1.0] * 3, "backward": [2.0] * 3}, 1, 1, latency=0.5)
    assert alone.makespan == 9.0


def test_large_candidate() -> None:
    """p = 16, v = 8, m = 512: 131,072 passes."""
    ran = timeline("interleaved", {"forward": [1.0] * 128, "backward": [2.0] * 128}, 16, 512)
    assert len(ran.events) == 131072
    assert ran.makespan == 512 * 8 * 3.0 + 15 * 3.0


BAD = [
    (("1f1", {"forward": [1.0], "backward": [1.0]}, 1, 1), "unknown schedule '1f1'; did you mean '1f1b'"),
    (("1f1b", {"forward": [1.0], "backward": [1.0]}, 1, 0), "microbatches = 0, but both are at least 1"),
    (("1f1b", {"forward": [1.0], "backward": [1.0]}, 0, 1), "pipeline = 0"),
    (("1f1b", {"forward": [1.0] * 3, "backward": [1.0] * 3}, 2, 1), "multiple of pipeline = 2"),
    (("1f1b", {"forward": [1.0] * 2, "backward": [1.0]}, 1, 1), r"durations of \[1, 2\] chunks"),
    (("1f1b", {}, 1, 1), r"durations of \[\] chunks"),
    (("1f1b", {"forward": [1.0]}, 1, 1), "no durations of 'backward'"),
    (("interleaved", {"forward": [1.0] * 4, "backward": [1.0] * 4}, 2, 3), r"microbatches = 3, but groups of 2"),
    (("gpipe", {"forward": [1.0] * 4, "backward": [1.0] * 4}, 2, 2), "virtual_stages = 2, but a stage is one chunk"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_sentence(arguments: tuple[str, dict[str, list[float]], int, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        timeline(*arguments)


def test_an_order_that_cannot_run() -> None:
    order = [[Pass("backward", 0, 0), Pass("forward", 0, 0)]]
    with pytest.raises(InputError, match="stage 0 waits without end to run backward of chunk 0, microbatch 0"):
        evaluate(order, {"forward": [1.0], "backward": [1.0]})
