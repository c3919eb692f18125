"""Properties of predict on models with several kinds of layers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tradespace.inputs import load
from tradespace.inputs.hf import from_config
from tradespace.inputs.layers import Experts
from tradespace.predict import predict

CLUSTER = load.cluster("dgx-h100", devices=64)
PUBLIC = json.loads((Path(__file__).parent / "data" / "hf_configs.json").read_text())["models"]


@pytest.mark.parametrize("entry", PUBLIC, ids=lambda entry: str(entry["name"]))
def test_every_public_configuration_is_predicted(entry: dict[str, dict[str, object]]) -> None:
    """Parts sum to the step time, nothing is negative, and no model computes faster than the peak."""
    model = from_config(entry["config"], str(entry["name"]))
    model = replace(model, seq=min(float(model.seq), float(model.max_seq) or 4096.0))
    step = predict(model, CLUSTER, load.strategy("global_batch=64", cluster=CLUSTER))
    assert sum(float(v) for v in step.time.values()) == pytest.approx(float(step.step_time), rel=1e-9)
    assert all(float(v) >= 0.0 for v in step.time.values())
    assert 0.0 < float(step.mfu) < 1.0
    assert float(step.memory_total) > 2.0 * float(step.parameters["total"])
    assert bool(step.legal)


@pytest.mark.parametrize("key", ["deepseek-v3", "gpt-oss-20b", "jamba-v0.1"])
def test_scalar_equals_array_bit_for_bit(key: str) -> None:
    model = load.model(key, 4096)
    base = load.strategy("etp=1,global_batch=128", cluster=CLUSTER)
    names = {
        "tensor": [1.0, 2.0, 4.0],
        "expert": [1.0, 4.0, 8.0],
        "pipeline": [1.0, 2.0, 4.0],
        "recompute": [0.0, 1.0, 2.0],
        "zero": [1.0, 3.0, 0.0],
        "imbalance": [1.0, 1.5, 1.25],
    }
    grid = {
        name: np.array(values).reshape([3 if i == j else 1 for j in range(len(names))])
        for i, (name, values) in enumerate(names.items())
    }
    together = predict(model, CLUSTER, replace(base, **grid))
    listed = predict(model, CLUSTER, replace(base, **{name: np.array(v) for name, v in names.items()}))
    for i in range(3):
        alone = predict(model, CLUSTER, replace(base, **{name: v[i] for name, v in names.items()}))
        for part in ("step_time", "memory_total", "mfu"):
            expected = float(getattr(alone, part))
            assert np.broadcast_to(getattr(listed, part), 3)[i] == expected, part
            assert np.broadcast_to(getattr(together, part), (3,) * len(names))[(i,) * len(names)] == expected, part


def test_illegal_foldings_are_named() -> None:
    model = load.model("qwen3-30b-a3b", 4096)
    for text, reason in (("ep=3,etp=1", "experts"), ("ep=128,etp=1", "expert_group"), ("ep=8,etp=5", "experts")):
        step = predict(model, CLUSTER, load.strategy(f"{text},global_batch=64", cluster=CLUSTER))
        assert bool(step.illegal[reason]), text
    dense = predict(load.model("llama-3.1-8b"), CLUSTER, load.strategy("ep=2,global_batch=64", cluster=CLUSTER))
    assert bool(dense.illegal["experts"])


def test_shared_experts_hide_dispatch_where_switched_on() -> None:
    model = load.model("deepseek-v3", 4096)
    base = load.strategy("ep=64,etp=1,global_batch=64", cluster=CLUSTER)
    hidden = replace(base, overlap=replace(base.overlap, shared_expert=1.0))
    shown, rest = (predict(model, CLUSTER, s).time["exposed_expert"] for s in (base, hidden))
    assert 0.0 <= float(rest) < float(shown)


def test_frozen_weights_send_no_gradients() -> None:
    """Under full sharding frozen weights are gathered like others, their gradients are not scattered."""
    model = load.model("llama-3.1-70b", 8192)
    chosen = load.strategy("zero=3,recompute=full,global_batch=64", cluster=CLUSTER)
    slow = replace(CLUSTER, network=tuple(replace(dim, bandwidth=dim.bandwidth / 16.0) for dim in CLUSTER.network))
    whole, frozen = (
        float(predict(one, slow, chosen).time["exposed_data"])
        for one in (model, replace(model, frozen=1.0, adapter_rank=16.0))
    )
    assert 0.0 < frozen < 0.6 * whole


def test_few_tokens_per_expert_run_slower() -> None:
    """Grouped GEMMs: the same FLOPs take longer when each expert has few rows (profile's small_group)."""
    model = load.model("qwen3-30b-a3b", 4096)
    base = load.strategy("ep=1,etp=1,global_batch=512,micro_batch=1", cluster=CLUSTER)
    each = [float(predict(model, CLUSTER, replace(base, micro_batch=size)).kinds["matrix"]) for size in (1.0, 8.0)]
    assert each[0] > 1.2 * each[1]


def test_routing_groups_save_time_between_nodes() -> None:
    """DeepSeek-V3 reaches 4 of 8 groups: with 64 expert ranks on 8 nodes dispatch takes less than without groups."""
    model = load.model("deepseek-v3", 4096)
    free = replace(
        model,
        kinds=tuple(
            replace(
                kind,
                parts=tuple(
                    replace(part, groups=1.0, top_groups=1.0) if isinstance(part, Experts) else part
                    for part in kind.parts
                ),
            )
            for kind in model.kinds
        ),
    )
    base = load.strategy("ep=64,etp=1,global_batch=64,overlap=none", cluster=CLUSTER)
    limited, unlimited = (float(predict(one, CLUSTER, base).time["exposed_expert"]) for one in (model, free))
    assert 0.6 < limited / unlimited < 0.95


def test_imbalance_slows_the_step() -> None:
    model = load.model("deepseek-v3", 4096)
    base = load.strategy("ep=64,etp=1,pp=1,global_batch=64,recompute=full", cluster=CLUSTER)
    even, skewed = (predict(model, CLUSTER, replace(base, imbalance=factor)) for factor in (1.0, 1.5))
    assert float(skewed.step_time) > 1.1 * float(even.step_time)
    assert float(skewed.memory_total) > float(even.memory_total)
