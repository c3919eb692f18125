"""Inputs that many tests share: catalog devices on their networks, strategies of one microbatch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tradespace.inputs import load
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy

PLAIN = load.precision("bf16")


@pytest.fixture
def gpt() -> Callable[..., Model]:
    """A GPT-2 kind of model of given sizes: MHA, four times wide plain MLP, LayerNorm, learned positions."""

    def make(layers: float, hidden: float, heads: float, vocab: float = 51200.0, seq: float = 2048.0) -> Model:
        return Model(
            name="gpt",
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=heads,
            head_dim=hidden / heads,
            ffn=4.0 * hidden,
            vocab=vocab,
            seq=seq,
            gated=0.0,
            tied=1.0,
            rotary=0.0,
            norm_vectors=2.0,
        )

    return make


@pytest.fixture
def strategy() -> Callable[..., Strategy]:
    """A strategy with the plain bf16 recipe and the Megatron profile of 2021."""
    base = Strategy(
        profile=load.profile("megatron-2021"),
        precision=PLAIN,
        optimizer=load.optimizer("adam"),
        global_batch=8.0,
    )

    def make(**changes: object) -> Strategy:
        return replace(base, **changes)  # type: ignore[arg-type]

    return make
