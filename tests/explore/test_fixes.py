"""What makes a step fit: changes that do, cheapest first."""

from __future__ import annotations

from dataclasses import replace

from tradespace.explore.fixes import fixes
from tradespace.inputs import load
from tradespace.predict import predict
from tradespace.step import Step


def step_of(model: str, devices: int, text: str, seq: int = 8192) -> Step:
    cluster = load.cluster("dgx-h100", devices=devices)
    return predict(load.model(model, seq), cluster, load.strategy(text, cluster=cluster))


def test_fixes_fit_and_are_ordered_by_their_price() -> None:
    large = step_of("llama-3.1-70b", 64, "tp=8,global_batch=128,micro_batch=2")
    found = fixes(large)
    assert not bool(large.fits)
    assert found
    assert [fix.price for fix in found] == sorted(fix.price for fix in found)
    for fix in found:
        again = predict(large.model, large.cluster, replace(large.strategy, **fix.change))
        assert bool(again.fits_surely)
        assert bool(again.legal)
        assert float(again.step_time) == float(fix.step.step_time)
        assert str(fix).startswith(("tp=", "cp=", "pp=", "zero=", "recompute=", "micro_batch=", "fused_loss="))


def test_pairs_where_no_single_change_is_enough() -> None:
    found = fixes(step_of("llama-3.1-70b", 32, "tp=2,global_batch=64,micro_batch=2"))
    assert found
    assert all(len(fix.change.keys() - {"sequence_parallel"}) == 2 for fix in found)


def test_nothing_helps_a_model_that_is_far_too_large() -> None:
    assert fixes(step_of("llama-3.1-405b", 8, "tp=8,global_batch=8")) == []


def test_documents_list_fixes_of_what_does_not_fit() -> None:
    large = step_of("llama-3.1-70b", 64, "tp=8,global_batch=128,micro_batch=2").to_dict()
    assert large["verdict"] == "does not fit"
    assert large["fixes"]
    small = step_of("llama-3.1-8b", 8, "zero=3,recompute=full,global_batch=8").to_dict()
    assert "fixes" not in small
    assert small["memory"]["total"] < small["reserved"] < small["driver"]
