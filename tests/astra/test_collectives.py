"""Every measured row of ASTRA-sim's analytical backends, to the nanosecond."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradespace.astra import AstraWarning, collectives
from tradespace.astra.collective import Collective, time_of, window_of_one
from tradespace.astra.events import Run
from tradespace.astra.plans import plans
from tradespace.astra.trees import tree
from tradespace.errors import InputError
from tradespace.network.astra import COLLECTIVES, Dim, Network, System

pytestmark = pytest.mark.filterwarnings("ignore::tradespace.astra.AstraWarning")
TABLE = Path(__file__).parents[1] / "data" / "astra" / "astra_sim_collectives.csv"
MIB = 1 << 20


def ring_system(algorithms: tuple[str, ...], **more: object) -> System:
    return System(dict.fromkeys(COLLECTIVES, algorithms), memory_bandwidth=1600, **more)  # type: ignore[arg-type]


def test_every_row_is_exact() -> None:
    with TABLE.open() as file:
        rows = list(csv.DictReader(file))
    times = collectives(TABLE)
    assert [time["id"] for time in times] == [int(row["id"]) for row in rows]
    wrong = [
        (row["id"], row["group"], int(row["time_ns_max"]), time["time_ns"])
        for row, time in zip(rows, times, strict=True)
        if int(row["time_ns_max"]) != time["time_ns"]
    ]
    assert not wrong
    assert Counter(row["backend"] for row in rows) == {"unaware": 509, "aware": 189}


@pytest.mark.parametrize(
    ("kind", "n", "algorithm", "collective", "size", "more", "aware", "expected"),
    [
        ("Ring", 4, "direct", "all_reduce", 16 * MIB, {}, False, 165643),
        ("FullyConnected", 4, "doubleBinaryTree", "all_reduce", 64 * MIB, {"chunks": 4}, False, 4446630),
        ("Switch", 8, "direct", "all_to_all", 64 * MIB, {}, False, 157270),
        ("Switch", 8, "direct", "all_to_all", 64 * MIB, {}, True, 1251020),
        ("Switch", 8, "direct", "all_reduce", 64 * MIB, {}, False, 330256),
        ("Switch", 8, "direct", "all_reduce", 64 * MIB, {}, True, 2517756),
        ("Switch", 8, "ring", "all_reduce", 64 * MIB, {}, False, 2311732),
        ("Switch", 8, "ring", "all_reduce", 64 * MIB, {}, True, 4499232),
        ("Ring", 8, "ring", "all_reduce", 64 * MIB, {"chunks": 4, "active": 4}, False, 581528),
        ("Ring", 8, "ring", "all_reduce", 64 * MIB, {"chunks": 4, "active": 2}, True, 2187992),
        ("Ring", 8, "ring", "all_reduce", 64 * MIB, {"chunks": 4, "active": 4}, True, 2187992),
    ],
)
def test_numbers_that_the_documentation_cites(
    kind: str, n: int, algorithm: str, collective: str, size: int, more: dict[str, int], aware: bool, expected: int
) -> None:
    net = Network((Dim(kind, n, 50, 500),), aware=aware)
    assert time_of(net, ring_system((algorithm,), **more), collective, size) == expected


@pytest.mark.parametrize(
    ("kind", "bandwidth", "latency", "expected"),
    [("Ring", (100, 100), (500, 500), (4.93, 2.82)), ("Switch", (300, 100), (300, 1000), (2.04, 1.84, 2.45, 3.21))],
)
def test_themis_gains_and_loses_as_measured(
    kind: str, bandwidth: tuple[int, int], latency: tuple[int, int], expected: tuple[float, ...]
) -> None:
    net = Network(tuple(Dim(kind, 8, b, a) for b, a in zip(bandwidth, latency, strict=True)))
    found = [
        round(time_of(net, ring_system(("ring", "ring"), chunks=chunks, order=order), "all_reduce", 256 * MIB) / 1e6, 2)
        for chunks in (16, 64)
        for order in ("ascending", "themis")
    ]
    assert tuple(found[: len(expected)]) == expected


def test_dimension_order_changes_the_time_of_a_torus() -> None:
    times = [
        time_of(
            Network((Dim("Ring", a, 50, 500), Dim("Ring", b, 50, 500))),
            ring_system(("ring", "ring")),
            "all_reduce",
            64 * MIB,
        )
        for a, b in ((2, 8), (8, 2))
    ]
    assert times[0] != times[1]


def test_topology_changes_the_time() -> None:
    assert (
        len(
            {
                time_of(Network((Dim(kind, 8, 50, 500),)), ring_system(("direct",)), "all_reduce", 64 * MIB)
                for kind in ("Ring", "FullyConnected", "Switch")
            }
        )
        == 3
    )


@pytest.mark.parametrize("top", [True, False])
@pytest.mark.parametrize("n", [2, 4, 8, 64])
def test_trees_span_all_ranks_and_agree_on_parents(n: int, top: bool) -> None:
    nodes = [tree(position, n, top) for position in range(n)]
    assert [i for i, (parent, _) in enumerate(nodes) if parent is None] == [n - 1 if top else 0]
    for i, (_, children) in enumerate(nodes):
        assert all(nodes[child][0] == i for child in children)
    assert sum(len(children) for _, children in nodes) == n - 1


SHAPES = st.sampled_from(
    [
        (("Ring", 4),),
        (("Switch", 8),),
        (("FullyConnected", 6),),
        (("Ring", 3), ("Switch", 4)),
        (("Ring", 2), ("FullyConnected", 3), ("Switch", 2)),
        (("Switch", 4), ("Ring", 4)),
    ]
)


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.data())
def test_one_rank_stands_for_all_that_fare_alike(shape: tuple[tuple[str, int], ...], data: st.DataObject) -> None:
    """The job shop of phase times, and the simulation of every rank and message, agree where both apply."""
    dims = tuple(
        Dim(kind, n, data.draw(st.sampled_from([25, 50, 400])), data.draw(st.sampled_from([0, 100, 500])))
        for kind, n in shape
    )
    algorithms = tuple(
        data.draw(st.sampled_from(["ring", "direct", "direct2"] + ["halvingDoubling"] * (n in (2, 4, 8))))
        for _, n in shape
    )
    system = ring_system(
        algorithms,
        chunks=data.draw(st.integers(1, 6)),
        active=data.draw(st.integers(1, 4)),
        endpoint_delay=data.draw(st.sampled_from([1, 10, 300])),
        queues=data.draw(st.sampled_from([1, 2])),
        order=data.draw(st.sampled_from(["ascending", "roundRobin", "themis"])),
        optimization=data.draw(st.sampled_from(["localBWAware", "baseline"])),
    )
    kind = data.draw(st.sampled_from(COLLECTIVES))
    size = data.draw(st.sampled_from([64, 3001, 10000019, 1 << 24]))
    net = Network(dims)
    collective = Collective(net, system, kind, size, tuple(range(len(dims))))
    run = Run(net, system, collective.chunks, collective.servers)
    if collective.alike:
        assert set(run.times(range(net.size), [0] * net.size)) == {collective.together}


def test_ranks_that_would_wait_for_each_other_are_timed_in_one_order_with_a_warning() -> None:
    """Themis sends chunks through the dims in different orders; phases that end together make ranks disagree."""
    net = Network((Dim("Ring", 2, 25, 1), Dim("FullyConnected", 3, 25, 0), Dim("Switch", 2, 50, 4)))
    system = ring_system(("ring",) * 3, chunks=4, endpoint_delay=1, order="themis", optimization="localBWAware")
    collective = Collective(net, system, "all_reduce", 3001, (0, 1, 2))
    assert not collective.alike
    with pytest.warns(AstraWarning, match="wait for each other"):
        assert set(collective.ends(range(12), [0] * 12)) == {collective.together}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_vector_of_a_ring_equals_its_messages_one_by_one(data: st.DataObject) -> None:
    net = Network((Dim("Ring", 4, 300, 100), Dim("Switch", 4, 50, 1000)))
    members = tuple(data.draw(st.lists(st.integers(0, 15), min_size=2, max_size=8, unique=True)))
    offsets = data.draw(st.lists(st.integers(0, 100_000), min_size=len(members), max_size=len(members)))
    system = ring_system(("ring", "ring"), chunks=data.draw(st.integers(1, 4)), active=data.draw(st.integers(1, 3)))
    collective = Collective(net, system, data.draw(st.sampled_from(COLLECTIVES)), MIB, (), members)
    found = window_of_one(net, system, collective.chunks[0][0], len(collective.chunks), collective.servers, offsets)
    assert found == Run(net, system, collective.chunks, collective.servers).times(members, offsets)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 64), st.integers(2, 10))
def test_more_bytes_never_take_less_time(pieces: int, more: int, chunks: int, n: int) -> None:
    """As long as chunks divide the size: a remainder becomes one more full-size chunk."""
    net, system = Network((Dim("Ring", n, 50, 500),)), ring_system(("ring",), chunks=chunks)
    unit = chunks * n
    assert time_of(net, system, "all_reduce", pieces * unit) <= time_of(
        net, system, "all_reduce", (pieces + more) * unit
    )


def test_chunks_are_full_size_and_a_remainder_is_one_more() -> None:
    net = Network((Dim("Ring", 4, 50, 500),))
    assert len(plans(net, ring_system(("ring",), chunks=3), "all_reduce", 100, (0,))) == 4
    zero = [time_of(net, ring_system(("ring",), chunks=4), "all_reduce", size) for size in (0, 16)]
    assert zero[0] == zero[1] > 0


@pytest.mark.parametrize(
    ("algorithm", "n", "collective", "size", "text"),
    [
        ("halvingDoubling", 6, "all_reduce", MIB, "power of two"),
        ("doubleBinaryTree", 6, "all_reduce", MIB, "crashes ASTRA-sim"),
        ("ring", 4, "all_gather", 1, "never ends"),
    ],
)
def test_what_hangs_or_crashes_astra_sim_is_refused(
    algorithm: str, n: int, collective: str, size: int, text: str
) -> None:
    with pytest.raises(InputError, match=text):
        time_of(Network((Dim("Ring", n, 50, 500),)), ring_system((algorithm,), chunks=2), collective, size)


def test_reductions_need_the_memory_bandwidth_and_gathers_do_not() -> None:
    net = Network((Dim("Ring", 4, 50, 500),))
    system = System(dict.fromkeys(COLLECTIVES, ("ring",)))
    assert time_of(net, system, "all_gather", MIB) > 0
    with pytest.raises(InputError, match="local-mem-bw"):
        time_of(net, system, "all_reduce", MIB)


def test_silent_changes_are_warned_of() -> None:
    net = Network((Dim("Ring", 4, 50, 500),))
    with pytest.warns(AstraWarning, match="silently runs an all-reduce"):
        scatter = time_of(net, ring_system(("doubleBinaryTree",)), "reduce_scatter", MIB)
    assert scatter == time_of(net, ring_system(("doubleBinaryTree",)), "all_reduce", MIB)
    with pytest.warns(AstraWarning, match="runs ring instead"):
        exchange = time_of(net, ring_system(("halvingDoubling",)), "all_to_all", MIB)
    assert exchange == time_of(net, ring_system(("ring",)), "all_to_all", MIB)


def test_one_ring_over_the_machine_uses_rank_order() -> None:
    """Every step of the single ring crosses dim 0, so its cost is that of one ring of all ranks on dim 0."""
    net = Network((Dim("Switch", 4, 300, 100), Dim("Switch", 4, 50, 1000)))
    one = time_of(net, ring_system(("oneRing",)), "all_reduce", MIB)
    assert one == time_of(Network((Dim("Switch", 16, 300, 100),)), ring_system(("ring",)), "all_reduce", MIB)


def test_aware_without_contention_is_hops_times_one_hop() -> None:
    net = Network((Dim("Switch", 8, 50, 500),), aware=True)
    transfer = 8 * MIB / (50 * 2**30 / 1e9)
    assert time_of(net, ring_system(("ring",)), "all_gather", 8 * MIB) == 7 * 2 * math.floor(500 + transfer) + 80


ROW = (
    "id,backend,topology,npus,bandwidth_GBps,latency_ns,algorithm,collective,comm_size_bytes,chunks,"
    "active_chunks_per_dim,endpoint_delay_ns,local_mem_bw_GBps,collective_optimization,scheduling_policy,"
    "inter_dim_scheduling,queues_per_dim"
)
GOOD = "7,unaware,Ring,4,50,500,ring,all_reduce,65536,1,1,10,1600,localBWAware,LIFO,ascending,1"


def test_a_table_without_the_answer_column(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(f"{ROW}\n{GOOD}\n")
    assert collectives(tmp_path / "rows.csv") == [{"id": 7, "time_ns": 4990}]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("Ring,", "Torus,", "'Torus' is not known"),
        (",4,", ",1,", "between 2 and"),
        (",50,", ",0,", "between 1e-06"),
        (",50,", ",nan,", "between"),
        ("all_reduce", "allreduce", "collective"),
        ("unaware", "both", "backend"),
        ("65536", "-3", "comm_size_bytes"),
        ("65536", "9" * 30, "comm_size_bytes"),
        (",1,1,10,", ",0,1,10,", "preferred"),
        (",1,1,10,", ",1,1,0,", "aborts"),
        ("1600", "x", "number"),
        ("ring", "ringg", "did you mean"),
        (",LIFO", "", "columns"),
        ("Ring,4,", "Ring_Ring,4,", "entries"),
        ("unaware,Ring,4,50,500,ring", "aware,Ring_Ring,4x4,50_50,5_5,ring_ring", "one dim"),
        ("ascending", "offlineGreedy", "known"),
        ("ring", "halvingDoubling_ring", "one per"),
        (",4,", ",2000000,", "between"),
        ("ring", "direct99999999", "not an algorithm"),
        ("65536,1,", "65536,1e9,", "preferred"),
    ],
)
def test_bad_rows_name_the_line(tmp_path: Path, old: str, new: str, text: str) -> None:
    (tmp_path / "rows.csv").write_text(f"{ROW}\n{GOOD}\n{GOOD.replace(old, new)}\n")
    with pytest.raises(InputError, match=text) as error:
        collectives(tmp_path / "rows.csv")
    assert "line 3" in str(error.value)


@pytest.mark.parametrize(
    "text", ["", "id\n", f"{ROW}\n", f"{ROW[3:]}\n{GOOD[2:]}\n", f"{ROW}\n{'x' * 200_000}\n", "\0,\n"]
)
def test_files_that_are_no_table_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InputError, match=r"rows\.csv"):
        collectives(tmp_path / "rows.csv")


def test_a_direct_phase_too_large_to_simulate_is_refused() -> None:
    with pytest.raises(InputError, match="too large"):
        time_of(Network((Dim("Ring", 1 << 20, 50, 500),)), ring_system(("direct",)), "all_reduce", MIB)
    with pytest.raises(InputError, match="messages"):
        time_of(
            Network((Dim("Switch", 1 << 13, 50, 500),), aware=True), ring_system(("direct",)), "all_reduce", 1 << 30
        )
