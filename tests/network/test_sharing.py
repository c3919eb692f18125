"""Links that several groups use at once, groups that do not tile a node, congestion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradespace.inputs import load
from tradespace.inputs.cluster import Dim
from tradespace.network.bus_bandwidth import nccl_tests
from tradespace.network.collectives import collective_time, together_time
from tradespace.network.placement import Span, crosses, place, whole_cluster
from tradespace.predict import predict

NVLINK = Dim(name="nvlink", kind="switch", size=8.0, bandwidth=4e11)
FABRIC = Dim(name="fabric", kind="switch", size=0.0, bandwidth=5e10)
DIMS = (NVLINK, FABRIC)


def spans(**degrees: float) -> dict[str, Span]:
    return dict(place(degrees, tuple(degrees), DIMS).spans)


def seconds_of_flows(flows: list[tuple[float, dict[str, float]]], rates: dict[str, float]) -> float:
    """Brute force: flows (bytes on each link that they use) share every link evenly until all are through."""
    left = [dict(uses) for _, uses in flows]
    time = 0.0
    while any(any(size > 1e-3 for size in uses.values()) for uses in left):
        active = {link: sum(1 for uses in left if uses.get(link, 0.0) > 1e-3) for link in rates}
        step = min(size * active[link] / rates[link] for uses in left for link, size in uses.items() if size > 1e-3)
        for uses in left:
            for link, size in uses.items():
                if size > 1e-3:
                    uses[link] = size - step * rates[link] / active[link]
        time += step
    return time


@pytest.mark.parametrize("volumes", [(1e9, 1e9), (4e9, 1e9), (1e8, 7e9)])
def test_groups_that_share_a_dim_add_up(volumes: tuple[float, float]) -> None:
    """Gradients of dense weights (over all ranks) and of experts (over the nodes) at once: a link carries both."""
    dense, experts = spans(data=32.0)["data"], spans(tensor=8.0, data=4.0)["data"]
    running = [("reduce_scatter", dense, volumes[0]), ("reduce_scatter", experts, volumes[1])]
    flows = [
        (volumes[0], {"nvlink": 7 / 8 * volumes[0], "fabric": 3 / 4 * volumes[0] / 8}),
        (volumes[1], {"fabric": 3 / 4 * volumes[1]}),
    ]
    expected = seconds_of_flows(flows, {"nvlink": NVLINK.bandwidth, "fabric": FABRIC.bandwidth})
    assert float(together_time(DIMS, running)) == pytest.approx(expected)


def test_groups_on_different_dims_do_not_wait() -> None:
    inside, outside = spans(tensor=8.0, data=4.0)["tensor"], spans(tensor=8.0, data=4.0)["data"]
    alone = [float(collective_time("all_gather", DIMS, span, 1e9)) for span in (inside, outside)]
    both = float(together_time(DIMS, [("all_gather", inside, 1e9), ("all_gather", outside, 1e9)]))
    assert both == pytest.approx(max(alone))


def test_devices_that_share_one_adapter() -> None:
    """Eight devices behind one 100 Gb/s adapter: all groups of a node cross it, so that the node's tensor takes
    2 (q - 1)/q V over the whole adapter, however it is cut into groups (Thakur et al. 2005 on nodes)."""
    adapter = 12.5e9
    dims = (NVLINK, replace(FABRIC, bandwidth=adapter / 8))
    for order, degrees in (("data",), {"data": 32.0}), (("tensor", "data"), {"tensor": 8.0, "data": 4.0}):
        span = place(degrees, order, dims).spans["data"]
        volume = 8e9 if order == ("data",) else 1e9  # of 8 groups, or of one of 8 groups
        assert float(collective_time("all_reduce", dims, span, volume)) == pytest.approx(2 * 3 / 4 * 8e9 / adapter)


def test_which_groups_cross_the_same_links() -> None:
    found = spans(tensor=4.0, expert=4.0, data=4.0)
    assert float(crosses(found["data"], found["expert"])) == 1.0
    assert float(crosses(found["data"], found["tensor"])) == 0.0
    degrees = np.array([1.0, 2.0, 4.0])
    axis = place({"tensor": 8.0 / degrees, "expert": degrees * 2.0, "data": 4.0}, ("tensor", "expert", "data"), DIMS)
    one = [spans(tensor=8.0 / d, expert=2.0 * d, data=4.0) for d in degrees.tolist()]
    expected = [float(crosses(each["data"], each["expert"])) for each in one]
    assert np.broadcast_to(crosses(axis.spans["data"], axis.spans["expert"]), (3,)).tolist() == expected


def test_expert_traffic_leaves_the_gradients_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With experts over 8 nodes their all-to-all and the gradients use the same adapters: less of the reduction hides
    than it would behind the same backward pass with adapters of their own; inside a node nothing changes."""
    model, cluster = load.model("qwen3-235b-a22b"), load.cluster("dgx-h100", 256)
    across = load.strategy("ep=64,pp=2,global_batch=512,recompute=full", cluster=cluster)
    inside = replace(across, expert=8.0)
    shared = [float(predict(model, cluster, s).time["exposed_data"]) for s in (across, inside)]
    axis = predict(model, cluster, replace(across, expert=np.array([64.0, 8.0]))).time["exposed_data"]
    assert np.asarray(axis).ravel().tolist() == pytest.approx(shared, rel=1e-12)
    monkeypatch.setattr("tradespace.cost.data_parallel.crosses", lambda *_: 0.0)
    apart = [float(predict(model, cluster, s).time["exposed_data"]) for s in (across, inside)]
    assert shared[0] > apart[0]
    assert shared[1] == apart[1]


@given(st.integers(1, 48), st.integers(1, 8), st.sampled_from([4, 8, 16]))
def test_groups_that_do_not_tile_a_node(degree: int, others: int, node: int) -> None:
    """Neighbouring ranks form groups; the worst one reaches no more nodes than it is priced for, and where groups
    tile a node (or nodes a group) it is priced for exactly these."""
    dims = (replace(NVLINK, size=float(node)), FABRIC)
    inside, outside = place({"tensor": float(degree), "data": float(others)}, ("tensor", "data"), dims).spans["tensor"]
    assert float(inside.count) * float(outside.count) == degree
    total = degree * others * node
    worst = max(len({rank // node for rank in range(start, start + degree)}) for start in range(0, total, degree))
    assert worst <= float(outside.count)
    if node % degree == 0 or degree % node == 0:
        assert worst == float(outside.count)


@pytest.mark.parametrize(("nodes", "gb_s"), [(1, 458), (2, 341), (4, 161), (8, 96), (16, 52), (32, 27), (64, 13)])
def test_a_congested_cluster_is_an_input(nodes: int, gb_s: float) -> None:
    """All-reduce of the Ultra-Scale cluster over its nodes (medians of the runs' own probes): within 15 %, the probe's
    size is not published; a healthy fabric of the same kind keeps 190 to 200 GB/s."""
    row = nccl_tests("all_reduce", load.cluster("ultra-scale-h100", 8.0 * nodes), 0.0, [2.0**34])[0]
    assert row.busbw / 1e9 == pytest.approx(gb_s, rel=0.15)
    if nodes == 64:
        healthy = nccl_tests("all_reduce", load.cluster("aws-p5", 512.0), 0.0, [2.0**34])[0]
        assert healthy.busbw / 1e9 == pytest.approx(174, rel=0.15)  # median of the jobs that saw a healthy fabric


def test_congestion_in_a_file_of_ones_own() -> None:
    table = {
        "key": "mine",
        "name": "mine",
        "device": "h100-sxm",
        "devices": 64,
        "network": [
            {"name": "nvlink", "kind": "switch", "size": 8, "bandwidth": "450 GB/s", "curves": "nvlink-h100"},
            {
                "name": "fabric",
                "kind": "switch",
                "size": 0,
                "bandwidth": "50 GB/s",
                "curves": "infiniband",
                "congestion_ranks": [2, 8],
                "congestion_share": [1.0, 0.5],
            },
        ],
    }
    congested = load.cluster(table)
    healthy = replace(congested, network=(congested.network[0], replace(congested.network[1], congestion_ranks=())))
    times = [
        float(collective_time("all_reduce", c.network[1:], whole_cluster(c)[1:], 1e11)) for c in (congested, healthy)
    ]
    assert times[0] / times[1] == pytest.approx(2.0, rel=0.01)
