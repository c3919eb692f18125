"""Saved activations against Korthikanti et al. 2022 (arXiv 2205.05198), equations 1 to 6 and table 2."""

from __future__ import annotations

import pytest

from tradespace.cost.memory import saved_activations
from tradespace.workload.families import blocks_of

S, B, H, A = 2048.0, 4.0, 6144.0, 64.0
SBH = S * B * H


def kept(model, strategy) -> float:
    return float(saved_activations(blocks_of(model, strategy)["layer"], strategy).kept)


@pytest.mark.parametrize("tensor", [1.0, 2.0, 8.0])
def test_equation_2_tensor_parallel(gpt, strategy, tensor: float) -> None:
    """sbh (10 + 24/t + 5as/(ht)); equation 1, sbh (34 + 5as/h), is t = 1."""
    found = kept(gpt(48.0, H, A), strategy(tensor=tensor, micro_batch=B, flash=0.0))
    assert found == pytest.approx(SBH * (10 + 24 / tensor + 5 * A * S / (H * tensor)), rel=1e-12)


def test_equation_4_tensor_and_sequence_parallel(gpt, strategy) -> None:
    """sbh/t (34 + 5as/h)."""
    found = kept(gpt(48.0, H, A), strategy(tensor=8.0, sequence_parallel=1.0, micro_batch=B, flash=0.0))
    assert found == pytest.approx(SBH / 8 * (34 + 5 * A * S / H), rel=1e-12)


def test_equation_6_selective_recompute(gpt, strategy) -> None:
    """34 sbh/t."""
    chosen = strategy(tensor=8.0, sequence_parallel=1.0, micro_batch=B, flash=0.0, recompute=1.0)
    assert kept(gpt(48.0, H, A), chosen) == pytest.approx(SBH / 8 * 34, rel=1e-12)


def test_full_recompute_keeps_the_input(gpt, strategy) -> None:
    """2sbh without sequence parallelism (table 2, last row)."""
    found = kept(gpt(48.0, H, A), strategy(tensor=8.0, micro_batch=B, flash=0.0, recompute=2.0))
    assert found == pytest.approx(2 * SBH, rel=1e-12)


def test_table_of_savings(gpt, strategy) -> None:
    """Section 5: selective recomputation saves 70 % of the activations of GPT-3 and 65 % of MT-NLG 530B."""
    for hidden, heads, saving in ((12288.0, 96.0, 0.70), (20480.0, 128.0, 0.65)):
        model = gpt(96.0, hidden, heads)
        both = [
            kept(model, strategy(tensor=8.0, sequence_parallel=1.0, flash=0.0, recompute=code)) for code in (0.0, 1.0)
        ]
        assert 1 - both[1] / both[0] == pytest.approx(saving, abs=0.006)
