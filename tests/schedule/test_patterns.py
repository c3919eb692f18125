"""In-flight counts and bubble fractions against published ones."""

from __future__ import annotations

import numpy as np
import pytest

from tradespace.schedule.patterns import bubble_fraction, in_flight_1f1b, in_flight_gpipe
from tradespace.schedule.table import SCHEDULES
from tradespace.schedule.timeline import timeline


@pytest.mark.parametrize(("p", "v", "m"), [(4, 1, 8), (8, 1, 64), (12, 1, 5), (4, 2, 8), (8, 3, 8), (2, 6, 64)])
def test_bubble_fraction_of_narayanan(p: int, v: int, m: int) -> None:
    """Section 2.2: t_pb / t_id = (p - 1) / m for GPipe and 1F1B, (p - 1) / (v m) interleaved; backward = 2 forward."""
    name = "1f1b" if v == 1 else "interleaved"
    ran = timeline(name, {"forward": [1.0 / v] * (p * v), "backward": [2.0 / v] * (p * v)}, p, m)
    for idle, busy in zip(ran.bubble, ran.busy, strict=True):
        assert idle / busy == pytest.approx((p - 1) / (v * m), rel=1e-12)
    assert bubble_fraction(float(p), float(v), float(m)) == pytest.approx(ran.bubble[0] / ran.busy[0], rel=1e-12)


def test_figure_4_of_narayanan() -> None:
    """Figure 4 draws p = 4, m = 8, backward twice as long as forward: 8 x 3 + 3 x 3 units, with two chunks 3 x 3 / 2
    of fill and drain."""
    plain = timeline("1f1b", {"forward": [1.0] * 4, "backward": [2.0] * 4}, 4, 8)
    chunked = timeline("interleaved", {"forward": [0.5] * 8, "backward": [1.0] * 8}, 4, 8)
    assert (plain.makespan, chunked.makespan) == (33.0, 28.5)


@pytest.mark.parametrize(("p", "v"), [(8, 3), (35, 3)])
def test_first_stage_of_korthikanti(p: int, v: int) -> None:
    """Section 4.2.3 with the pipelines of table 3 (175B, 530B): p microbatches without, p (1 + (p - 1) / (p v)) with
    interleaving; m is 64 and 280 there."""
    m = {8: 64.0, 35: 280.0}[p]
    assert in_flight_1f1b(0.0, float(p), 1.0, m) == p
    assert in_flight_1f1b(0.0, float(p), float(v), m) == pytest.approx(p * (1 + (p - 1) / (p * v)), rel=1e-14)


@pytest.mark.parametrize("v", [2, 3, 5])
@pytest.mark.parametrize("p", [2, 4, 7])
def test_korthikantis_factor_needs_enough_microbatches(p: int, v: int) -> None:
    """It is reached from m = p + (p - 1) / v on: m = 2 p, but not m = p, where all microbatches are in flight."""
    factor = p * (1 + (p - 1) / (p * v))
    assert in_flight_1f1b(0.0, float(p), float(v), 2.0 * p) == pytest.approx(factor, rel=1e-14)
    assert in_flight_1f1b(0.0, float(p), float(v), float(p)) == p < factor


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_in_flight_equals_the_timeline_on_every_stage(name: str) -> None:
    """All p <= 7, v <= 4, m <= 3 p that the schedule runs; the count depends on the order alone, not on times."""
    checked = 0
    for p in range(1, 8):
        for v in (1,) if name == "gpipe" else (1, 2, 3, 4):
            for m in range(1, 3 * p + 1) if v == 1 else (p, 2 * p, 3 * p):
                durations = {"forward": [1.0] * (p * v), "backward": [2.0] * (p * v)}
                live = timeline(name, durations, p, m).live
                for stage, chunks in enumerate(live):
                    counted = SCHEDULES[name].in_flight(float(stage), float(p), float(v), float(m))
                    assert counted == pytest.approx(chunks / v, rel=1e-14)
                    checked += 1
    assert checked > 400


def test_arrays_equal_scalars_bit_for_bit() -> None:
    """One and more virtual stages in the same array."""
    p, v, m = np.array([1.0, 2.0, 5.0, 8.0]), np.array([1.0, 2.0, 3.0, 7.0]), np.array([1.0, 8.0, 35.0, 64.0])
    grid = in_flight_1f1b(0.0, p.reshape(4, 1, 1), v.reshape(1, 4, 1), m)
    last = in_flight_1f1b(p.reshape(4, 1, 1) - 1.0, p.reshape(4, 1, 1), v.reshape(1, 4, 1), m)
    assert isinstance(grid, np.ndarray)
    assert isinstance(last, np.ndarray)
    for i in range(4):
        for j in range(4):
            for k in range(4):
                pipeline, chunks, microbatches = float(p[i]), float(v[j]), float(m[k])
                assert grid[i, j, k] == in_flight_1f1b(0.0, pipeline, chunks, microbatches)
                assert last[i, j, k] == in_flight_1f1b(pipeline - 1.0, pipeline, chunks, microbatches)
    assert np.array_equal(in_flight_gpipe(0.0, p, v, m), m)
