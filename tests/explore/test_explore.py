"""explore against plain loops over scalar predictions: cells, top, Pareto front, histograms, constraints."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tradespace as ts
from tradespace.explore.exploration import explore_part
from tradespace.explore.pareto import undominated

TABLE: dict[str, Any] = {
    "cluster": "dgx-h100",
    "seq": 4096,
    "axes": {
        "model": ["llama-3.1-8b", "mixtral-8x7b"],
        "schedule": ["1f1b", "gpipe"],
        "tp": [1, 2, 8],
        "micro_batch": {"from": 1, "to": 4, "factor": 2},
        "recompute": ["none", "full"],
        "network.fabric.bandwidth": {"from": "25 GB/s", "to": "75 GB/s", "steps": 3},
    },
    "linked": {"size": {"label": ["small", "big"], "devices": [16, 64], "pp": [1, 2]}},
    "derived": {"global_batch": "4 * devices"},
    "constraints": {"node": "tp <= network.nvlink.size / 2", "room": "memory_total <= '80 GB'"},
    "objectives": {"device_seconds": "step_time_s * devices"},
    "keep": {
        "best_per": ["size", "network.fabric.bandwidth", "model"],
        "pareto": ["step_time_s", "memory_total", "mfu"],
        "histograms": ["mfu"],
        "top": 7,
    },
}
STUDY = ts.study(TABLE)


@pytest.fixture(scope="module")
def loop() -> list[dict[str, Any]]:
    """Every candidate that counts, from one scalar prediction after the other."""
    found = []
    for flat, place in enumerate(itertools.product(*(range(n) for n in STUDY.space.shape))):
        step = ts.predict(*STUDY.space.candidate(place))
        strategy = step.strategy
        met = strategy.tensor <= 4.0 and step.memory_total <= 80e9
        assert strategy.global_batch == 4.0 * step.cluster.devices
        assert strategy.sequence_parallel == float(strategy.tensor > 1.0)
        if bool(step.legal) and bool(step.fits) and met:
            cell = (step.model.name, float(step.cluster.network[1].bandwidth), float(step.cluster.devices))
            row = {"cell": cell, "position": flat, "time": step.step_time, "memory": step.memory_total, "mfu": step.mfu}
            found.append(row)
    return found


def _key(row: dict[str, Any]) -> tuple[float, int]:
    return float(row["time"]), row["position"]


@pytest.mark.parametrize("block", [1, 13, 1 << 20])
def test_equals_a_plain_loop_whatever_the_block(loop: list[dict[str, Any]], block: int) -> None:
    counts, reducers = explore_part(STUDY.space, STUDY.keep, None, block=block)
    assert (counts.total, counts.fitting) == (STUDY.space.size, len(loop))
    best: dict[Any, dict[str, Any]] = {}
    for row in sorted(loop, key=_key):
        best.setdefault(row["cell"], row)
    state = reducers["best"].state()
    assert sorted(state["positions"]) == sorted(row["position"] for row in best.values())
    assert list(reducers["top"].state()["positions"]) == [row["position"] for row in sorted(loop, key=_key)[:7]]
    points = np.array([(row["time"], row["memory"], -row["mfu"]) for row in loop])
    front = {
        tuple(p) for p in points if not any((q <= p).all() and (q < p).any() for q in points)
    }  # a loop over all pairs
    assert {tuple(p) for p in reducers["pareto"].state()["values"].T} == front
    low, count = reducers["histogram.mfu"].bins()
    mfus = np.array([row["mfu"] for row in loop])
    assert count.sum() == len(loop)
    expected = np.histogram(mfus, bins=[*low, low[-1] * 2.0])[0]
    assert list(count) == list(expected)


def test_parts_in_any_order_merge_to_the_whole() -> None:
    _, whole = explore_part(STUDY.space, STUDY.keep, None)
    parts = [explore_part(STUDY.space, STUDY.keep, part) for part in STUDY.space.blocks(48)]
    total = STUDY.keep.reducers(STUDY.space)
    for counts, found in reversed(parts):
        for name, reducer in found.items():
            copied = STUDY.keep.reducers(STUDY.space)[name]
            copied.restore(reducer.state())
            total[name].merge(copied)
        assert counts.total <= 48
    for name, reducer in whole.items():
        for key, value in reducer.state().items():
            np.testing.assert_array_equal(total[name].state()[key], value, err_msg=f"{name} {key}")


def test_tables() -> None:
    found = ts.explore(STUDY.space, best_per=["tp", "micro_batch"], by="device_seconds", pareto=["mfu", "memory_total"])
    table = found.table("best")
    assert len(table["tp"]) == 9
    assert list(table["tp"][~table["fits"]]) == [8.0, 8.0, 8.0]  # ruled out by a constraint: a row, nothing in it
    assert np.isnan(table["step_time_s"][~table["fits"]]).all()
    np.testing.assert_array_equal(
        table["device_seconds"][table["fits"]], (table["step_time_s"] * table["devices"])[table["fits"]]
    )
    step = found.step(0)
    assert float(step.step_time) * float(step.cluster.devices) == np.nanmin(table["device_seconds"])
    assert set(found.table("top")["recompute"]) <= {"none", "full"}
    assert set(found.table("top")["model"]) <= {"llama-3.1-8b", "mixtral-8x7b"}
    mfu, memory = (found.table("pareto")[name] for name in ("mfu", "memory_total"))
    assert (np.diff(mfu) < 0).all()
    assert (np.diff(memory) < 0).all()
    assert found.counts.excluded["node"] == STUDY.space.size // 3


def test_a_large_front_is_exact() -> None:
    rng = np.random.default_rng(0)
    points = np.round(rng.random((3000, 3)), 2)
    kept = undominated(list(points.T))
    slow = [
        i
        for i, p in enumerate(points)
        if not ((points <= p).all(1) & (points < p).any(1)).any() and not (points[:i] == p).all(1).any()
    ]
    assert sorted(kept) == slow


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ({"best_per": ["tensr"]}, "best_per: no axis 'tensr'"),
        ({"by": "step_tim"}, "by: unknown name 'step_tim'; did you mean 'step_time_s'"),
        ({"by": "step_time_s +"}, "no expression"),
        ({"pareto": ["mfu"]}, "name two or more"),
        ({"top": -1}, "not between"),
    ],
)
def test_bad_requests_are_one_sentence(call: dict[str, Any], says: str) -> None:
    with pytest.raises(ts.InputError, match=says):
        ts.explore(STUDY.space, **call)
