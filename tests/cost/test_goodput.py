"""Failures and checkpoints against published jobs and planning examples."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tradespace as ts
from tradespace.cost.goodput import best_interval, checkpoint_time, goodput, job_mtbf, young_interval
from tradespace.cost.run import checkpoint_bytes, run_goodput
from tradespace.inputs import load
from tradespace.inputs.economics import economics
from tradespace.num import expm1
from tradespace.step import Step

HOUR = 3600.0


def step_of(key: str, cluster: str, devices: float, text: str) -> Step:
    found = load.cluster(cluster, devices)
    return ts.predict(load.model(key), found, load.strategy(text, cluster=found))


def test_expm1_is_exact_and_the_same_on_arrays() -> None:
    x = np.concatenate([np.linspace(0.0, 30.0, 1001), np.linspace(-5.0, 0.0, 11)])
    assert expm1(x) == pytest.approx(np.expm1(x), rel=1e-12)
    assert expm1(1e-12) == pytest.approx(np.expm1(1e-12), rel=1e-12)
    assert all(expm1(float(v)) == e for v, e in zip(x, expm1(x), strict=True))


def test_llama_3_is_interrupted_every_three_hours() -> None:
    """Llama 3, table 5: 419 unexpected interruptions of 16,384 devices in 54 days; more than 90 % effective time."""
    assert job_mtbf(economics("h100-sxm").mtbf, 16384.0) == pytest.approx(54 * 24 * HOUR / 419, rel=1e-4)
    step = step_of("llama-3.1-405b", "dgx-h100", 16384.0, "tp=8,pp=16,global_batch=2048")
    assert run_goodput(step).share > 0.90


@pytest.mark.parametrize(("devices", "hours", "digits"), [(16384, 1.8, 1), (131072, 0.23, 2)])
def test_projections_of_rsc_1(devices: int, hours: float, digits: int) -> None:
    """Kokolis et al. 2024, projected from 6.50 failures per 1,000 node-days."""
    assert round(job_mtbf(economics("a100-sxm-80gb").mtbf, devices) / HOUR, digits) == hours


def test_jobs_of_1024_devices_fail_for_more_than_hardware() -> None:
    """The same paper measured 7.9 h for 1,024 devices where its hardware rate says 28.8 h: the default is a floor."""
    assert job_mtbf(economics("a100-sxm-80gb").mtbf, 1024.0) / HOUR == pytest.approx(28.8, rel=0.01)


@pytest.mark.parametrize(("restart", "low", "high"), [(5.0, 0.93, 0.96), (10.0, 0.89, 0.92)])
def test_rsc_planning_for_90_percent(restart: float, low: float, high: float) -> None:
    """Kokolis et al. 2024: 12,000 devices need checkpoints every 7 min and restarts of 5-10 min for 90 %."""
    mtbf = job_mtbf(economics("a100-sxm-80gb").mtbf, 12000.0)
    assert low < goodput(0.0, 7 * 60.0, mtbf, restart * 60.0) < high


def test_interval_rule() -> None:
    """Young 1974 with Llama 3's 3.1 h and a minute of stall: 19 min; Daly's higher order differs by its C."""
    write, mtbf = 60.0, 3.1 * HOUR
    assert young_interval(write, mtbf) / 60 == pytest.approx(19.3, abs=0.05)
    times = np.linspace(200.0, 4000.0, 3801)
    best = times[np.argmax(goodput(write, times, mtbf, 0.0))]
    assert best_interval(write, mtbf) == pytest.approx(best, abs=2.0)
    assert best_interval(5 * mtbf, mtbf) == mtbf


def test_first_order_form() -> None:
    """1 - C/t - (t + C)/2M - R/M where losses are small."""
    write, interval, mtbf, restart = 30.0, 3000.0, 4e5, 600.0
    simple = 1.0 - write / interval - (interval + write) / (2.0 * mtbf) - restart / mtbf
    assert goodput(write, interval, mtbf, restart) == pytest.approx(simple, abs=2e-4)
    exact = interval / (mtbf * math.exp(restart / mtbf) * math.expm1((interval + write) / mtbf))
    assert goodput(write, interval, mtbf, restart) == pytest.approx(exact, rel=1e-10)


def test_bloom_checkpoints() -> None:
    """BLOOM: 2.3 TB (TiB by 14 bytes per parameter) written in 40 s by 384 devices, a failure a week."""
    step = step_of("bloom-176b", "dgx-a100", 384.0, "tp=4,pp=12,global_batch=2048")
    assert checkpoint_bytes(step) / 2**40 == pytest.approx(2.3, rel=0.03)
    assert run_goodput(step).write == pytest.approx(40.0, rel=0.08)


def test_llama_8b_checkpoint() -> None:
    """dgxc-benchmarking: about 105 GB, 13 bytes per parameter; ours: 14, 16-bit weights beside the masters."""
    step = step_of("llama-3.1-8b", "dgx-h100", 8.0, "tp=2,global_batch=64")
    assert checkpoint_bytes(step) / 105e9 == pytest.approx(14 / 13, rel=0.01)


@pytest.mark.parametrize(
    ("size", "per_device", "devices", "seconds"),
    [
        (105e9, 0.527e9, 8.0, 24.9),  # Llama-3.1-8B, dgxc-benchmarking
        (629.9 * 2**30, 764 * 2**20, 1.0, 844.0),  # AMD-AGI/Primus#81
        (2.3e12, 0.15e9, 384.0, 40.0),  # BLOOM
    ],
)
def test_published_checkpoint_times(size: float, per_device: float, devices: float, seconds: float) -> None:
    assert checkpoint_time(size, per_device, devices) == pytest.approx(seconds, rel=0.005)


def test_without_a_rate_nothing_fails() -> None:
    found = ts.replace_path(load.cluster("dgx-h100", 64.0), "economics.mtbf", 0.0)
    step = ts.predict(load.model("llama-3.1-8b"), found, load.strategy("tp=2,global_batch=64", cluster=found))
    assert run_goodput(step).share == 1.0
    assert step.to_dict()["cost"]["mean_time_between_failures_s"] is None
