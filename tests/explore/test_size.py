"""Sizing against runs that were made, and its own definition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tradespace.cost.price import paid
from tradespace.explore.optimum import optimum
from tradespace.explore.size import DAY, Goal, cluster_of, default_batch, size
from tradespace.inputs import load

H100 = load.cluster("dgx-h100")
LLAMA_8B = load.model("llama-3.1-8b", 8192.0)


def test_llama_3_405b_needs_about_what_it_got() -> None:
    """15.6 x 10^12 tokens on 16,384 H100s: 54 days are documented, at 400 TFLOP/s they take 67. For 67 days we want at
    most that many devices, and no fewer than full efficiency of today's best software would need (60 % of the peak)."""
    model = load.model("llama-3.1-405b", 8192.0)
    (found,) = size(model, 15.6e12, Goal(seconds=67 * DAY), [H100])
    assert found.step is not None
    assert 16384 * 0.41 / 0.60 < float(found.step.cluster.devices) <= 16384


def test_deepseek_v3_on_h800() -> None:
    """14.8 x 10^12 tokens in 2.664 M H800-hours on 2,048 devices are 54.2 days, in FP8."""
    model, cluster = load.model("deepseek-v3", 4096.0), load.cluster("deepseek-h800-v3")
    base = load.strategy("global_batch=16384,precision=fp8", cluster=cluster)
    best = optimum(model, replace(cluster, devices=2048.0), base)
    assert best is not None
    assert float(best.run(14.8e12).seconds) / DAY == pytest.approx(54.2, rel=0.15)


def test_the_fewest_devices_in_time() -> None:
    (found,) = size(LLAMA_8B, 2e12, Goal(seconds=20 * DAY), [H100])
    assert found.step is not None
    assert found.run is not None
    assert float(found.run.seconds) <= 20 * DAY
    devices = float(found.step.cluster.devices)
    base = load.strategy(f"global_batch={default_batch(LLAMA_8B):g}", cluster=H100)
    fewer = optimum(LLAMA_8B, replace(H100, devices=devices / 2), base)
    assert fewer is not None
    assert float(fewer.run(2e12).seconds) > 20 * DAY


@pytest.mark.parametrize("goal", [Goal(usd=1e6), Goal(watts=1e6)])
def test_the_fastest_within_a_limit(goal: Goal) -> None:
    (found,) = size(LLAMA_8B, 2e12, goal, [H100])
    assert found.step is not None
    assert found.run is not None
    assert goal.met(found.step, found.run)
    base = load.strategy(f"global_batch={default_batch(LLAMA_8B):g}", cluster=H100)
    devices = float(found.step.cluster.devices)
    half = optimum(LLAMA_8B, replace(H100, devices=devices / 2), base)
    assert half is not None
    assert half.run(2e12).seconds > found.run.seconds
    double = optimum(LLAMA_8B, replace(H100, devices=devices * 2), base)
    assert double is not None
    assert not goal.met(double, double.run(2e12)) or double.run(2e12).seconds >= found.run.seconds


def test_what_cannot_be_says_why() -> None:
    (found,) = size(LLAMA_8B, 2e12, Goal(usd=1e3), [H100])
    assert found.step is None
    assert "at best" in found.reason
    assert "M USD" in found.reason
    (found,) = size(LLAMA_8B, 2e12, Goal(usd=1e6), [load.cluster("dojo")])
    assert "no price" in found.reason
    (found,) = size(LLAMA_8B, 2e12, Goal(watts=1e3), [H100])
    assert "MW" in found.reason


def test_racks_of_72_use_64() -> None:
    (found,) = size(LLAMA_8B, 2e12, Goal(seconds=12 * DAY), [load.cluster("gb200-nvl72")])
    assert found.step is not None
    assert found.step.cluster.devices == 128.0
    assert paid(found.step.cluster) == 1.125
    assert paid(load.cluster("tpu-v5p", 4096.0)) == 1.0
    assert cluster_of("gb200").key == "gb200-nvl72"


def test_dearer_devices_come_later() -> None:
    found = size(LLAMA_8B, 2e12, Goal(seconds=20 * DAY), [H100, load.cluster("dgx-h200"), load.cluster("mi300x-8")])
    assert [sized.cluster.device.key for sized in found][-1] == "mi300x"  # no rent is known: owned come after rented
    assert found[0].run is not None
    assert found[1].run is not None
    assert found[0].run.usd <= found[1].run.usd


def test_keys_of_the_strategy_are_kept() -> None:
    """Eight bits need fewer devices than sixteen; a degree that is given stays."""
    goal = Goal(seconds=20 * DAY)
    (plain,) = size(LLAMA_8B, 20e12, goal, [H100])
    (fp8,) = size(LLAMA_8B, 20e12, goal, [H100], strategy="precision=fp8,tp=2")
    assert plain.step is not None
    assert fp8.step is not None
    assert (fp8.step.strategy.precision.name, fp8.step.strategy.tensor) == ("fp8", 2.0)
    assert float(fp8.step.cluster.devices) < float(plain.step.cluster.devices)
