"""Kernel times against measured kernels of other sources than the fitted ones."""

from __future__ import annotations

import pytest

from tradespace.cost.compute import attention_time, gemm_time, rates
from tradespace.inputs import load
from tradespace.workload.operator import AttentionCore, Gemm


def kernel_rates(device: str, gemm: str = "bf16", profile: str = "megatron-core"):
    recipe = load.precision(gemm)
    return rates(load.device(device), gemm, recipe.value, 0.0, load.profile(profile))


def tflops(device: str, size: float) -> float:
    """Warm micro-benchmark rate: the sustained-clock factor of training divided out."""
    clock = float(load.device(device).gemm["bf16"].sustained)
    shape = Gemm.of(size, size, size)
    return float(shape.flops) / float(gemm_time(shape, kernel_rates(device), True)) / clock / 1e12


@pytest.mark.parametrize(("size", "measured"), [(4096.0, 789.0), (8192.0, 798.0)])
def test_square_gemm_h100(size: float, measured: float) -> None:
    """H100 SXM, square bf16 products in PyTorch 2.7 (zzc0721/torch-performance-test-data issue 79): within 10 %."""
    assert tflops("h100-sxm", size) == pytest.approx(measured, rel=0.10)


def test_best_gemm_a100() -> None:
    """271 TFLOP/s at best (stas00/ml-engineering, MAMF table): within 5 %."""
    assert tflops("a100-sxm-80gb", 16384.0) == pytest.approx(271.0, rel=0.05)


def test_small_gemms_are_slow() -> None:
    """A product that streams its operands is bound by memory, not by the peak."""
    shape = Gemm.of(1.0, 8192.0, 8192.0)
    time = float(gemm_time(shape, kernel_rates("h100-sxm"), True))
    device = load.device("h100-sxm")
    nominal = 2 * 8192.0 * 8192.0 / float(device.memory[0].bandwidth)
    assert nominal < time < 3 * nominal


def test_flash_attention_2_on_a100() -> None:
    """Forward plus backward of FlashAttention-2, head width 128, causal, 16k: 188 TFLOP/s (Dao 2023, figure 4b)."""
    found = kernel_rates("a100-sxm-80gb", profile="torchtitan")
    clock = float(load.device("a100-sxm-80gb").gemm["bf16"].sustained)
    flops = 2.0 * 16384.0 * 16384.0 * 2048.0
    forward = attention_time(AttentionCore(flops, 128.0, 16384.0), found, False)
    backward = attention_time(AttentionCore(2.5 * flops, 128.0, 16384.0), found, True)
    assert 3.5 * flops / float(forward + backward) / clock / 1e12 == pytest.approx(188.0, rel=0.10)
