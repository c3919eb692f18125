"""COMET (arXiv 2211.16648): the authors' run log, a reference reconstruction of its curves, its claims, the report."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tradespace.cli import run
from tradespace.inputs import load, settings
from tradespace.network.collectives import collective_time
from tradespace.predict import predict
from tradespace.studies import reproduce
from tradespace.studies.comet import Curve
from tradespace.studies.comet_data import cluster_rows, dlrm_break_even, dlrm_rows
from tradespace.studies.comet_figures import FIGURES
from tradespace.studies.comparison import dlrm_runs

TOKENS, HIDDEN = 131072.0, 24576.0
GIB = 2.0**30


def log_cluster() -> Any:
    """The cluster of the authors' log: 16 x 8 model-parallel and 8 data-parallel nodes, links in GiB/s."""
    dims = [("inner", 16, 150.0), ("middle", 8, 12.5), ("outer", 0, 12.5)]
    return load.cluster(
        {
            "key": "log",
            "devices": 1024,
            "fill": 1 / 64,
            "pipelined": True,
            "device": {
                "key": "v100-like",
                "name": "node of the log",
                "peak": 125e12,
                "on_chip": 1e9,
                "gemm": {"bf16": {"fraction": 1, "k0": 0, "launch": 0, "sustained": 1}},
                "memory": [{"name": "local", "capacity": 1e13, "bandwidth": 900e9, "efficiency": 1}],
            },
            "network": [
                {"name": name, "kind": "switch", "size": size, "bandwidth": rate * GIB, "curves": {}}
                for name, size, rate in dims
            ],
        }
    )


def forward_seconds(rows: list[dict[str, Any]], repeat: float = 1.0) -> float:
    """Seconds of the forward pass of a layer table with the log's sizes of one device."""
    cluster = log_cluster()
    table = {"sizes": "device", "rows": [{**row, "repeat": repeat} for row in rows]}
    model = load.model({"name": "log", "family": "table", "table": table})
    text = "tp=128,global_batch=1024,schedule=comet-loop,profile=comet,precision=fp16,zero=2"
    inputs = settings.apply(
        ["strategy.profile.traffic=compulsory"], model, cluster, load.strategy(text, cluster=cluster)
    )
    step = predict(*inputs)
    return float(step.time["forward"] + step.time["exposed_tensor"])


def gemm(name: str, m: float, k: float, n: float, reduced: bool = False) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "m": m, "k": k, "n": n}
    if reduced:
        row |= {"forward": "all_reduce tensor", "forward_values": TOKENS * HIDDEN}
    return row


SHARD, FF = HIDDEN / 128.0, 4.0 * HIDDEN / 128.0
STACK = [
    *(gemm(name, TOKENS, HIDDEN, SHARD) for name in ("Q", "K", "V")),
    gemm("QK", 16384.0, 192.0, 1024.0),
    gemm("softmax V", 16384.0, 1024.0, 192.0),
    gemm("Concat", TOKENS, SHARD, HIDDEN, True),
    gemm("Layernorm", 262144.0, HIDDEN, HIDDEN),
    gemm("XW1", TOKENS, HIDDEN, FF),
    gemm("XW2", TOKENS, FF, HIDDEN, True),
]


@pytest.mark.parametrize(
    ("name", "group", "volume", "seconds"),
    [
        ("all_reduce", "tensor", TOKENS * HIDDEN * 2, 75.018e-3),
        ("all_gather", "tensor", TOKENS * HIDDEN * 2, 37.911e-3),
        ("all_reduce", "data", 9437184.0, 1.2316e-3),
    ],
)
def test_collectives_of_the_log(name: str, group: str, volume: float, seconds: float) -> None:
    from tradespace.cost.training_loop import groups
    from tradespace.network.collectives import exposed_fill

    cluster = log_cluster()
    strategy = load.strategy("tp=128,global_batch=1024,schedule=comet-loop,profile=comet", cluster=cluster)
    span = groups(strategy, cluster, 8.0).spans[group]
    time = collective_time(name, cluster.network, span, volume, exposed_fill(cluster, name))
    assert float(time) == pytest.approx(seconds, rel=1e-3)


@pytest.mark.parametrize(("name", "seconds"), [("Q", 9.895605e-3), ("XW1", 39.582420e-3)])
def test_layers_of_the_log(name: str, seconds: float) -> None:
    assert forward_seconds([row for row in STACK if row["name"] == name]) == pytest.approx(seconds, rel=1e-3)


def test_forward_pass_of_the_log() -> None:
    assert forward_seconds(STACK, repeat=2.0) == pytest.approx(5.604324, rel=1e-3)


REFERENCE = {
    "dgx": (
        (53.8, 54.2, 55.1, 56.8, 60.1, 71.7, 101.6, 169.7, 312.9),
        (2043, 1036, 533, 281, 155, 92, 61, 45, 37),
    ),
    "tpu": (
        (23.0, 17.6, 16.3, 17.6, 20.8, 29.8, 48.4, 85.1, 162.9, 318.0),
        (2032, 1026, 522, 271, 145, 82, 50.5, 34.8, 26.9, 23.0),
    ),
    "dojo": ((30.9, 31.3, 32.0, 33.4, 36.3, 42.8, 60.7), (2249, 1242, 739, 487, 362, 299, 267)),
}
"""Seconds per 1,024 sequences and GB per node for MP1, MP2, MP4 ...: a reconstruction independent of this program."""


@pytest.mark.parametrize("cluster", REFERENCE)
def test_reference_curve(cluster: str) -> None:
    seconds, size = REFERENCE[cluster]
    curve = Curve.of(cluster)
    assert curve.seconds[: len(seconds)].tolist() == pytest.approx(seconds, rel=0.01)
    assert (curve.memory[: len(size)] / 1e9).tolist() == pytest.approx(size, rel=0.01, abs=0.5)  # printed in whole GB


def test_claims() -> None:
    rows = {row["id"]: row for row in reproduce("comet")}
    assert list(rows) == list(range(1, 13))
    for number in (*range(1, 11), 12):
        row = rows[number]
        assert row["low"] <= row["value"] <= row["high"], row
        assert row["verdict"].startswith("reproduced")
        assert row["range"], "no assumption moves the value"
    assert rows[11]["verdict"] == "not reproducible"


def test_slower_tiles_have_a_bathtub() -> None:
    """With 4 TB/s of tile memory Dojo's time no longer only falls with the data-parallel degree."""
    from tradespace.studies.comet import dojo_monotone
    from tradespace.studies.presets import Setting

    assert dojo_monotone([Setting("device.memory.local.bandwidth", "4 TB/s", "dojo")]) == 0.0


def test_fewer_nodes_win_with_fast_expansion_alone() -> None:
    rows = dlrm_rows()
    slow = [row for row in rows if row["bandwidth_GB_s"] == 100.0]
    fast = [row for row in rows if row["bandwidth_GB_s"] > 2000.0]
    assert min(slow, key=lambda row: row["nodes"])["efficiency"] < 0.2
    assert min(fast, key=lambda row: row["nodes"])["efficiency"] > 1.0
    by_bandwidth = sorted((row for row in rows if row["nodes"] == 8), key=lambda row: row["bandwidth_GB_s"])
    assert [row["milliseconds"] for row in by_bandwidth] == sorted(
        (r["milliseconds"] for r in by_bandwidth), reverse=True
    )


def test_fewer_nodes_win_above_a_bandwidth() -> None:
    """At the break-even bandwidth 8 nodes do as much each as 64 without expansion, a little below it less."""
    limit = dlrm_break_even()
    assert set(limit) == {8, 16, 32}
    at, below = (next(r for r in dlrm_rows([x * 1e9]) if r["nodes"] == 8) for x in (limit[8], 0.98 * limit[8]))
    assert below["efficiency"] < 1.0 <= at["efficiency"] < 1.02


def test_expansion_never_slows_a_cluster() -> None:
    best: dict[str, dict[str, float]] = {}
    for row in cluster_rows():
        best.setdefault(row["cluster"], {})[row["memory"]] = row["seconds"]
    assert len(best) == 6
    for found in best.values():
        assert found["with expansion"] <= found["local memory"]


def test_measured_dlrm_runs_are_predicted() -> None:
    """21 of 26 MLPerf runs have a cluster in the catalog; predictions at the roofline are within a factor of 2."""
    rows = dlrm_runs()
    shown = [row for row in rows if not row["skipped"]]
    assert (len(rows), len(shown)) == (26, 21)
    assert all(-0.5 < row["error"] < 1.0 for row in shown)
    middle = sorted(abs(row["error"]) for row in shown)[len(shown) // 2]
    assert middle < 0.35


def test_report_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "comet"
    assert run(["reproduce", "comet", "--out", str(out), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 12
    for key in FIGURES:
        assert (out / f"{key}.png").stat().st_size > 10_000
        assert (out / f"{key}.svg").read_text().startswith("<svg")
        assert len(list(csv.DictReader((out / f"{key}.csv").open()))) > 5
    page = (out / "report.html").read_text()
    assert page.count("<img") == len(FIGURES)
    assert not any(word in page for word in ("<script", "<link", 'src="http', "@import"))
    assert len(list(csv.DictReader((out / "claims.csv").open()))) == 12


def test_bad_study_or_folder_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for arguments in (["reproduce", "komet"], ["reproduce", "comet", "--out", str(file)]):
        assert run(arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1
