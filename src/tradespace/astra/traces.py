"""A folder of Chakra traces, one file per rank, read so that ranks that do the same share one program.

Files of equal ranks differ only in the values of a few attributes. A file is compared with those already read; if all
differing bytes lie in such values, only these are read. Otherwise equal messages are decoded once.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tradespace.astra.chakra import COLLECTIVE, RECV, SEND, Node, Span, decode
from tradespace.astra.wire import WireError, varint
from tradespace.errors import InputError

MAX_FILE_BYTES = 256 << 20
MAX_BYTES = 1 << 30
MAX_MESSAGE_BYTES = 16 << 20
MAX_NODES = 2_000_000
MAX_DEPENDENCIES = 4_000_000
NAME = re.compile(r"(.+)\.(\d{1,7})\.et(?:\.gz)?")

Comm = tuple[str, tuple[bool, ...]]  # communicator name ("" or "0": everybody), involved dims
Peer = tuple[int, int]  # peer rank, tag


@dataclass(frozen=True, eq=False)
class Program:
    """Nodes in ascending order of id; equal ones may share it.

    `parents` and `children` are indices of nodes. `shape` is one object for all programs that differ in ids and names
    only.
    """

    nodes: tuple[Node, ...]
    parents: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    shape: Hashable


@dataclass(frozen=True)
class Trace:
    """One rank: its program and what `Node.ref` points to."""

    program: Program
    comms: tuple[Comm, ...] = ()
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True)
class Template:
    """A file already read, with the places of the values that may differ: (key, slot, start, stop)."""

    data: NDArray[np.uint8]
    fixed: NDArray[np.bool_]
    places: tuple[tuple[str, int, int, int], ...]
    trace: Trace


class Reader:
    """Reads files one after the other and remembers what it has seen."""

    def __init__(self) -> None:
        self._decoded: dict[bytes, tuple[Node, dict[str, str | int], tuple[Span, ...]]] = {}
        self._same: dict[Node, Node] = {}
        self._placed: dict[tuple[int, int], Node] = {}
        self._programs: dict[tuple[int, ...], Program] = {}
        self._shapes: dict[Hashable, Hashable] = {}
        self._templates: dict[int, list[Template]] = {}
        self._dependencies = self._bytes = self._kept = 0

    def read(self, data: bytes, where: str) -> Trace:
        """Trace in the bytes of one file."""
        for template in self._templates.get(len(data), ()):
            trace = _like(template, data)
            if trace:
                return trace
        try:
            template = self._parse(data, where)
        except WireError as error:
            raise InputError(f"{where}: not a Chakra trace: {error}") from None
        if self._kept + len(data) <= MAX_FILE_BYTES and len(self._templates.get(len(data), ())) < 8:
            self._templates.setdefault(len(data), []).append(template)
            self._kept += len(data)
        return template.trace

    def _parse(self, data: bytes, where: str) -> Template:
        nodes: list[Node] = []
        comms: dict[Comm, int] = {}
        peers: dict[Peer, int] = {}
        places: list[tuple[str, int, int, int]] = []
        loose: list[tuple[int, int]] = []
        for start, message in _messages(data):
            base, variable, spans = self._node(message, len(nodes))
            slot = -1
            if base.kind == COLLECTIVE:
                slot = comms.setdefault((str(variable["pg_name"]), base.dims), len(comms))
            elif base.kind in (SEND, RECV):
                slot = peers.setdefault(_peer(base, variable), len(peers))
            node = self._placed.get((id(base), slot))
            if node is None:
                node = self._placed[id(base), slot] = replace(base, ref=slot) if slot >= 0 else base
            nodes.append(node)
            if len(nodes) > MAX_NODES:
                raise WireError(f"more than {MAX_NODES} nodes")
            for name, a, b in spans:
                loose.append((start + a, start + b))
                if _matters(name, base.kind):
                    places.append((name, slot, start + a, start + b))
        if not nodes:
            raise InputError(f"{where}: the trace has no nodes; an empty trace is not a finished one")
        trace = Trace(self._program(nodes, where), tuple(comms), tuple(peers))
        fixed = np.ones(len(data), dtype=bool)
        for a, b in loose:
            fixed[a:b] = False
        return Template(np.frombuffer(data, dtype=np.uint8), fixed, tuple(places), trace)

    def _node(self, message: bytes, index: int) -> tuple[Node, dict[str, str | int], tuple[Span, ...]]:
        known = self._decoded.get(message)
        if known is None:
            try:
                known = decode(message)
            except WireError as error:
                raise WireError(f"node {index + 1}: {error}") from None
            self._dependencies += len(known[0].deps)
            self._bytes += len(message)
            if len(self._decoded) >= MAX_NODES or self._dependencies > MAX_DEPENDENCIES or self._bytes > MAX_BYTES:
                raise WireError(
                    f"all ranks together have more than {MAX_NODES} different nodes, {MAX_DEPENDENCIES} "
                    "dependencies or 1 GiB of them"
                )
            known = (self._same.setdefault(known[0], known[0]), *known[1:])
            self._decoded[message] = known
        return known

    def _program(self, nodes: list[Node], where: str) -> Program:
        key = tuple(map(id, nodes))
        if key not in self._programs:
            self._programs[key] = program_of(nodes, where, self._shapes)
        return self._programs[key]


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(place, message) of every message but the first, the metadata."""
    at, end, first = 0, len(data), True
    while at < end:
        length, at = varint(data, at, end)
        if length > end - at:
            raise WireError(f"a message at byte {at} is said to have {length} bytes, {end - at} are left")
        if length > MAX_MESSAGE_BYTES:
            raise WireError(f"a message of {length} bytes at byte {at} is larger than 16 MiB")
        if not first:
            yield at, data[at : at + length]
        at, first = at + length, False


def program_of(nodes: Iterable[Node], where: str, shapes: dict[Hashable, Hashable]) -> Program:
    """Program of nodes in any order, refused where ASTRA-sim would wait forever for a dependency."""
    ordered = tuple(sorted(nodes, key=lambda node: node.id))
    index = {node.id: i for i, node in enumerate(ordered)}
    if len(index) < len(ordered):
        twice = next(a.id for a, b in pairwise(ordered) if a.id == b.id)
        raise InputError(f"{where}: node id {twice} is used twice; ids must be unique in a file")
    children: list[list[int]] = [[] for _ in ordered]
    for i, node in enumerate(ordered):
        for dep in node.deps:
            if dep not in index:
                raise InputError(
                    f"{where}: node {node.id} ({node.name[:60]}) depends on node {dep}, which is not in "
                    "the file: ASTRA-sim waits for it forever"
                )
            children[index[dep]].append(i)
    below = tuple(map(tuple, children))
    shape = (
        below,
        tuple(
            (node.kind, node.duration, node.cpu, node.ops, node.size, node.comm, node.dims, node.ref)
            for node in ordered
        ),
    )
    return Program(ordered, tuple(len(node.deps) for node in ordered), below, shapes.setdefault(shape, shape))


def _peer(node: Node, variable: dict[str, str | int]) -> Peer:
    key = "comm_dst" if node.kind == SEND else "comm_src"
    if key not in variable:
        raise WireError(f"node {node.id} has no {key}")
    return int(variable[key]), int(variable.get("comm_tag", 0))


def _matters(key: str, kind: int) -> bool:
    used = {COLLECTIVE: ("pg_name",), SEND: ("comm_dst", "comm_tag"), RECV: ("comm_src", "comm_tag")}
    return key in used.get(kind, ())


def _like(template: Template, data: bytes) -> Trace | None:
    """The trace of a file that differs from the template only in values that may differ, else None."""
    other = np.frombuffer(data, dtype=np.uint8)
    if bool(((other != template.data) & template.fixed).any()):
        return None
    comms: dict[int, str] = {slot: name for slot, (name, _) in enumerate(template.trace.comms)}
    peers: dict[tuple[int, bool], int] = {}
    seen: set[tuple[str, int]] = set()
    for key, slot, start, stop in template.places:
        if key == "pg_name":
            text = data[start:stop].decode("utf-8", "replace")
            if (key, slot) in seen and comms[slot] != text:
                return None
            comms[slot] = text
        else:
            try:
                value, after = varint(data, start, stop)
            except WireError:
                return None
            if after != stop or value >> 31 or peers.setdefault((slot, key == "comm_tag"), value) != value:
                return None
        seen.add((key, slot))
    named = tuple((comms[slot], dims) for slot, (_, dims) in enumerate(template.trace.comms))
    paired = tuple(
        (peers.get((slot, False), peer), peers.get((slot, True), tag))
        for slot, (peer, tag) in enumerate(template.trace.peers)
    )
    if len(set(named)) < len(named) or len(set(paired)) < len(paired):
        return None
    return Trace(template.trace.program, named, paired)


def file_bytes(path: Path) -> bytes:
    """Bytes of a trace, unpacked if it is gzip, refused beyond 256 MiB."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
            if data[:2] == b"\x1f\x8b":
                file.seek(0)
                with gzip.GzipFile(fileobj=file) as unpacked:
                    data = unpacked.read(MAX_FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read ({str(error)[:100]})") from None
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"{path}: larger than 256 MiB, more than one rank's trace may have")
    return data


def read_traces(folder: str | Path, npus: int) -> list[Trace]:
    """Traces NAME.0.et to NAME.(npus-1).et of a folder (`.gz` allowed)."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder; it must hold NAME.RANK.et, one file per rank")
    files: dict[int, Path] = {}
    names = set()
    for path in folder.iterdir():
        match = NAME.fullmatch(path.name)
        if match:
            if int(match[2]) in files or not path.is_file():
                raise InputError(f"{path}: a second file of the same rank, or not a regular file")
            names.add(match[1])
            files[int(match[2])] = path
    if len(names) != 1:
        found = f"traces named {', '.join(sorted(names)[:4])}" if names else "no NAME.RANK.et"
        raise InputError(f"{folder}: {found}; it must hold the files of exactly one NAME")
    missing = next((rank for rank in range(npus) if rank not in files), None)
    if missing is not None or len(files) != npus:
        raise InputError(
            f"{folder}: {len(files)} traces for {npus} NPUs"
            + (f"; rank {missing} is missing" if missing is not None else "")
        )
    reader = Reader()
    return [reader.read(file_bytes(files[rank]), str(files[rank])) for rank in range(npus)]
