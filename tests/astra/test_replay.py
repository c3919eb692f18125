"""Whole iterations against ASTRA-sim's totals, and the rules of its workload layer one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tradespace.astra import (
    AstraWarning,
    Collective,
    Compute,
    Iteration,
    Machine,
    Receive,
    RemoteAccess,
    Send,
    replay,
    replay_iteration,
)
from tradespace.astra.chakra import COLLECTIVE, COMP, METADATA, Node, encode, encode_file, encode_variable
from tradespace.astra.collective import time_of
from tradespace.astra.network_file import read_network
from tradespace.astra.ranks import Classes, Communicators, Ranks
from tradespace.astra.replay import Replay
from tradespace.astra.side_files import RemoteMemory, read_groups
from tradespace.astra.system_file import read_system
from tradespace.astra.traces import read_traces
from tradespace.errors import InputError
from tradespace.network.astra import COLLECTIVES, Dim, Network, System

pytestmark = pytest.mark.filterwarnings("ignore::tradespace.astra.AstraWarning")
Config = Callable[..., tuple[Path, Path]]
MIB = 1 << 20
FOUR = Network((Dim("Ring", 4, 50, 500),))
GRID = Network((Dim("Switch", 4, 300, 100), Dim("Switch", 4, 50, 1000)))
ITERATIONS = [
    ("gpt16", ("Ring_Ring", (4, 4), (300, 50), (100, 1000)), 1, {0: 19393792, 8: 19393792}, 6910860),
    ("gpt16", ("Switch_Switch", (4, 4), (300, 50), (100, 1000)), 1, {0: 19526992}, 6910860),
    ("gpt16", ("Switch_Switch", (4, 4), (300, 50), (100, 1000)), 4, {0: 20331112}, 6910860),
    (
        "gpt16pp",
        ("Switch_Switch_Switch", (2, 4, 2), (50, 300, 50), (1000, 100, 1000)),
        1,
        {0: 15903956, 8: 11503679},
        6812664,
    ),
    ("gpt16pp", ("Ring_Ring_Ring", (2, 4, 2), (50, 50, 50), (500, 500, 500)), 4, {0: 28060945, 8: 21522992}, 6812664),
]


def machine(net: Network, algorithm: str = "ring", delay: int = 10, memory: float = 1600, **more: Any) -> Machine:
    names = (algorithm,) * len(net.dims)
    return Machine(System(dict.fromkeys(COLLECTIVES, names), delay, memory, **more))


def totals(
    iteration: Iteration, net: Network, config: Machine | None = None, memory: RemoteMemory | None = None
) -> list[int]:
    result = replay_iteration(iteration, net, config or machine(net), memory)
    return [times["total"] for times in result["ranks"].values()]


@pytest.mark.parametrize(("name", "network", "chunks", "expected", "compute"), ITERATIONS)
def test_iterations_are_exact(
    traces: Path,
    config: Config,
    name: str,
    network: tuple[Any, ...],
    chunks: int,
    expected: dict[int, int],
    compute: int,
) -> None:
    net, system = config(*network, preferred_dataset_splits=chunks)
    result = replay(traces / name, net, system, comm_groups=traces / name / "workload.json")
    for rank, total in expected.items():
        times = result["ranks"][str(rank)]
        assert times["total"] == total
        assert times["exposed"] == total - times["compute"]
    assert result["total_ns"] == max(expected.values())
    assert result["ranks"]["0"]["compute"] == compute
    assert list(result["ranks"]) == [str(rank) for rank in range(16)]


@pytest.mark.parametrize(("name", "network", "chunks", "expected", "compute"), ITERATIONS)
def test_one_rank_per_class_equals_every_rank(
    traces: Path,
    config: Config,
    name: str,
    network: tuple[Any, ...],
    chunks: int,
    expected: dict[int, int],
    compute: int,
) -> None:
    paths = config(*network, preferred_dataset_splits=chunks)
    net, system = read_network(paths[0]), read_system(paths[1])
    groups = read_groups(traces / name / "workload.json", net.size)
    read = read_traces(traces / name, net.size)
    communicators = Communicators(net, system.system, groups)
    classes = Classes(communicators, read)
    short = Replay(classes, system, None, [read[rank].program for rank in classes.first]).run()
    full = Replay(Ranks(communicators, read), system, None, [trace.program for trace in read]).run()
    assert len(short) == (2 if name == "gpt16pp" else 1)
    assert [short[number] for number in classes.of] == full
    assert full[0]["total"] == expected[0]
    assert full[0]["compute"] == compute


@pytest.mark.parametrize(("group", "expected"), [((0, 1, 2, 3), 153151), ((0, 2, 1, 3), 168151)])
def test_a_group_runs_its_ring_in_the_order_of_the_file(group: tuple[int, ...], expected: int) -> None:
    net = Network((Dim("Ring", 4, 50, 5000), Dim("Ring", 2, 50, 5000)))
    step = (Collective(1, "reduce", "all_reduce", 4 * MIB, group),)
    idle = (Compute(1, "idle", duration=1e-9),)
    assert totals(Iteration((step,) * 4 + (idle,) * 4), net)[:4] == [expected] * 4


def test_groups_pay_ten_ns_whatever_the_endpoint_delay() -> None:
    step = Iteration(
        ((Collective(1, "a", "all_reduce", MIB, (0, 1, 2, 3)),),) * 4
        + ((Collective(1, "a", "all_reduce", MIB, (4, 5, 6, 7)),),) * 4
        + ((Compute(1, "i"),),) * 8
    )
    assert totals(step, GRID, machine(GRID, delay=10)) == totals(step, GRID, machine(GRID, delay=1000))


def test_a_group_across_dims_is_charged_on_the_lowest_and_warned_of() -> None:
    reduce = Collective(1, "a", "all_reduce", 64 * MIB, tuple(range(8)))
    step = Iteration(((reduce,),) * 8 + ((Compute(1, "idle"),),) * 8)
    with pytest.warns(AstraWarning, match="lowest differing dim alone"):
        assert totals(step, GRID)[0] == 477606
    highest = Network(GRID.dims, highest=True)
    assert totals(step, highest)[0] > 477606


def test_the_group_of_everybody_is_native_and_involved_dims_restrict_it() -> None:
    everybody = Iteration(((Collective(1, "a", "all_reduce", MIB, tuple(range(16))),),) * 16)
    native = Iteration(((Collective(1, "a", "all_reduce", MIB),),) * 16)
    expected = time_of(GRID, machine(GRID).system, "all_reduce", MIB)
    assert set(totals(everybody, GRID) + totals(native, GRID)) == {expected}
    for dim in (0, 1):
        flags = (dim == 0, dim == 1)
        one = Iteration(((Collective(1, "a", "all_reduce", MIB, dims=flags),),) * 16)
        single = Network((GRID.dims[dim],))
        assert set(totals(one, GRID)) == {time_of(single, machine(single).system, "all_reduce", MIB)}


def test_p2p_ends_at_arrival_and_the_receive_waits() -> None:
    ranks: list[tuple[Any, ...]] = [(Compute(1, "idle"),)] * 16
    ranks[0] = (Send(1, "send", 5, MIB, 9), Compute(2, "next", (1,), duration=1e-6))
    ranks[5] = (Receive(1, "receive", 0, MIB, 9), Compute(2, "beside", duration=2e-6), Compute(3, "then", (1,)))
    ring = Network((Dim("Ring", 4, 300, 100), Dim("Ring", 4, 50, 1000)))
    times = totals(Iteration(tuple(ranks)), ring)
    assert (times[0], times[5], times[1]) == (3355 + 1000, 3355 + 1, 1)


def test_a_message_may_wait_for_its_receive() -> None:
    ranks: list[tuple[Any, ...]] = [(Compute(1, "idle"),)] * 4
    ranks[0] = (Send(1, "send", 1, 1024),)
    ranks[1] = (Compute(1, "busy", duration=50e-6), Receive(2, "receive", 0, 1024, after=(1,)))
    assert totals(Iteration(tuple(ranks)), FOUR)[:2] == [FOUR.message(0, 1, 1024), 50_000]


def test_one_compute_and_one_communication_at_a_time_lowest_id_first() -> None:
    step = (
        Compute(4, "late", duration=3e-6),
        Compute(2, "early", duration=1e-6),
        Collective(3, "b", "all_gather", 1024),
        Collective(1, "a", "all_gather", 2048),
        Compute(5, "after a", (1,), duration=1e-6),
        Compute(6, "after late", (4, 3), duration=1e-6),
    )
    gather = [time_of(FOUR, machine(FOUR).system, "all_gather", size) for size in (2048, 1024)]
    assert set(totals(Iteration((step,) * 4), FOUR)) == {max(4000, sum(gather)) + 2 * 1000}


def test_late_ranks_delay_a_ring_but_not_by_their_lateness_alone() -> None:
    """Rank 0 comes late: its neighbours have sent the first packets long before."""
    gather = Collective(2, "g", "all_gather", MIB, after=(1,))
    steps = tuple((Compute(1, "c", duration=late), gather) for late in (30e-6, 1e-6, 1e-6, 1e-6))
    found = totals(Iteration(steps), FOUR)
    together = time_of(FOUR, machine(FOUR).system, "all_gather", MIB)
    assert max(found) == 30_000 + together
    assert len(set(found)) > 1


def test_asymmetric_collectives_on_several_dims_end_after_the_last_start() -> None:
    reduce = Collective(2, "g", "all_reduce", MIB, after=(1,))
    steps = tuple((Compute(1, "c", duration=(1 + rank) * 1e-6), reduce) for rank in range(16))
    found = totals(Iteration(steps), GRID, machine(GRID, chunks=4))
    together = time_of(GRID, machine(GRID, chunks=4).system, "all_reduce", MIB)
    assert together < max(found) <= 16_000 + together


def test_roofline_takes_the_smaller_of_peak_and_bandwidth() -> None:
    config = Machine(machine(FOUR).system, True, 100e12)
    steps = [
        (Compute(1, "flops", flops=10**12, bytes=1000),),
        (Compute(1, "bytes", flops=1000, bytes=1_600_000),),
        (Compute(1, "nothing", flops=10, bytes=0),),
        (Compute(1, "x", flops=10**11, bytes=10**6),),
    ]
    assert totals(Iteration(tuple(steps)), FOUR, config) == [10_000_000, 1000, 0, 1_000_000]
    with pytest.raises(InputError, match="divides by zero"):
        totals(Iteration(((Compute(1, "x", bytes=8),),) * 4), FOUR, config)


def test_compute_without_roofline_lasts_its_duration_or_one_ns() -> None:
    assert totals(Iteration(((Compute(1, "a", duration=7e-6),), *((Compute(1, "b"),),) * 3)), FOUR) == [7000, 1, 1, 1]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("PER_NPU_MEMORY_EXPANSION", [11185] * 4),
        ("MEMORY_POOL", [11185, 22370, 33555, 44740]),
        ("PER_NODE_MEMORY_EXPANSION", [11185, 22370, 11185, 22370]),
    ],
)
def test_remote_memory(kind: str, expected: list[int]) -> None:
    step = (RemoteAccess(1, "load", MIB),)
    assert totals(Iteration((step,) * 4), FOUR, memory=RemoteMemory(kind, 700, 100, 2)) == expected


def test_remote_memory_without_an_expansion_is_refused() -> None:
    for memory in (None, RemoteMemory("NO_MEMORY_EXPANSION")):
        with pytest.raises(InputError, match="remote memory"):
            totals(Iteration(((RemoteAccess(1, "load", MIB),),) * 4), FOUR, memory=memory)


def write(folder: Path, *ranks: list[tuple[Node, dict[str, str | int]]]) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, nodes in enumerate(ranks):
        (folder / f"t.{rank}.et").write_bytes(
            encode_file(encode(node) + encode_variable(variable) for node, variable in nodes)
        )
    return folder


def test_broadcasts_metadata_and_cpu_operations(tmp_path: Path, config: Config) -> None:
    paths = config("Ring", [2], [50], [500], roofline_enabled=0)
    nodes: list[tuple[Node, dict[str, str | int]]] = [
        (Node(1, "m", METADATA), {}),
        (Node(2, "b", COLLECTIVE, (1,), 5000, comm="broadcast"), {}),
        (Node(3, "cpu", COMP, (), 3000, True), {}),
        (Node(4, "gpu", COMP, (), 4000), {}),
        (Node(5, "cpu", COMP, (), 3000, True), {}),
    ]
    times = replay(write(tmp_path / "t", nodes, nodes), *paths)["ranks"]["1"]
    assert times == {"total": 6000, "compute": 4000, "communication": 5000, "exposed": 2000}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: [[(Collective(1, "a", "all_reduce", 8),)]] * 3 + [[(Compute(1, "c"),)]], "not all ranks"),
        (
            lambda: [[(Collective(1, "a", "all_reduce", 8),)]] * 3 + [[(Collective(1, "a", "all_reduce", 16),)]],
            "of 16 bytes",
        ),
        (lambda: [[(Receive(1, "r", 1, 8),)]] + [[(Compute(1, "c"),)]] * 3, "no rank sends"),
        (
            lambda: [[(Receive(1, "r", 1, 8, 3),)], [(Send(1, "s", 0, 8, 4),)]] + [[(Compute(1, "c"),)]] * 2,
            "tag and bytes",
        ),
        (lambda: [[(Receive(1, "r", 9, 8),)]] + [[(Compute(1, "c"),)]] * 3, "rank 9"),
        (lambda: [[(Compute(1, "c", (2,)), Compute(2, "d", (1,)))]] * 4, "in a circle"),
        (lambda: [[(Compute(1, "c", (7,)),)]] * 4, "depends on node 7"),
        (lambda: [[(Compute(1, "c"), Compute(1, "d"))]] * 4, "used twice"),
        (lambda: [[(Collective(1, "a", "all_reduce", 8, (0, 1)),)]] * 4, "no member"),
        (lambda: [[(Collective(1, "a", "all_reduce", 8, dims=(False,)),)]] * 4, "involved_dim"),
        (lambda: [[(Collective(1, "a", "all_gather", 0),)]] * 4, "never ends"),
        (lambda: [[(Collective(1, "a", "barrier", 0),)]] * 4, "not one of"),
    ],
)
def test_what_astra_sim_waits_for_forever_is_named(make: Callable[[], list[list[tuple[Any, ...]]]], text: str) -> None:
    with pytest.raises(InputError, match=text):
        totals(Iteration(tuple(ranks[0] for ranks in make())), FOUR)


@pytest.mark.parametrize("comm", ["reduce", "gather", "scatter", "barrier", "reduce_scatter_block"])
def test_unsupported_collectives_are_named(tmp_path: Path, config: Config, comm: str) -> None:
    nodes: list[tuple[Node, dict[str, str | int]]] = [(Node(1, "x", COLLECTIVE, size=64, comm=comm), {})]
    with pytest.raises(InputError, match=f"{comm} is not supported"):
        replay(write(tmp_path / "t", nodes, nodes), *config("Ring", [2], [50], [500]))


def test_missing_groups_and_files_are_named(traces: Path, tmp_path: Path, config: Config) -> None:
    paths = config("Ring_Ring", (4, 4), (300, 50), (100, 1000))
    with pytest.raises(InputError, match="comm-groups"):
        replay(traces / "gpt16", *paths)
    with pytest.raises(InputError, match="no NAME"):
        replay(tmp_path, *paths)
    with pytest.raises(InputError, match="not a folder"):
        replay(tmp_path / "nowhere", *paths)
    small = config("Ring", (4,), (300,), (100,))
    with pytest.raises(InputError, match="16 traces for 4 NPUs"):
        replay(traces / "gpt16", *small, comm_groups=None)
    large = config("Ring_Ring", (8, 4), (300, 50), (100, 1000))
    with pytest.raises(InputError, match="rank 16 is missing"):
        replay(traces / "gpt16", *large)
    bad = tmp_path / "groups.json"
    for content in ({"0": [1]}, {"a": [1]}, {"1": []}, {"1": [99]}, {"1": [0, 0]}, {"1": ["0"]}, {"1": 3}, [1]):
        bad.write_text(json.dumps(content))
        with pytest.raises(InputError, match=r"groups\.json"):
            replay(traces / "gpt16", *config("Ring_Ring", (4, 4), (300, 50), (100, 1000)), comm_groups=bad)
