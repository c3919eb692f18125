"""Where the network models differ, and why: on networks where the answer is known."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tradespace.astra.differences import differences
from tradespace.cli import run
from tradespace.inputs import load
from tradespace.predict import predict

pytestmark = pytest.mark.filterwarnings("ignore::tradespace.astra.AstraWarning")


def rows(model: str, cluster: str, strategy: str, devices: int, **changed: Any) -> list[dict[str, Any]]:
    """Rows on a cluster without measured curves, so that the prediction is the textbook's algorithm."""
    placed = load.cluster(cluster, devices=devices)
    dims = tuple(replace(dim, curves={}, in_network=False, **changed) for dim in placed.network)
    placed = replace(placed, network=dims)
    loaded = load.strategy(strategy, cluster=placed)
    found: list[dict[str, Any]] = differences(predict(load.model(model), placed, loaded))["collectives"]
    return found


def test_one_switch_without_latency_is_priced_alike() -> None:
    """(n - 1)/n V / B in both; ASTRA-sim adds 10 ns per insertion."""
    found = rows("llama-3.1-8b", "dgx-h100", "tp=8,global_batch=1", 8, latency=0.0)
    gathers = [row for row in found if row["collective"] == "all_gather"]
    assert gathers
    for row in gathers:
        assert row["ratio"] == pytest.approx(1.0, abs=2e-3)
        assert row["reasons"] == []
        level = 450e9
        assert row["astra_s"] == pytest.approx(7 / 8 * row["bytes"] / level, rel=2e-3)


def test_reductions_pass_local_memory_three_times() -> None:
    """What a reduce-scatter takes longer: three passes over what a rank reduces."""
    found = rows("llama-3.1-8b", "dgx-h100", "tp=8,global_batch=1", 8, latency=0.0)
    row = next(row for row in found if row["collective"] == "reduce_scatter")
    # halving-doubling reduces D/4 + D/8 (its first insertion, of D/2, does not)
    extra = 3 * (row["bytes"] / 4 + row["bytes"] / 8) / 3350e9
    assert row["astra_s"] - row["physical_s"] == pytest.approx(extra, rel=0.01)
    assert "three passes" in row["reasons"][0]


def test_rings_run_one_way() -> None:
    """A two-way ring gets twice the bandwidth of ASTRA-sim's."""
    found = rows("llama-3.1-8b", "tpu-v4", "tp=16,global_batch=16", 256, latency=0.0)
    for row in (row for row in found if row["collective"] == "all_gather"):
        assert row["ratio"] == pytest.approx(2.0, rel=0.01)
        assert "one way" in row["reasons"][0]


def test_a_ring_s_all_to_all_and_free_slow_links() -> None:
    """32 ranks over four nodes: n(n-1)/2 steps at the rate of the fast dim, which is all that is charged."""
    found = rows("deepseek-v3", "dgx-h100", "tp=1,pp=2,ep=32,global_batch=64", 64, latency=0.0)
    row = next(row for row in found if row["collective"] == "all_to_all")
    assert row["operators"] == ["dispatch", "combine"]
    assert "expert" in row["group"]
    assert row["astra_s"] == pytest.approx(32 * 31 / 2 * row["bytes"] / 32 / 450e9, rel=0.01)
    said = " ".join(row["reasons"])
    assert "ring of 32 is 496 whole steps" in said
    assert "one to each node" in said
    honest = 32 * 31 / 2 * row["bytes"] / 32 / 50e9
    assert f"it would take {honest * 1e3:.3g} ms" in said


def test_the_document_and_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    case = ["astra", "differences", "llama-3.1-8b", "dgx-h100", "tp=2,pp=2,global_batch=32", "--devices", "16"]
    assert run([*case, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"schema", "step_time_s", "astra_step_time_s", "collectives"}
    keys = {"collective", "group", "ranks", "bytes", "times", "physical_s", "astra_s", "ratio", "reasons", "operators"}
    assert all(set(row) == keys for row in document["collectives"])
    send = next(row for row in document["collectives"] if row["collective"] == "send")
    assert send["times"] == 8  # microbatches of a data-parallel rank
    weights = [abs(row["astra_s"] - row["physical_s"]) * row["times"] for row in document["collectives"]]
    assert weights == sorted(weights, reverse=True)
    assert run(case) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Step: ")
    assert "nominal rates" in shown
    assert run([*case, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("collective,group,ranks")
