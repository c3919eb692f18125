"""Dispatch and combine of routed tokens, p2p and rings against published measurements."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from tradespace.evidence.collectives import published
from tradespace.inputs import load
from tradespace.inputs.cluster import Dim
from tradespace.network.collectives import collective_time, ring_pass_time, transfer_time
from tradespace.network.dispatch import dispatch_time, reachable
from tradespace.network.placement import Ranks, place, whole_cluster
from tradespace.predict import predict
from tradespace.workload.attention import keys_met
from tradespace.workload.operator import Routing

ROWS = list(csv.DictReader((Path(__file__).parents[1] / "data" / "expert_exchanges.csv").open(encoding="utf-8")))
HIDDEN, TOP_K = 7168, 8.0
BYTES = {"dispatch": HIDDEN * (1 + 4 / 128), "combine": HIDDEN * 2.0}  # fp8 with a scale per 128 values; bf16


def error(row: dict[str, str]) -> float:
    """Predicted over published bandwidth, minus 1, counted as DeepEP does: a copy for every device (in one node) or
    node that a token reaches, its own included; from 8 nodes on tokens reach 4 of the groups."""
    devices, tokens, size = float(row["devices"]), float(row["tokens"]), BYTES[row["kind"]]
    cluster = load.cluster(row["cluster"], devices)
    span = whole_cluster(cluster)
    nodes = devices / 8.0
    groups = (nodes, 4.0) if nodes > 4.0 else (1.0, 1.0)
    routing = Routing(TOP_K, *groups, 1.0)
    time = float(dispatch_time(cluster.network, span, tokens * TOP_K * size, routing, float(cluster.fill)))
    units = float(reachable(nodes if nodes > 1.0 else 8.0, *groups))
    copies = units * (1.0 - (1.0 - 1.0 / units) ** TOP_K)
    return tokens * copies * size / time / (float(row["gb_s"]) * 1e9) - 1.0


def errors(condition: Callable[[dict[str, str]], bool]) -> list[float]:
    return [error(row) for row in ROWS if condition(row)]


def test_rows_of_the_fit() -> None:
    """DeepEP V1 and V2 on H800 and H100 (the adapter's share was fitted to the rows between nodes): each within 15 %,
    the median within 5 %."""
    found = errors(lambda row: "deepseek-ai/DeepEP" in row["source"] and row["cluster"] != "dgx-b200")
    assert len(found) == 12
    assert max(map(abs, found)) < 0.15
    assert median(map(abs, found)) < 0.05


def test_rows_held_out() -> None:
    """DeepEP over NCCL, UCCL and MoRI on H100, B200 and MI300X between nodes, nothing fitted: median within 10 %."""
    found = errors(
        lambda row: (
            float(row["devices"]) > 8
            and not row["cluster"].startswith("aws")
            and not ("deepseek-ai" in row["source"] and row["cluster"] != "dgx-b200")
        )
    )
    assert len(found) == 18
    assert median(map(abs, found)) < 0.10


def test_one_node_held_out() -> None:
    """NVLink and xGMI with curves of nccl-tests, one copy per device: H800, H200, B200, MI300X within 15 % in the
    median. (UCCL on B200 reaches half of DeepEP there.)"""
    found = errors(lambda row: float(row["devices"]) == 8 and row["cluster"] != "aws-p6-b200")
    assert len(found) == 10
    assert median(map(abs, found)) < 0.10


def test_fp8_dispatch_and_one_copy_per_device_are_inputs() -> None:
    """Less goes to the experts in fp8 and with one copy per device; what comes back in bf16 does not change."""
    model, cluster = load.model("qwen3-235b-a22b"), load.cluster("dgx-h100", 64)
    plain = load.strategy("ep=8,pp=4,global_batch=256,profile=megatron-core", cluster=cluster)
    fp8 = replace(plain, precision=replace(plain.precision, dispatch=1.03))
    once = replace(plain, profile=replace(plain.profile, dispatch_once=1.0))
    base, less, fewer = (float(predict(model, cluster, s).time["exposed_expert"]) for s in (plain, fp8, once))
    assert 0.7 * base < less < 0.8 * base  # one of two directions at 1.03 / 2
    assert 0.6 * base < fewer < 0.75 * base  # 8 (1 - (7/8)^8) = 5.25 copies instead of 8
    axis = replace(plain, profile=replace(plain.profile, dispatch_once=np.array([0.0, 1.0])))
    assert np.asarray(predict(model, cluster, axis).time["exposed_expert"]).ravel().tolist() == [base, fewer]


def test_transfers_between_two_devices() -> None:
    """All-to-alls among two devices are what NCCL sends and receives at once, half of the bytes each way: 64 MiB and
    more on A100, H100, H200, B200, B300, GB200 and GB300, each within 10 %."""
    overhead = float(load.profile("megatron-core").p2p_latency)
    rows = [row for row in published() if (row.collective, row.devices) == ("all_to_all", 2.0) and row.bytes >= 2.0**26]
    assert len(rows) == 28
    for row in rows:
        cluster = load.cluster(row.system, 2.0)
        time = float(transfer_time(cluster.network, whole_cluster(cluster), row.bytes / 2, overhead))
        assert time == pytest.approx(row.time, rel=0.10), row.id


def test_ring_of_neighbours() -> None:
    """In one switch a ring passes what a ring all-gather gathers (n - 1)/n V/B; over nodes one adapter carries it."""
    inner = Dim(name="nvlink", kind="switch", size=8.0, bandwidth=4e12)
    outer = Dim(name="fabric", kind="switch", size=0.0, bandwidth=5e10)
    one = (Ranks.of(8.0, 1 / 4e12), Ranks.of(1.0, 1 / 5e10))
    two = place({"context": 16.0}, ("context",), (inner, outer), 16.0).spans["context"]
    assert ring_pass_time((inner, outer), one, 8e9) == pytest.approx(7 / 8 * 8e9 / 4e12)
    assert ring_pass_time((inner, outer), two, 8e9) == pytest.approx(15 / 16 * 8e9 / 5e10)
    gathered = float(collective_time("all_gather", (inner, outer), two, 8e9))
    assert ring_pass_time((inner, outer), two, 8e9) / gathered == pytest.approx(15 / 16 * 8 / (1 / 2))


def test_context_ring_is_an_input() -> None:
    """A ring over two nodes is exposed beyond its attention blocks; an axis of both gives both, bit for bit."""
    model, cluster = load.model("llama-3.1-8b", 32768.0), load.cluster("dgx-h100", 32)
    plain = load.strategy("cp=16,global_batch=16,profile=megatron-core", cluster=cluster)
    ring = replace(plain, profile=replace(plain.profile, context_ring=1.0))
    both = replace(plain, profile=replace(plain.profile, context_ring=np.array([0.0, 1.0])))
    times = [float(predict(model, cluster, s).time["exposed_context"]) for s in (plain, ring)]
    assert times[0] < times[1]
    assert np.asarray(predict(model, cluster, both).time["exposed_context"]).ravel().tolist() == times


def test_ring_hides_behind_attention_and_slows_it() -> None:
    """In one node a ring hides, and its kernels see seq / context keys, so attention is slower; an all-gather comes
    before its kernels and is waited for: 3 x 32 layers of 7/8 x 32 MiB (keys and values of 8 x 128, bf16) at no more
    than NVLink's 450 GB/s, and at no less than half of it."""
    model, cluster = load.model("llama-3.1-8b", 8192.0), load.cluster("dgx-h100", 8)
    plain = load.strategy("cp=8,global_batch=1,profile=megatron-core", cluster=cluster)
    ring = replace(plain, profile=replace(plain.profile, context_ring=1.0))
    assert keys_met(8192.0, 8192.0, plain) == 8192.0
    assert keys_met(8192.0, 8192.0, ring) == 1024.0
    assert keys_met(128.0, 8192.0, ring) == 128.0  # a window that one rank holds
    gathered, passed = predict(model, cluster, plain), predict(model, cluster, ring)
    assert float(passed.time["exposed_context"]) == 0.0
    assert float(passed.time["forward"]) > float(gathered.time["forward"])
    fastest = 3 * 32 * 7 / 8 * 2**25 / 450e9
    assert fastest < float(gathered.time["exposed_context"]) < 2 * fastest
