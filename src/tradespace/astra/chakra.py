"""Chakra execution traces (`.et`): one node per message, read liberally, written as the current schema says.

Source: `mlcommons/chakra`, schema/protobuf/et_def.proto, and the attributes that ASTRA-sim's feeder reads. A file is a
sequence of [varint length][message]; the first message is GlobalMetadata, all others are nodes.
Node: id 1, name 2, type 3, ctrl_deps 4, data_deps 5, start_time_micros 6, duration_micros 7, inputs 8, outputs 9,
attr 10. AttributeProto: name 1, doc 2, and one value by type: double 3, float 5, int32 7, int64 9, uint32 11,
uint64 13, sint32 15, sint64 17, fixed32 19, fixed64 21, sfixed32 23, sfixed64 25, bool 27, bool_list 28, string 29,
string_list 30, bytes 31; each odd number up to 25 is followed by its list.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tradespace.astra.wire import (
    BYTES,
    VARINT,
    WireError,
    fields,
    put_bytes,
    put_number,
    put_varint,
    signed,
    varint,
    zigzag,
)

INVALID, METADATA, LOAD, STORE, COMP, SEND, RECV, COLLECTIVE = range(8)
COMM_TYPES = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "broadcast",
    "all_to_all",
    "reduce_scatter",
    "reduce_scatter_block",
    "barrier",
)
VERSION = "0.0.4"
MAX_DIMS = 64
_FIXED = {3: "<d", 5: "<f", 19: "<I", 21: "<Q", 23: "<i", 25: "<q"}
_VARIABLE = (b"pg_name", b"comm_src", b"comm_dst", b"comm_tag")
_READ = {b"is_cpu_op", b"num_ops", b"tensor_size", b"comm_type", b"comm_size", b"involved_dim", *_VARIABLE}

Span = tuple[str, int, int]  # what varies from rank to rank, and where in the message its value lies


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a trace. `size` is the bytes of its tensor or its message; `duration` is in ns.

    What may differ between ranks that otherwise do the same is kept apart: `ref` is the index of a communicator
    (collective) or of a (peer, tag) pair (send, receive) in the rank's own tables.
    """

    id: int
    name: str = field(compare=False)
    kind: int
    deps: tuple[int, ...] = ()
    duration: int = 0
    cpu: bool = False
    ops: int = 0
    size: int = 0
    comm: str = ""
    dims: tuple[bool, ...] = ()
    ref: int = -1


def decode(data: bytes) -> tuple[Node, dict[str, str | int], tuple[Span, ...]]:
    """(node without `ref`, its pg_name, comm_src, comm_dst and comm_tag, where they lie) of one message.

    >>> decode(encode(Node(7, "x", COMP, deps=(3, 4), ops=10, size=20)))[0]
    Node(id=7, name='x', kind=4, deps=(3, 4), duration=0, cpu=False, ops=10, size=20, comm='', dims=(), ref=-1)
    """
    ident = kind = duration = 0
    name = ""
    deps: dict[int, None] = {}
    values: dict[bytes, str | int | float | tuple[bool, ...]] = {}
    spans: list[Span] = []
    for number, wire, value, start, stop in fields(data, 0, len(data)):
        if number in (1, 3, 7) and wire == VARINT:
            ident, kind, duration = (value if number == n else old for n, old in ((1, ident), (3, kind), (7, duration)))
        elif number == 2 and wire == BYTES:
            name = data[start:stop].decode("utf-8", "replace")
        elif number in (4, 5):
            _dependencies(data, wire, value, start, stop, deps)
        elif number == 10 and wire == BYTES:
            _attribute(data, start, stop, values, spans)
        elif number in (1, 2, 3, 7, 10):
            raise WireError(f"field {number} of a node has wire type {wire}")
    size = _integer(values, b"comm_size" if kind in (SEND, RECV, COLLECTIVE) else b"tensor_size", 0)
    if not INVALID < kind <= COLLECTIVE or size < 0:
        raise WireError(f"type {kind} is not one of 1 to 7" if size >= 0 else f"{size} bytes")
    flags = values.get(b"involved_dim", ())
    dims = flags if isinstance(flags, tuple) else ()
    node = Node(
        ident,
        name,
        kind,
        tuple(deps),
        duration * 1000,
        bool(_integer(values, b"is_cpu_op", 0)),
        _integer(values, b"num_ops", 0),
        size,
        _comm_type(values, kind),
        dims,
    )
    return node, _variable(values), tuple(spans)


def _variable(values: dict[bytes, str | int | float | tuple[bool, ...]]) -> dict[str, str | int]:
    numbers = {key.decode(): _integer(values, key, 0) for key in _VARIABLE[1:] if key in values}
    return {"pg_name": str(values.get(b"pg_name", "")), **numbers}


def _dependencies(data: bytes, wire: int, value: int, start: int, stop: int, deps: dict[int, None]) -> None:
    if wire == VARINT:
        deps[value] = None
    elif wire == BYTES:
        while start < stop:
            value, start = varint(data, start, stop)
            deps[value] = None
    else:
        raise WireError(f"dependencies have wire type {wire}")


def _attribute(
    data: bytes, at: int, end: int, values: dict[bytes, str | int | float | tuple[bool, ...]], spans: list[Span]
) -> None:
    key = b""
    found: tuple[int, int, int, int, int] | None = None
    for number, wire, value, start, stop in fields(data, at, end):
        if number == 1 and wire == BYTES:
            key = data[start:stop]
            if key not in _READ:
                return
        elif number > 2:
            found = number, wire, value, start, stop
    if found is None or key not in _READ:  # some writers leave an attribute without a value
        return
    values[key] = _value(data, *found)
    plain = (found[0] == 29 and found[1] == BYTES) or (found[0] in (7, 9, 11, 13) and found[1] == VARINT)
    if key in _VARIABLE and plain:
        spans.append((key.decode(), found[3], found[4]))


def _value(
    data: bytes, number: int, wire: int, value: int, start: int, stop: int
) -> str | int | float | tuple[bool, ...]:
    if wire == VARINT:
        if number in (15, 17):
            return zigzag(value)
        return signed(value) if number in (7, 9) else value
    if number in _FIXED and struct.calcsize(_FIXED[number]) == stop - start:
        result = struct.unpack(_FIXED[number], data[start:stop])[0]
        return float(result) if number < 7 else int(result)
    if number == 28:
        flags = []
        for _, kind, flag, first, last in fields(data, start, stop):
            packed = data[first : min(last, first + MAX_DIMS + 1)]
            flags += [bool(flag)] if kind == VARINT else [byte != 0 for byte in packed]
            if len(flags) > MAX_DIMS:
                raise WireError(f"involved_dim has more than {MAX_DIMS} entries")
        return tuple(flags)
    if wire == BYTES and number in (29, 31):
        return data[start:stop].decode("utf-8", "replace")
    raise WireError(f"an attribute has its value in field {number}, which is not one of the types read here")


def _integer(values: dict[bytes, str | int | float | tuple[bool, ...]], key: bytes, default: int) -> int:
    value = values.get(key, default)
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20:
        return int(value)
    if not isinstance(value, int):
        raise WireError(f"{key.decode()} must be a whole number, not {str(value)[:40]!r}")
    return value


def _comm_type(values: dict[bytes, str | int | float | tuple[bool, ...]], kind: int) -> str:
    if kind != COLLECTIVE:
        return ""
    number = _integer(values, b"comm_type", 0)
    if not 0 <= number < len(COMM_TYPES):
        raise WireError(f"comm_type {number} is not one of 0 to {len(COMM_TYPES) - 1}")
    return COMM_TYPES[number]


def encode(node: Node) -> bytes:
    """The message of a node without what `ref` points to, with the schema's types: uint64 sizes, int64 numbers, bool
    flags."""
    out = put_number(1, node.id) + put_bytes(2, node.name.encode()) + put_number(3, node.kind)
    if node.deps:
        out += put_bytes(5, b"".join(map(put_varint, node.deps)))
    if node.duration:
        out += put_number(7, max(round(node.duration / 1000), 1))
    out += _put(b"is_cpu_op", put_number(27, node.cpu))
    if node.kind == COMP:
        out += _put(b"num_ops", put_number(9, node.ops)) + _put(b"tensor_size", put_number(13, node.size))
    elif node.kind in (LOAD, STORE):
        out += _put(b"tensor_size", put_number(13, node.size))
    else:
        out += _put(b"comm_size", put_number(9, node.size))
    if node.kind == COLLECTIVE:
        out += _put(b"comm_type", put_number(9, COMM_TYPES.index(node.comm)))
    if node.dims:
        out += _put(b"involved_dim", put_bytes(28, put_bytes(1, bytes(node.dims))))
    return out


def encode_variable(variable: Mapping[str, str | int]) -> bytes:
    """The rest of a node's message: pg_name as a string, ranks and tags as int32.

    >>> decode(encode(Node(7, "x", SEND, size=20)) + encode_variable({"comm_dst": 3}))[1]
    {'pg_name': '', 'comm_dst': 3}
    """
    out = b""
    for key, value in variable.items():
        if isinstance(value, str):
            out += _put(key.encode(), put_bytes(29, value.encode())) if value else b""
        else:
            out += _put(key.encode(), put_number(7, value))
    return out


def _put(key: bytes, value: bytes) -> bytes:
    return put_bytes(10, put_bytes(1, key) + value)


def encode_file(messages: Iterable[bytes]) -> bytes:
    """A whole `.et` file: the metadata, then the nodes, each after its length."""
    parts = [put_bytes(1, VERSION.encode()), *messages]
    return b"".join(put_varint(len(part)) + part for part in parts)
