"""The protobuf wire format, as little of it as Chakra traces need; no length or number from a file is trusted.

Source: the encoding page of the Protocol Buffers documentation: a field is a varint of number << 3 | wire type,
then a varint (0), eight bytes (1), a length and bytes (2) or four bytes (5).
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are no protobuf message; the caller adds which file and message."""


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(value, position after it) of the varint at `at`; at most ten bytes, 64 bits.

    >>> varint(b"\\xac\\x02", 0, 2)
    (300, 2)
    """
    value = shift = 0
    while True:
        if at >= end:
            raise WireError("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise WireError("a number has more than ten bytes")


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(field number, wire type, value or 0, start, stop) of each field of the message in data[at:end].

    >>> list(fields(b"\\x08\\x05\\x12\\x01x", 0, 5))
    [(1, 0, 5, 1, 2), (2, 2, 0, 4, 5)]
    """
    while at < end:
        key = data[at]  # most numbers have one byte: a call for the others only
        key, at = (key, at + 1) if key < 128 else varint(data, at, end)
        number, kind = key >> 3, key & 7
        value, start = 0, at
        if kind == VARINT:
            value, at = varint(data, at, end)
        elif kind == BYTES:
            length = data[at] if at < end else 128
            length, start = (length, at + 1) if length < 128 else varint(data, at, end)
            at = start + length
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"wire type {kind} is not one that is in use")
        if at > end:
            raise WireError("a field is longer than its message")
        if not number:
            raise WireError("field number 0")
        yield number, kind, value, start, at


def signed(value: int) -> int:
    """A varint read as int64."""
    return value - (1 << 64) if value >> 63 else value


def zigzag(value: int) -> int:
    """A varint read as sint64.

    >>> zigzag(1), zigzag(2)
    (-1, 1)
    """
    return value >> 1 ^ -(value & 1)


def put_varint(value: int) -> bytes:
    """Bytes of a varint; a negative one as its 64-bit two's complement.

    >>> put_varint(300)
    b'\\xac\\x02'
    """
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def put_number(number: int, value: int) -> bytes:
    """A varint field."""
    return put_varint(number << 3) + put_varint(value)


def put_bytes(number: int, value: bytes) -> bytes:
    """A field of bytes, text or an inner message."""
    return put_varint(number << 3 | BYTES) + put_varint(len(value)) + value
