"""Closed forms against the timeline: equal where `Schedule.exact` says so, within stated bounds elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradespace.schedule.stage_times import StageTimes, transfer_per_pass
from tradespace.schedule.table import SCHEDULES
from tradespace.schedule.timeline import timeline, timeline_of

Make = Callable[..., StageTimes]


def gap(name: str, times: StageTimes) -> float:
    """Closed form over timeline - 1."""
    return float(SCHEDULES[name].makespan(times)) / timeline_of(name, times).makespan - 1.0


def passes(times: StageTimes) -> tuple[list[float], list[float]]:
    """Forward and backward seconds of each class that exists, with the transfers."""
    moved = float(times.virtual_stages * transfer_per_pass(times))
    exists = [bool(count) for count in times.counts]
    forward, backward = (
        [float(x) + moved for x, here in zip(row, exists, strict=True) if here]
        for row in (times.forward, times.backward)
    )
    return forward, backward


def test_gpipe_is_exact(uneven: Make) -> None:
    """Any stage times, any number of microbatches."""
    draw = Random(1)
    for _ in range(1000):
        times = uneven(draw, draw.choice([1.0, 2.0, 10.0]), (0.0, 3.0), free=True)
        assert abs(gap("gpipe", times)) < 1e-12


def test_even_stages_are_exact(pipeline_of: Make) -> None:
    """Any ratio of forward to backward; m also below p with one chunk per stage."""
    draw = Random(2)
    for _ in range(1500):
        stages, chunks = draw.randint(1, 9), draw.choice([1, 1, 2, 3, 5])
        pair = (draw.uniform(0.1, 3.0), draw.uniform(0.1, 3.0))
        microbatches = stages * draw.randint(1, 4) if chunks > 1 else draw.randint(1, 4 * stages)
        p2p = draw.choice([0.0, 0.05])
        times = pipeline_of(stages, draw.randint(0, 7), [pair] * 4, microbatches, chunks, p2p)
        assert abs(gap("1f1b", times)) < 1e-12


def test_uneven_1f1b_is_exact_while_no_stage_is_shorter_than_a_pass(uneven: Make) -> None:
    """m >= p, forward shares between 1/4 and 1/2: holds up to a factor 4/3 between stages, sometimes beyond."""
    draw = Random(3)
    met = 0
    for _ in range(3000):
        times = uneven(draw, draw.choice([1.1, 1.33, 1.6]), (1.0, 3.0), free=True)
        forward, backward = passes(times)
        if min(f + b for f, b in zip(forward, backward, strict=True)) < max(*forward, *backward):
            continue
        met += 1
        assert abs(gap("1f1b", times)) < 1e-12
    assert met > 2500


@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_slowest_last_stage_is_exact(pipeline_of: Make, chunks: int) -> None:
    """The head makes the last stage the slowest: longest forward and longest backward. Any m and any other stages
    with one chunk per stage; with more, others at least half as long and forward to backward between 1/4 and 4."""
    draw = Random(4)
    for _ in range(1000):
        stages = draw.randint(1, 8)
        least, most = (0.01, 20.0) if chunks == 1 else (0.5, 2.0)
        rows = [(draw.uniform(least, 1.0), draw.uniform(most / 2.0 * least, most / 2.0)) for _ in range(3)]
        last = (max(1.0, *(f for f, _ in rows)), max(most / 2.0, *(b for _, b in rows)))
        pairs = [last, *rows[1:], last] if stages == 1 else [*rows, last]
        microbatches = stages * draw.randint(1, 3) if chunks > 1 else draw.randint(1, 3 * stages)
        times = pipeline_of(stages, draw.randint(0, 6), pairs, microbatches, chunks, draw.choice([0.0, 0.05]))
        assert abs(gap("1f1b", times)) < 1e-12


@pytest.mark.parametrize(("factor", "below"), [(1.5, 0.04), (2.0, 0.15)])
def test_uneven_1f1b_is_never_above_the_timeline(uneven: Make, factor: float, below: float) -> None:
    """m >= p: the form is the length of a path, so it is a lower bound; it misses at most `below`, 0.2 % on average."""
    draw = Random(5)
    gaps = [gap("1f1b", uneven(draw, factor, (1.0, 3.0), free=True)) for _ in range(1500)]
    assert max(gaps) < 1e-12
    assert min(gaps) > -below
    assert sum(gaps) / len(gaps) > -0.002


def test_fewer_microbatches_than_stages_are_bounded(uneven: Make) -> None:
    """m < p, stages within a factor 2: within 12 %, 0.3 % on average."""
    draw = Random(6)
    gaps = [gap("1f1b", uneven(draw, 2.0, (0.0, 0.95), free=True)) for _ in range(1500)]
    assert max(map(abs, gaps)) < 0.12
    assert sum(map(abs, gaps)) / len(gaps) < 0.003


@pytest.mark.parametrize(
    ("factor", "free", "below", "above"),
    [(1.25, False, 0.03, 0.11), (2.0, False, 0.08, 0.13), (1.25, True, 0.15, 0.11), (2.0, True, 0.16, 0.13)],
)
def test_uneven_interleaved_is_bounded(uneven: Make, factor: float, free: bool, below: float, above: float) -> None:
    """Where the slowest stage is not the last one its slack takes up part of the fill, which the form does not see;
    where forward shares differ (`free`) passes of different length meet. 3.5 % on average at most."""
    draw = Random(7)
    gaps = [gap("1f1b", uneven(draw, factor, (1.0, 3.0), draw.choice([2, 3, 4]), free)) for _ in range(600)]
    assert min(gaps) > -below
    assert max(gaps) < above
    assert sum(map(abs, gaps)) / len(gaps) < 0.035


def test_head_and_embedding_in_one_chunk(pipeline_of: Make) -> None:
    """The form spreads a stage's time over its chunks; really the embedding sits in the first chunk of the model and
    the head in the last one. Chunks of 1-4 equal layers, head up to 3 layers: at most 2.5 % below, never above."""
    draw = Random(8)
    for _ in range(300):
        stages, chunks, layers = draw.choice([2, 4, 8]), draw.choice([2, 3, 4]), draw.randint(1, 4)
        microbatches, share = stages * draw.randint(1, 4), draw.uniform(0.25, 1 / 3)
        head, embedding = draw.uniform(0.2, 3.0), draw.uniform(0.0, 0.1)
        rows = []
        for part, of_layer in ((1 / 3, share), (2 / 3, 1.0 - share)):
            row = [of_layer * layers] * (stages * chunks)
            row[0] += embedding * part
            row[-1] += head * part
            rows.append(row)
        ran = timeline("interleaved", {"forward": rows[0], "backward": rows[1]}, stages, microbatches)
        sums = [tuple(sum(row[i::stages]) for row in rows) for i in range(stages)]
        middle = sums[1] if stages > 2 else (0.0, 0.0)
        times = pipeline_of(stages, 6, [sums[0], middle, (0.0, 0.0), sums[-1]], microbatches, chunks)
        ratio = float(SCHEDULES["interleaved"].makespan(times)) / ran.makespan
        assert 0.975 < ratio < 1.0 + 1e-12


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(sorted(SCHEDULES)), st.sampled_from([1, 2, 3]))
def test_slowest_stage_is_a_lower_bound(uneven: Make, seed: int, name: str, chunks: int) -> None:
    """No step is shorter than the slowest stage's own work, whatever the other stages are."""
    times = uneven(Random(seed), 20.0, (0.0, 4.0) if chunks == 1 else (1.0, 4.0), chunks, free=True)
    forward, backward = passes(times)
    longest = max(f + b for f, b in zip(forward, backward, strict=True))
    assert float(SCHEDULES[name].makespan(times)) >= float(times.microbatches) * longest * (1.0 - 1e-12)


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 64), st.integers(1, 8), st.floats(0.1, 10.0), st.floats(0.1, 10.0))
def test_more_virtual_stages_are_never_slower(pipeline_of: Make, p: int, groups: int, f: float, b: float) -> None:
    """Even stages without transfers."""
    found = [float(SCHEDULES["1f1b"].makespan(pipeline_of(p, 0, [(f, b)] * 4, p * groups, v))) for v in range(1, 9)]
    assert all(later < earlier for earlier, later in pairwise(found))


def test_transfers_are_free_on_one_stage(pipeline_of: Make) -> None:
    for name in SCHEDULES:
        assert SCHEDULES[name].makespan(pipeline_of(1, 0, [(1.0, 2.0)] * 4, 8, 1, 0.5)) == 24.0
        assert timeline_of(name, pipeline_of(1, 0, [(1.0, 2.0)] * 4, 8, 1, 0.5)).makespan == 24.0


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_arrays_equal_scalars_bit_for_bit(uneven: Make, name: str) -> None:
    """A flat list of candidates with one and more stages, one and more virtual stages."""
    draw = Random(9)
    cases = [uneven(draw, 3.0, (0.0, 4.0), draw.choice([1, 1, 2, 5]), free=True) for _ in range(300)]
    cases.append(StageTimes((1.0, 0.0, 0.0, 0.0), (1.3, 0.0, 0.0, 0.0), (2.1, 0.0, 0.0, 0.0), 0.3, 1.0, 1.0, 7.0))
    rows = [
        tuple(np.array([getattr(case, part)[i] for case in cases]) for i in range(4))
        for part in ("counts", "forward", "backward")
    ]
    singles = ("p2p", "pipeline", "virtual_stages", "microbatches")
    listed = StageTimes(*rows, *(np.array([getattr(case, part) for case in cases]) for part in singles))
    found = SCHEDULES[name].makespan(listed)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [SCHEDULES[name].makespan(case) for case in cases]


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_open_axes_equal_scalars_bit_for_bit(pipeline_of: Make, name: str) -> None:
    """Each entry on its own axis; the result has the shape of all of them together."""
    base = pipeline_of(6, 2, [(1.0, 2.2), (1.1, 2.3), (0.9, 1.9), (1.2, 2.7)], 12)
    layers, chunks, batches, moved = ([0.7, 1.3], [1.0, 2.0, 3.0], [6.0, 12.0, 18.0, 600.0], [0.0, 0.01])

    def at(scale: object, v: object, m: object, p2p: object) -> StageTimes:
        forward, backward = ([x * scale for x in row] for row in (base.forward, base.backward))  # type: ignore[operator]
        return StageTimes(base.counts, tuple(forward), tuple(backward), p2p, base.pipeline, v, m)  # type: ignore[arg-type]

    axes = np.ix_(np.array(layers), np.array(chunks), np.array(batches), np.array(moved))
    grid = SCHEDULES[name].makespan(at(*axes))
    assert isinstance(grid, np.ndarray)
    assert grid.shape == (2, 3, 4, 2)
    for index in np.ndindex(2, 3, 4, 2):
        i, j, k, n = index
        assert grid[index] == SCHEDULES[name].makespan(at(layers[i], chunks[j], batches[k], moved[n]))


def test_table_is_complete() -> None:
    assert set(SCHEDULES) == {"1f1b", "gpipe", "interleaved"}
    for name, schedule in SCHEDULES.items():
        assert schedule.name == name
        assert schedule.exact
        assert schedule.sources
