"""Dimensions of all equations: measured in other units of byte and second, a prediction must be the same physics.

Every input field states its unit. Scaling each field by the power of byte and second that pint reads in its unit must
scale the step time as seconds and the memory as bytes; a constant with a hidden unit or a sum of unlike terms fails.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pint
import pytest

from tradespace.inputs import load
from tradespace.inputs.fields import quantities
from tradespace.predict import predict

REGISTRY = pint.UnitRegistry()
REGISTRY.define("USD = []")
REGISTRY.define("FLOP = []")  # FLOPs are counts of operations: pure numbers


def factor(unit: str, byte: float, second: float) -> float:
    """What a quantity of `unit` is multiplied by when bytes and seconds are."""
    if not unit:
        return 1.0
    exponents = {"byte": 0.0, "second": 0.0}
    for name, power in REGISTRY.parse_units(unit)._units.items():
        if name in exponents:
            exponents[name] = float(power)
    return byte ** exponents["byte"] * second ** exponents["second"]


def scaled(node: Any, byte: float, second: float) -> Any:
    """A copy of an input with every quantity in the other units."""
    if isinstance(node, tuple):
        return tuple(scaled(item, byte, second) for item in node)
    if hasattr(node, "items"):
        return {key: scaled(value, byte, second) for key, value in node.items()}
    if not is_dataclass(node):
        return node
    units = {name: item.unit for name, item in quantities(type(node)).items()}
    units |= {f.name: f.metadata["series"].unit for f in fields(node) if "series" in f.metadata}
    changes: dict[str, Any] = {}
    for item in fields(node):
        value = getattr(node, item.name)
        if item.name in units:
            times = factor(units[item.name], byte, second)
            changes[item.name] = tuple(v * times for v in value) if isinstance(value, tuple) else value * times
        else:
            changes[item.name] = scaled(value, byte, second)
    return replace(node, **changes)


STRATEGIES = [
    "tp=8,pp=4,vp=3,global_batch=64,recompute=selective",
    "tp=2,cp=2,pp=1,zero=3,global_batch=64,recompute=full,flash=0,precision=fp16,profile=megatron-2021",
    "tp=4,sp=0,pp=8,zero=2,global_batch=128,precision=fp8,micro_batch=2",
    "tp=1,zero=3,global_batch=64,profile=llm-foundry",
    "tp=8,pp=2,zero=1,global_batch=64,profile=nanotron,shard=2",
]


EXPERTS = [
    ("deepseek-v3", "pp=2,ep=16,etp=1,global_batch=64,recompute=mla_up_proj+moe_act"),
    ("mixtral-8x7b", "tp=2,ep=4,etp=2,zero=3,global_batch=64,precision=fp8,imbalance=1.25"),
    ("nemotron-3-nano-30b-a3b", "tp=2,ep=8,etp=1,global_batch=64,recompute=full"),
    ("t5-11b", "tp=4,pp=2,global_batch=64"),
    ("vit-base", "global_batch=64"),
]


@pytest.mark.parametrize(("key", "text"), [*(("gpt3-175b", text) for text in STRATEGIES), *EXPERTS])
@pytest.mark.parametrize(("byte", "second"), [(8.0, 1.0), (1.0, 1024.0), (0.5, 64.0)])
def test_units_of_every_equation(key: str, text: str, byte: float, second: float) -> None:
    model, cluster = load.model(key), load.cluster("dgx-h100", devices=64)
    strategy = load.strategy(text, cluster=cluster)
    plain = predict(model, cluster, strategy)
    other = predict(model, scaled(cluster, byte, second), scaled(strategy, byte, second))
    assert float(other.step_time) == pytest.approx(float(plain.step_time) * second, rel=1e-9)
    assert float(other.memory_total) == pytest.approx(float(plain.memory_total) * byte, rel=1e-9)
    for name, seconds in plain.time.items():
        assert float(other.time[name]) == pytest.approx(float(seconds) * second, rel=1e-6, abs=1e-9 * second), name
