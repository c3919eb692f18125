"""Properties of predict that hold whatever the constants are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradespace.inputs import load
from tradespace.inputs.settings import replace_path
from tradespace.predict import predict

MODEL = load.model("gpt3-175b")
CLUSTER = load.cluster("dgx-a100", devices=1024)
BASE = load.strategy("tp=8,pp=8,global_batch=1536", cluster=CLUSTER)
DEGREES = [1.0, 2.0, 4.0, 8.0, 16.0]


@st.composite
def choices(draw: st.DrawFn) -> dict[str, float]:
    tensor = draw(st.sampled_from(DEGREES))
    pipeline = draw(st.sampled_from([1.0, 2.0, 4.0, 8.0, 12.0]))
    return {
        "tensor": tensor,
        "pipeline": pipeline,
        "virtual_stages": draw(st.sampled_from([1.0, 2.0, 4.0])) if pipeline > 1 else 1.0,
        "micro_batch": draw(st.sampled_from([1.0, 2.0, 4.0])),
        "sequence_parallel": draw(st.sampled_from([0.0, 1.0])) if tensor > 1 else 0.0,
        "recompute": draw(st.sampled_from([0.0, 1.0, 2.0])),
        "zero": draw(st.sampled_from([0.0, 1.0, 2.0, 3.0])),
        "context": draw(st.sampled_from([1.0, 2.0])),
    }


@settings(max_examples=150, deadline=None)
@given(choices())
def test_parts_sum_to_the_total(chosen: dict[str, float]) -> None:
    step = predict(MODEL, CLUSTER, replace(BASE, **chosen))
    assert sum(float(v) for v in step.time.values()) == pytest.approx(float(step.step_time), rel=1e-9)
    assert all(float(v) >= 0.0 for v in step.time.values())
    worst = max(sum(float(v) for v in parts.values()) for parts in step.stages.values())
    assert float(step.memory_total) == pytest.approx(worst, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(choices())
def test_scalar_equals_array_bit_for_bit(chosen: dict[str, float]) -> None:
    """A candidate alone, in a flat list and in an open grid."""
    alone = predict(MODEL, CLUSTER, replace(BASE, **chosen))
    listed = {name: np.array([value, 1.0, value]) for name, value in chosen.items()}
    flat = predict(MODEL, CLUSTER, replace(BASE, **listed))
    size = len(chosen)
    opened = {}
    for i, (name, value) in enumerate(chosen.items()):
        shape = [1] * size
        shape[i] = 2
        opened[name] = np.array([value, 1.0]).reshape(shape)
    grid = predict(MODEL, CLUSTER, replace(BASE, **opened))
    for part in ("step_time", "memory_total", "mfu"):
        expected = float(getattr(alone, part))
        assert np.broadcast_to(getattr(flat, part), 3)[2] == expected, part
        assert np.broadcast_to(getattr(grid, part), (2,) * size)[(0,) * size] == expected, part
    assert bool(np.broadcast_to(flat.legal, 3)[0]) == bool(alone.legal)


@settings(max_examples=60, deadline=None)
@given(
    choices(),
    st.sampled_from(
        ["network.nvlink.bandwidth", "network.fabric.bandwidth", "device.memory.hbm.bandwidth", "device.peak"]
    ),
)
def test_more_of_a_resource_is_never_slower(chosen: dict[str, float], path: str) -> None:
    strategy = replace(BASE, **chosen)
    slow = predict(MODEL, CLUSTER, strategy)
    parts = path.split(".")
    node = CLUSTER.device if parts[0] == "device" else CLUSTER
    value = {
        "network.nvlink.bandwidth": 300e9,
        "network.fabric.bandwidth": 25e9,
        "device.memory.hbm.bandwidth": 2.039e12,
        "device.peak": 312e12,
    }[path]
    assert node is not None
    fast = predict(MODEL, replace_path(CLUSTER, path, 1.5 * value), strategy)
    assert float(fast.step_time) <= float(slow.step_time) * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(choices())
def test_model_flops_do_not_depend_on_the_strategy(chosen: dict[str, float]) -> None:
    assert predict(MODEL, CLUSTER, replace(BASE, **chosen)).model_flops == predict(MODEL, CLUSTER, BASE).model_flops


@settings(max_examples=40, deadline=None)
@given(choices())
def test_state_bytes_fall_with_the_zero_stage(chosen: dict[str, float]) -> None:
    held = []
    for zero in (0.0, 1.0, 2.0, 3.0):
        stages = predict(MODEL, CLUSTER, replace(BASE, **{**chosen, "zero": zero})).stages["first"]
        held.append(sum(float(stages[part]) for part in ("weights", "gradients", "optimizer", "master")))
    assert held == sorted(held, reverse=True)


def test_permuting_axes_permutes_results() -> None:
    tensor, zero = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.0, 1.0, 2.0, 3.0])
    first = predict(MODEL, CLUSTER, replace(BASE, tensor=tensor[:, None], zero=zero[None, :]))
    second = predict(MODEL, CLUSTER, replace(BASE, tensor=tensor[None, :], zero=zero[:, None]))
    assert np.array_equal(np.asarray(first.step_time), np.asarray(second.step_time).T)


def test_mfu_stays_below_one() -> None:
    """Whatever is chosen, no candidate computes faster than the peak."""
    wide = np.array(DEGREES)
    step = predict(MODEL, CLUSTER, replace(BASE, tensor=wide[:, None], micro_batch=np.array([1.0, 2.0, 4.0])))
    assert float(np.max(step.mfu)) < 1.0


def test_illegal_candidates_are_data() -> None:
    step = predict(MODEL, CLUSTER, replace(BASE, tensor=7.0))
    assert not bool(step.legal)
    assert [name for name, applies in step.illegal.items() if bool(applies)][:1] == ["devices"]
