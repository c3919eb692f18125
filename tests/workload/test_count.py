"""Parameter counts and FLOPs per token against published values."""

from __future__ import annotations

import pytest

from tradespace.inputs.load import model
from tradespace.workload.count import flops_per_token, parameters


@pytest.mark.parametrize(
    ("key", "seq", "gflop"),
    [
        ("llama-3.1-405b", 8192, 2523.98),
        ("llama-3.1-70b", 8192, 449.230),
        ("llama-3.1-8b", 8192, 51.4720),
    ],
)
def test_flops_per_token_to_six_digits(key: str, seq: int, gflop: float) -> None:
    """NVIDIA's published model FLOPs per token at 8k."""
    assert float(flops_per_token(model(key, seq=seq))) / 1e9 == pytest.approx(gflop, rel=2e-6)


def test_parts_sum_to_the_total() -> None:
    found = parameters(model("llama-3.1-405b"))
    assert sum(found.parts.values()) == found.total == 405_853_388_800


def test_gpt3_is_175_billion() -> None:
    """Brown et al. 2020, table 2.1: 175.0 B."""
    assert float(parameters(model("gpt3-175b")).total) == pytest.approx(175e9, rel=3e-3)
