"""Plans: the optimum of the model, counts, reasons, and what to do when nothing fits."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tradespace.errors import InputError
from tradespace.explore.plan import degrees, divisors, plan
from tradespace.inputs import load
from tradespace.predict import predict

MODEL = load.model("gpt3-175b")
CLUSTER = load.cluster("dgx-a100", devices=96)
BASE = load.strategy("global_batch=96", cluster=CLUSTER)


def test_experts_are_searched_over_both_of_their_degrees() -> None:
    """Every (ep, etp) that folds the devices of a stage, with etp a divisor of tp; given ones stay."""
    model, cluster = load.model("mixtral-8x7b", 4096), load.cluster("dgx-h100", devices=16)
    found = degrees(model, 16.0, {})
    pairs = set(zip(found["strategy.expert"], found["strategy.expert_tensor"], strict=True))
    assert {(8.0, 1.0), (8.0, 2.0), (1.0, 8.0), (2.0, 2.0)} <= pairs
    assert all(t % x == 0 for t, x in zip(found["strategy.tensor"], found["strategy.expert_tensor"], strict=True))
    base = load.strategy("global_batch=32", cluster=cluster)
    best = plan(model, cluster, base, {"expert_tensor": 2.0, "expert": 4.0}).best
    assert best is not None
    assert (best.strategy.expert, best.strategy.expert_tensor) == (4.0, 2.0)
    dense = degrees(load.model("llama-3.1-8b"), 16.0, {})
    assert set(dense["strategy.expert"]) == set(dense["strategy.expert_tensor"]) == {1.0}


def test_plan_finds_the_optimum_of_a_plain_loop() -> None:
    """Every strategy of a small case by hand, degrees that are no powers of two among them."""
    found = plan(MODEL, CLUSTER, BASE, {"context": 1.0, "sequence_parallel": 1.0, "zero": 1.0, "recompute": 1.0})
    best = None
    numbers = divisors(96)
    for tensor, pipeline, chunks, micro in itertools.product(numbers, numbers, range(1, 49), numbers):
        chosen = replace(
            BASE,
            tensor=tensor,
            pipeline=pipeline,
            virtual_stages=float(chunks),
            micro_batch=micro,
            sequence_parallel=1.0,
            recompute=1.0,
        )
        step = predict(MODEL, CLUSTER, chosen)
        if bool(step.legal) and bool(step.fits_surely) and (best is None or step.step_time < best.step_time):
            best = step
    assert best is not None
    assert found.best is not None
    assert float(found.best.step_time) == float(best.step_time)


def test_ranked_strategies_are_distinct_and_ascending() -> None:
    found = plan(MODEL, CLUSTER, BASE, top=8)
    times = [float(step.step_time) for step in found.top]
    assert times == sorted(times)
    assert len({(float(s.step_time), float(s.memory_total)) for s in found.top}) == len(found.top)
    assert found.losses[0] == ""
    assert all(loss for loss in found.losses[1:])
    assert found.total >= found.legal >= found.fitting > 0


def test_fixed_keys_are_kept() -> None:
    found = plan(MODEL, CLUSTER, BASE, {"tensor": 8.0, "recompute": 2.0})
    assert {(s.strategy.tensor, s.strategy.recompute) for s in found.top} == {(8.0, 2.0)}


def test_nothing_fits_names_the_nearest_and_the_fixes() -> None:
    small = load.cluster("dgx-a100", devices=8)
    found = plan(MODEL, small, load.strategy("global_batch=64", cluster=small))
    assert found.best is None
    assert found.nearest is not None
    assert any("devices" in fix for fix in found.fixes)
    assert any("GB of memory" in fix for fix in found.fixes)
    devices = next(fix for fix in found.fixes if "devices" in fix)
    larger = load.cluster("dgx-a100", devices=float(devices.split()[0]))
    assert plan(MODEL, larger, load.strategy("global_batch=64", cluster=larger)).best is not None


def test_freeing_a_fixed_key_is_offered() -> None:
    found = plan(MODEL, CLUSTER, BASE, {"tensor": 1.0, "pipeline": 1.0, "zero": 0.0})
    assert found.best is None
    assert all(isinstance(fix, str) for fix in found.fixes)


def test_impossible_degrees_are_refused() -> None:
    with pytest.raises(InputError, match="no strategy"):
        plan(MODEL, CLUSTER, BASE, {"tensor": 7.0})


def test_the_peers_search() -> None:
    """GPT-3 175B on 4,096 A100-80G, batch 4,096: Calculon's exhaustive search finds 346.34 samples/s.

    Ours uses measured kernel rates; its optimum has to lie in the same region, within 15 %.
    """
    cluster = load.cluster("dgx-a100", devices=4096)
    base = load.strategy("global_batch=4096,profile=megatron-2021,flash=0,precision=fp16", cluster=cluster)
    found = plan(MODEL, cluster, base, {"context": 1.0})
    assert found.best is not None
    assert 4096 / float(found.best.step_time) == pytest.approx(346.34, rel=0.15)
