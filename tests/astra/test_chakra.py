"""The `.et` codec: liberal in what it reads, never trusting a length, exact in what it writes."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradespace.astra import (
    Collective,
    Compute,
    Iteration,
    Machine,
    Receive,
    RemoteAccess,
    Send,
    read_network,
    read_system,
    replay,
    replay_iteration,
    write_iteration,
)
from tradespace.astra.chakra import COLLECTIVE, COMP, SEND, Node, decode, encode, encode_file, encode_variable
from tradespace.astra.iteration import to_traces
from tradespace.astra.side_files import RemoteMemory, read_memory
from tradespace.astra.traces import Reader, file_bytes, read_traces
from tradespace.astra.wire import WireError, put_bytes, put_number, put_varint, signed, varint, zigzag
from tradespace.errors import InputError
from tradespace.network.astra import COLLECTIVES, Dim, Network, System

pytestmark = pytest.mark.filterwarnings("ignore::tradespace.astra.AstraWarning")
U64 = st.integers(0, 2**64 - 1)
NETWORK = Network((Dim("Switch", 4, 300, 100), Dim("Ring", 2, 12.5, 1000)))
MACHINE = Machine(
    System(dict.fromkeys(COLLECTIVES, ("ring", "ring")), 7, 1600.0, 2, 2, optimization="localBWAware"), True, 312e12
)


def attribute(name: str, *value: bytes) -> bytes:
    return put_bytes(10, put_bytes(1, name.encode()) + b"".join(value))


@given(U64)
def test_varints_round_trip(value: int) -> None:
    data = put_varint(value)
    assert varint(data, 0, len(data)) == (value, len(data))


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_and_zigzag_round_trip(value: int) -> None:
    data = put_varint(value)
    assert signed(varint(data, 0, len(data))[0]) == value
    assert zigzag((value << 1 ^ value >> 63) & 2**64 - 1) == value


@given(
    st.builds(
        Node,
        id=st.integers(0, 2**64 - 1),
        name=st.text(max_size=20),
        kind=st.sampled_from([2, 3, 4]),
        deps=st.lists(U64, unique=True, max_size=5).map(tuple),
        duration=st.integers(0, 10**9).map(lambda us: us * 1000),
        cpu=st.booleans(),
        size=st.integers(0, 2**62),
    )
)
def test_nodes_round_trip(node: Node) -> None:
    found, _, _ = decode(encode(node))
    assert found == node
    assert found.name == node.name


def test_collectives_and_messages_round_trip() -> None:
    node = Node(3, "c", COLLECTIVE, (1,), size=64, comm="reduce_scatter", dims=(True, False))
    assert decode(encode(node) + encode_variable({"pg_name": "12"}))[:2] == (node, {"pg_name": "12"})
    send = Node(4, "s", SEND, size=64)
    values: dict[str, str | int] = {"comm_src": 0, "comm_dst": 300, "comm_tag": 70000}
    found, variable, spans = decode(encode(send) + encode_variable(values))
    assert found == send
    assert variable == {"pg_name": "", **values}
    assert {key for key, _, _ in spans} == set(values)


@pytest.mark.parametrize(
    "size",
    [
        put_number(7, 640),
        put_number(9, 640),
        put_number(11, 640),
        put_number(13, 640),
        put_number(15, 1280),
        put_number(17, 1280),
        put_varint(19 << 3 | 5) + struct.pack("<I", 640),
        put_varint(21 << 3 | 1) + struct.pack("<Q", 640),
        put_varint(23 << 3 | 5) + struct.pack("<i", 640),
        put_varint(25 << 3 | 1) + struct.pack("<q", 640),
        put_bytes(29, b"640"),
        put_bytes(2, b"doc") + put_number(9, 640),
    ],
)
def test_every_integer_type_of_an_attribute_is_read(size: bytes) -> None:
    message = (
        put_number(1, 5)
        + put_number(3, COLLECTIVE)
        + attribute("comm_size", size)
        + attribute("comm_type", put_number(9, 2))
    )
    node, _, _ = decode(message)
    assert (node.size, node.comm) == (640, "all_gather")


def test_readers_are_liberal() -> None:
    """Attributes without a value, unknown attributes and fields, single and packed dependencies, flags as int32."""
    message = (
        put_number(1, 5)
        + put_number(3, COMP)
        + attribute("inputs")
        + attribute("op_type", put_bytes(29, b"E"))
        + attribute("is_cpu_op", put_number(7, 0))
        + put_number(4, 9)
        + put_bytes(5, b"\x07\x08")
        + put_number(5, 7)
        + put_bytes(8, b"anything")
        + put_number(99, 1)
        + attribute("num_ops", put_number(9, 12))
    )
    node, _, _ = decode(message)
    assert node == Node(5, "", COMP, (9, 7, 8), ops=12)
    for flags in (put_bytes(28, put_bytes(1, b"\x01\x00")), put_bytes(28, put_number(1, 1) + put_number(1, 0))):
        coll = put_number(1, 1) + put_number(3, COLLECTIVE) + attribute("involved_dim", flags)
        assert decode(coll)[0].dims == (True, False)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (attribute("comm_size", put_varint(3 << 3 | 1) + struct.pack("<d", 1.5)), "whole number"),
        (attribute("comm_size", put_number(9, -4)), "-4 bytes"),
        (attribute("comm_type", put_number(9, 77)), "comm_type 77"),
        (attribute("comm_size", put_bytes(30, b"")), "field 30"),
        (put_bytes(1, b"x"), "wire type 2"),
        (b"\x0b", "wire type 3"),
        (b"\x00\x01", "field number 0"),
        (b"\x12\xff\xff\xff\xff\x0f", "longer than"),
        (b"\x08" + b"\xff" * 11, "ten bytes"),
        (attribute("involved_dim", put_bytes(28, put_bytes(1, b"\x01" * 9999))), "more than 64"),
    ],
)
def test_malformed_messages_say_what_is_wrong(message: bytes, text: str) -> None:
    with pytest.raises(WireError, match=text):
        decode(put_number(1, 5) + put_number(3, COLLECTIVE) + message)


def test_unknown_node_types_are_refused() -> None:
    for kind in (0, 8, 2**40):
        with pytest.raises(WireError, match="type"):
            decode(put_number(1, 5) + put_number(3, kind))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_bytes_are_read_or_refused(data: st.DataObject) -> None:
    good = bytearray(
        encode_file(
            [encode(Node(i, "n", COMP, tuple(range(1, i)), ops=5, size=7)) for i in range(1, 4)]
            + [encode(Node(9, "c", COLLECTIVE, (3,), size=70, comm="all_reduce")) + encode_variable({"pg_name": "1"})]
        )
    )
    for _ in range(data.draw(st.integers(0, 6))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    raw = (
        bytes(good[: data.draw(st.integers(0, len(good)))])
        if data.draw(st.booleans())
        else data.draw(st.binary(max_size=99))
    )
    try:
        trace = Reader().read(raw, "x.et")
    except InputError as error:
        message = str(error)
        assert message.startswith("x.et: ")
    else:
        assert trace.program.nodes


@pytest.mark.parametrize(
    "raw",
    [
        put_varint(2**60),
        b"\x00" + put_varint(2**40) + b"abc",
        b"\x02\x0a\x00" + put_varint(100) + b"\x08\x01",
        b"",
        b"\x00",
    ],
)
def test_huge_lengths_and_empty_traces_cost_no_memory(raw: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(InputError, match=r"x\.et"):
        Reader().read(raw, "x.et")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_gzip_is_read_and_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = encode_file([encode(Node(1, "n", COMP))])
    (tmp_path / "t.0.et").write_bytes(gzip.compress(raw))
    (tmp_path / "t.1.et.gz").write_bytes(gzip.compress(raw))
    assert len(read_traces(tmp_path, 2)) == 2
    (tmp_path / "t.0.et").write_bytes(gzip.compress(raw)[:-9])
    with pytest.raises(InputError, match=r"t\.0\.et"):
        read_traces(tmp_path, 2)
    monkeypatch.setattr("tradespace.astra.traces.MAX_FILE_BYTES", 1 << 20)
    (tmp_path / "t.0.et").write_bytes(gzip.compress(bytes(64 << 20)))
    tracemalloc.start()
    with pytest.raises(InputError, match="larger than"):
        file_bytes(tmp_path / "t.0.et")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_equal_ranks_share_a_program_and_their_own_values_are_read(traces: Path) -> None:
    read = read_traces(traces / "gpt16pp", 16)
    assert len({id(trace.program.shape) for trace in read}) == 2
    alone = [Reader().read((traces / "gpt16pp" / f"workload.{rank}.et").read_bytes(), "x") for rank in range(16)]
    for one, other in zip(read, alone, strict=True):
        assert (one.comms, one.peers) == (other.comms, other.peers)
        assert one.program.nodes == other.program.nodes
    assert {peer for peer, _ in read[3].peers} == {11}


def test_a_file_that_differs_elsewhere_is_not_taken_for_equal() -> None:
    reader = Reader()
    texts = [
        encode_file(
            [
                encode(Node(1, "c", COLLECTIVE, size=size, comm="all_reduce")) + encode_variable({"pg_name": name}),
                encode(Node(2, "d", COLLECTIVE, size=64, comm="all_reduce")) + encode_variable({"pg_name": other}),
            ]
        )
        for size, name, other in ((64, "1", "1"), (65, "2", "2"), (64, "2", "3"), (64, "4", "4"))
    ]
    found = [reader.read(text, "x") for text in texts]
    assert [trace.program.nodes[0].size for trace in found] == [64, 65, 64, 64]
    assert [[name for name, _ in trace.comms] for trace in found] == [["1"], ["2"], ["2", "3"], ["4"]]
    assert found[0].program is found[3].program is not found[2].program


def step(rank: int) -> tuple[Compute | Collective | Send | Receive | RemoteAccess, ...]:
    row = tuple(range(4)) if rank < 4 else tuple(range(4, 8))
    pair = Send(6, "to", rank + 4, 2048, 70, (2,)) if rank < 4 else Receive(6, "from", rank - 4, 2048, 70)
    return (
        Compute(1, "matmul", (), 2 * 10**9, 1 << 22, 6e-6),
        Collective(2, "tp", "all_reduce", 1 << 20, row, (1,)),
        Collective(3, "dp", "reduce_scatter", 1 << 21, None, (2,), (False, True)),
        Compute(4, "act", (2,), 10**6, 10**6),
        RemoteAccess(5, "offload", 1 << 16, True, (4,)),
        pair,
    )


def test_an_exported_iteration_replays_to_the_same_times(tmp_path: Path) -> None:
    iteration = Iteration(tuple(step(rank) for rank in range(8)))
    memory = RemoteMemory("PER_NPU_MEMORY_EXPANSION", 700, 100)
    files = write_iteration(iteration, tmp_path, NETWORK, MACHINE, memory)
    assert sorted(path.name for path in files) == sorted(path.name for path in tmp_path.iterdir())
    assert read_network(tmp_path / "network.yml") == NETWORK
    assert read_system(tmp_path / "system.json") == MACHINE
    assert read_memory(tmp_path / "memory.json") == memory
    expected = replay_iteration(iteration, NETWORK, MACHINE, memory)
    assert expected["total_ns"] > 0
    assert (
        replay(
            tmp_path,
            tmp_path / "network.yml",
            tmp_path / "system.json",
            tmp_path / "memory.json",
            tmp_path / "step.json",
        )
        == expected
    )
    written, groups = to_traces(iteration)
    read = read_traces(tmp_path, 8)
    assert [trace.program.shape for trace in read] == [trace.program.shape for trace in written]
    assert [trace.peers for trace in read] == [trace.peers for trace in written]
    assert groups == {"1": (0, 1, 2, 3), "2": (4, 5, 6, 7)}


def test_the_exporter_checks_the_number_of_ranks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="8 NPUs"):
        write_iteration(Iteration((step(0),)), tmp_path, NETWORK, MACHINE)
    with pytest.raises(InputError, match="8 NPUs"):
        replay_iteration(Iteration((step(0),)), NETWORK, MACHINE)
