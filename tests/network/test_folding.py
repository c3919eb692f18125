"""The experts' folding of the devices, and dispatch with one copy per remote node."""

from __future__ import annotations

import numpy as np
import pytest

from tradespace.inputs.cluster import Dim
from tradespace.inputs.load import cluster, strategy
from tradespace.network.dispatch import dispatch_time, reachable, whole_power
from tradespace.network.folding import expert_data, expert_shard, fold
from tradespace.network.placement import Ranks, layout
from tradespace.network.pods import used
from tradespace.workload.operator import Routing

CLUSTER = cluster("dgx-h100", devices=256)


def test_both_foldings_use_all_devices() -> None:
    chosen = strategy("tp=2,cp=2,pp=4,ep=8,etp=2,global_batch=64", cluster=CLUSTER)
    data = 256.0 / 16.0
    assert expert_data(chosen, data) == 4.0
    shard = expert_shard(chosen, data)
    spans = fold(layout(chosen, CLUSTER, data, data * 2.0), chosen, CLUSTER, data, shard).spans
    sizes = {name: np.prod([float(r.count) for r in spans[name]]) for name in spans}
    assert sizes["expert"] * sizes["expert_tensor"] * sizes["expert_shard"] * sizes["expert_replica"] == 64.0
    assert sizes["tensor"] * sizes["context"] * sizes["shard"] * sizes["replica"] == 64.0


def test_experts_lie_inside_the_node_first() -> None:
    """Order tp-cp-ep-dp-pp: 16 expert ranks with expert_tensor 2 take 4 ranks of each node of 8."""
    chosen = strategy("tp=2,ep=16,etp=2,global_batch=256", cluster=CLUSTER)
    spans = fold(layout(chosen, CLUSTER, 128.0, 128.0), chosen, CLUSTER, 128.0, expert_shard(chosen, 128.0)).spans
    assert [float(ranks.count) for ranks in spans["expert"]] == [4.0, 4.0]


DIMS = (
    Dim(name="nvlink", kind="switch", size=8.0, bandwidth=1e15),
    Dim(name="fabric", kind="switch", size=0.0, bandwidth=5e10),
)


@pytest.mark.parametrize(("nodes", "top_k"), [(2.0, 8.0), (4.0, 8.0), (8.0, 2.0), (16.0, 1.0)])
def test_copies_against_enumeration(nodes: float, top_k: float) -> None:
    """Bytes into the fabric: a token's experts lie on random nodes; one copy to each distinct node but its own."""
    rng = np.random.default_rng(7)
    chosen = rng.integers(int(nodes), size=(200_000, int(top_k)))
    reached = np.zeros((len(chosen), int(nodes)), bool)
    np.put_along_axis(reached, chosen, True, axis=1)
    copies = reached[:, 1:].sum() / len(chosen)
    span = (Ranks.of(8.0, 1e-15), Ranks.of(nodes, 2e-11))
    seconds = dispatch_time(DIMS, span, top_k * 1e6, Routing(top_k, 1.0, 1.0, 0.0), 0.0)
    assert float(seconds) * 5e10 / 1e6 == pytest.approx(copies, rel=0.02)


def test_routing_limited_to_groups_sends_fewer_copies() -> None:
    """DeepSeek-V3: 8 experts of at most 4 of 8 groups (nodes): at most 4 copies cross the fabric instead of 5.25."""
    span = (Ranks.of(8.0, 1e-15), Ranks.of(8.0, 2e-11))
    free, limited = (
        dispatch_time(DIMS, span, 8e6, Routing(8.0, groups, top, 0.0), 0.0) for groups, top in ((1.0, 1.0), (8.0, 4.0))
    )
    assert float(limited) < 0.7 * float(free)
    assert reachable(8.0, 8.0, 4.0) == 4.0


def test_array_equals_scalars() -> None:
    degrees = np.array([1.0, 2.0, 3.0, 8.0])
    for top_k in (1.0, 6.0):
        together = np.asarray(whole_power(1.0 - 1.0 / degrees, top_k))
        assert [float(v) for v in together] == [whole_power(1.0 - 1.0 / d, top_k) for d in degrees.tolist()]
    exponents = np.array([1.0, 4.0, 8.0])
    assert [float(v) for v in np.asarray(whole_power(0.875, exponents))] == [
        whole_power(0.875, e) for e in (1.0, 4.0, 8.0)
    ]


@pytest.mark.parametrize(
    ("kind", "size", "devices", "inside"),
    [
        ("switch", 72.0, 256.0, 64.0),  # four racks, 64 devices of each
        ("switch", 72.0, 1024.0, 64.0),
        ("switch", 72.0, 1152.0, 72.0),  # sixteen whole racks
        ("switch", 72.0, 40.0, 40.0),
        ("switch", 8.0, 100.0, 8.0),  # twelve and a half nodes, not twenty half-empty ones
        ("ring", 20.0, 256.0, 16.0),  # a torus is cut where it suits
    ],
)
def test_a_job_that_fills_no_whole_pods_takes_an_even_part_of_each(
    kind: str, size: float, devices: float, inside: float
) -> None:
    """The same for one candidate and for each element of an axis."""
    dim = Dim(name="inner", kind=kind, size=size, bandwidth=4.5e11)
    assert used(dim, devices) == inside
    assert used(dim, np.array([devices, 1.0])).tolist() == [inside, 1.0]
