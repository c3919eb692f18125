"""One training step as the operations of every rank: what the exporter writes and the replay runs.

Every operation has an id, unique on its rank, and the ids of the operations that must end before it starts; among ready
operations the lowest id goes first. Units: bytes, FLOP, seconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from tradespace.astra.chakra import COLLECTIVE, COMP, LOAD, RECV, SEND, STORE, Node
from tradespace.astra.traces import Comm, Peer, Program, Trace, program_of
from tradespace.errors import InputError
from tradespace.network.astra import COLLECTIVES


@dataclass(frozen=True, slots=True)
class Compute:
    """A kernel: its FLOPs and bytes for ASTRA-sim's roofline, its `duration` (s) for a system without one."""

    id: int
    name: str
    after: tuple[int, ...] = ()
    flops: int = 0
    bytes: int = 0
    duration: float = 0.0


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of `group` (ranks in ring order; None: all ranks, on the network dims flagged in `dims`, if any).

    `bytes` is the full buffer of a rank, for an all-gather the shard that it puts in. `kind` is one of all_reduce,
    reduce_scatter, all_gather, all_to_all.
    """

    id: int
    name: str
    kind: str
    bytes: int
    group: tuple[int, ...] | None = None
    after: tuple[int, ...] = ()
    dims: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Send:
    """A message to `peer`; its receive has the same tag and bytes."""

    id: int
    name: str
    peer: int
    bytes: int
    tag: int = 0
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Receive:
    """The message from `peer` with this tag and these bytes."""

    id: int
    name: str
    peer: int
    bytes: int
    tag: int = 0
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteAccess:
    """A load from remote memory, or a store to it."""

    id: int
    name: str
    bytes: int
    store: bool = False
    after: tuple[int, ...] = ()


Operation = Compute | Collective | Send | Receive | RemoteAccess


@dataclass(frozen=True)
class Iteration:
    """Operations of every rank; ranks that do exactly the same may share one tuple."""

    ranks: tuple[tuple[Operation, ...], ...]


def to_traces(iteration: Iteration) -> tuple[list[Trace], dict[str, tuple[int, ...]]]:
    """(traces, communicator groups by name) of an iteration.

    >>> step = (Compute(1, "matmul", duration=1e-6), Collective(2, "reduce", "all_reduce", 1024, (0, 1), (1,)))
    >>> traces, groups = to_traces(Iteration((step,) * 4))
    >>> groups, traces[0].program is traces[3].program
    ({'1': (0, 1)}, True)
    """
    groups: dict[tuple[int, ...], str] = {}
    same: dict[Node, Node] = {}
    programs: dict[tuple[int, ...], Program] = {}
    shapes: dict[Hashable, Hashable] = {}
    known: dict[int, Trace] = {}
    traces = []
    for rank, operations in enumerate(iteration.ranks):
        trace = known.get(id(operations))
        if trace is None:
            comms: dict[Comm, int] = {}
            peers: dict[Peer, int] = {}
            nodes = []
            for operation in operations:
                node = _node(operation, rank, groups, comms, peers)
                nodes.append(same.setdefault(node, node))
            key = tuple(map(id, nodes))
            if key not in programs:
                programs[key] = program_of(nodes, f"rank {rank}", shapes)
            trace = known[id(operations)] = Trace(programs[key], tuple(comms), tuple(peers))
        traces.append(trace)
    return traces, {name: members for members, name in groups.items()}


def _node(
    operation: Operation, rank: int, groups: dict[tuple[int, ...], str], comms: dict[Comm, int], peers: dict[Peer, int]
) -> Node:
    after = tuple(dict.fromkeys(operation.after))
    size = int(operation.bytes)
    if isinstance(operation, Compute):
        return Node(
            operation.id,
            operation.name,
            COMP,
            after,
            round(operation.duration * 1e9),
            ops=int(operation.flops),
            size=size,
        )
    if isinstance(operation, RemoteAccess):
        return Node(operation.id, operation.name, STORE if operation.store else LOAD, after, size=size)
    if isinstance(operation, Collective):
        if operation.kind not in COLLECTIVES:
            known = ", ".join(COLLECTIVES)
            raise InputError(f"rank {rank}, {operation.name}: {operation.kind!r} is not one of {known}")
        group = operation.group
        name = "" if group is None else groups.setdefault(group, str(len(groups) + 1))
        ref = comms.setdefault((name, operation.dims), len(comms))
        return Node(
            operation.id,
            operation.name,
            COLLECTIVE,
            after,
            size=size,
            comm=operation.kind,
            dims=operation.dims,
            ref=ref,
        )
    ref = peers.setdefault((operation.peer, operation.tag), len(peers))
    return Node(operation.id, operation.name, SEND if isinstance(operation, Send) else RECV, after, size=size, ref=ref)


def variable_of(node: Node, trace: Trace, rank: int) -> Mapping[str, str | int]:
    """The attributes of a node that its rank's tables hold."""
    if node.kind == COLLECTIVE:
        return {"pg_name": trace.comms[node.ref][0]}
    if node.kind in (SEND, RECV):
        peer, tag = trace.peers[node.ref]
        src, dst = (rank, peer) if node.kind == SEND else (peer, rank)
        return {"comm_src": src, "comm_dst": dst, "comm_tag": tag}
    return {}
