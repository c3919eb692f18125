"""Model-state bytes against published recipes."""

from __future__ import annotations

import pytest

from tradespace.cost.memory import states
from tradespace.inputs import load


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
