"""Model-state bytes against published recipes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tradespace.cost.memory import states
from tradespace.inputs import load
from tradespace.predict import predict


def per_parameter(profile: str, precision: str, zero: float, shard: float, strategy) -> float:
    chosen = strategy(profile=load.profile(profile), precision=load.precision(precision), zero=zero)
    found = states(chosen, shard)
    return float(found.weights + found.gradients + found.optimizer + found.master)


@pytest.mark.parametrize("shard", [1.0, 8.0, 64.0])
def test_megatron_distributed_optimizer(strategy, shard: float) -> None:
    """Megatron-LM's table: bf16 parameters with fp32 gradients 18 bytes, distributed 6 + 12/d; fp16 16 and 4 + 12/d."""
    assert per_parameter("megatron-core", "bf16", 0.0, shard, strategy) == 18.0
    assert per_parameter("megatron-core", "bf16", 1.0, shard, strategy) == pytest.approx(6 + 12 / shard)
    assert per_parameter("megatron-core", "fp16", 0.0, shard, strategy) == 16.0


@pytest.mark.parametrize("shard", [8.0, 64.0])
def test_zero_stages(strategy, shard: float) -> None:
    """Rajbhandari et al. 2020, figure 1 with K = 12 and 2-byte gradients: 4 + K/N, 2 + (2 + K)/N, (4 + K)/N."""
    expected = {0.0: 16.0, 1.0: 4 + 12 / shard, 2.0: 2 + 14 / shard, 3.0: 16 / shard}
    for zero, total in expected.items():
        assert per_parameter("megatron-core", "fp16", zero, shard, strategy) == pytest.approx(total)


def test_fsdp_with_fp32_parameters(strategy) -> None:
    """PyTorch FSDP with mixed precision: fp32 parameters, gradients and two moments, all sharded: 16/N."""
    assert per_parameter("torchtitan", "bf16", 3.0, 8.0, strategy) == pytest.approx(2.0)


def test_nanotron(strategy) -> None:
    """huggingface/nanotron issue 261, measured: 20.07 bytes per parameter, 6.57 with ZeRO-1 over 24 ranks."""
    assert per_parameter("nanotron", "bf16", 0.0, 24.0, strategy) == pytest.approx(20.07, rel=0.01)
    assert per_parameter("nanotron", "bf16", 1.0, 24.0, strategy) == pytest.approx(6.57, rel=0.01)


SIMUMAX = [
    # DeepSeek-V3 and V2 of 4 layers (one dense) on 8 B200: peak allocated bytes, MooreThreads/SimuMax
    ("deepseek-v3", "ep=8,global_batch=64", 104.3 * 2**30),
    ("deepseek-v3", "ep=4,pp=2,global_batch=32", 114.0 * 2**30),
    ("deepseek-v2", "ep=8,global_batch=32", 48_994_839_429),
    ("deepseek-v2", "ep=4,pp=2,global_batch=16", 47_996_259_533),
]


@pytest.mark.parametrize(("key", "text", "measured"), SIMUMAX)
def test_allocated_bytes_of_expert_models(key: str, text: str, measured: float) -> None:
    whole = load.model(key, 4096)
    pattern = tuple(float([kind.name for kind in whole.kinds].index(n)) for n in ("dense", "moe", "moe", "moe"))
    model = replace(whole, layers=4.0, pattern=pattern)
    cluster = load.cluster("dgx-b200", devices=8)
    strategy = load.strategy(text, cluster=cluster, profile="megatron-plain")
    assert float(predict(model, cluster, strategy).memory_total) == pytest.approx(measured, rel=0.025)


@pytest.mark.parametrize(("expert", "data"), [(8.0, 1.0), (4.0, 2.0), (2.0, 4.0)])
def test_expert_states_shard_over_the_expert_data_group(expert: float, data: float) -> None:
    """6 + 12 / (DP CP / EP) bytes per expert parameter, 18 when EP = DP; 6 + 12 / DP for the others."""
    cluster = load.cluster("dgx-h100", devices=8)
    model = load.model("mixtral-8x7b", 4096)
    step = predict(model, cluster, load.strategy(f"ep={expert:g},global_batch=8", cluster=cluster))
    routed = 45_097_156_608 / expert
    dense = 46_702_792_704 - 45_097_156_608
    held = sum(float(step.stages["first"][part]) for part in ("weights", "gradients", "optimizer", "master"))
    assert held == pytest.approx(routed * (6 + 12 / data) + dense * (6 + 12 / 8), rel=1e-3)


def test_frozen_weights_have_no_states() -> None:
    """LoRA: 2 bytes per frozen weight, all states for adapters alone: one on each of the seven projections."""
    cluster = load.cluster("dgx-h100", devices=8)
    model = replace(load.model("llama-3.1-8b", 4096), frozen=1.0, adapter_rank=16.0)
    step = predict(model, cluster, load.strategy("global_batch=8,zero=0", cluster=cluster))
    held, adapters = step.stages["first"], 41_943_040
    assert float(held["weights"]) == pytest.approx(2 * (8_030_261_248 + adapters), rel=1e-3)
    assert float(held["gradients"]) == 4 * adapters
    assert float(held["optimizer"]) == 8 * adapters
