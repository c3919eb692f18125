"""Who meets whom in a replay: every rank for itself, or one rank for each class of ranks that do the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradespace.astra.chakra import SEND, Node
from tradespace.astra.collective import Collective
from tradespace.astra.faults import warn
from tradespace.astra.replay import Asymmetric
from tradespace.astra.traces import Comm, Trace
from tradespace.errors import InputError
from tradespace.network.astra import COLLECTIVES, Network, System

Key = tuple[object, ...]


class Communicators:
    """Communicator names and involved dims, resolved to ranks."""

    def __init__(self, net: Network, system: System, groups: Mapping[str, tuple[int, ...]]) -> None:
        self.net, self.system, self.groups = net, system, groups
        self._lines: dict[Key, tuple[int, ...]] = {}
        self._collectives: dict[Key, Collective] = {}

    def find(self, rank: int, comm: Comm) -> tuple[Key, tuple[int, ...]]:
        """(key, ranks) of the communicator that `rank` means."""
        name, flags = comm
        if name in ("", "0"):
            name = ""
        else:
            members = self.groups.get(name)
            if members is None:
                raise InputError(
                    f"rank {rank}: communicator {name[:40]!r} is not in the communicator-group file (--comm-groups)"
                )
            if rank not in members:
                raise InputError(f"rank {rank} uses communicator {name[:40]!r}, of which it is no member")
            if len(members) < self.net.size:
                return ("group", name), members
        dims = self.dims(flags)
        base = rank
        for dim in dims:
            stride, size = self.net.stride(dim), self.net.dims[dim].size
            base -= rank // stride % size * stride
        key = (name, dims, base)
        if key not in self._lines:
            line = [base]
            for dim in dims:
                stride = self.net.stride(dim)
                line = [rank + i * stride for i in range(self.net.dims[dim].size) for rank in line]
            self._lines[key] = tuple(line)
        return key, self._lines[key]

    def dims(self, flags: tuple[bool, ...]) -> tuple[int, ...]:
        """Network dims that an involved_dim list selects; none given: all."""
        count = len(self.net.dims)
        if not flags:
            return tuple(range(count))
        if len(flags) < count or not any(flags[:count]):
            raise InputError(
                f"involved_dim {list(flags)[:10]} must have one entry per network dim ({count}), at least "
                "one of them true"
            )
        return tuple(dim for dim in range(count) if flags[dim])

    def collective(self, key: Key, members: tuple[int, ...], node: Node) -> Collective:
        """The collective of `node` on this communicator."""
        if node.comm not in COLLECTIVES:
            raise InputError(
                f"node {node.id} ({node.name[:60]}): {node.comm} is not supported by ASTRA-sim; use one "
                f"of {', '.join(COLLECTIVES)}, broadcast"
            )
        group = key[0] == "group"
        if len(members) == 1:
            warn(f"communicator {key[1]}: a group of one rank still costs one insertion")
        dims = () if group else self.dims(node.dims)
        full = (node.comm, node.size, members if group else dims)
        if full not in self._collectives:
            self._collectives[full] = Collective(
                self.net, self.system, node.comm, node.size, dims, members if group else None
            )
        return self._collectives[full]

    def shape(self, key: Key, members: tuple[int, ...]) -> Key:
        """What decides the cost of a communicator: its dims, or the paths between neighbours of its ring."""
        if key[0] != "group":
            return key[:2]
        if len(self.net.dims) == 1:
            return "offsets", *((rank - members[0]) % self.net.size for rank in members)
        return "ring", len(members), frozenset(map(self.net.path, members, members[1:] + members[:1]))


class Ranks:
    """Every rank is an actor."""

    def __init__(self, communicators: Communicators, traces: Sequence[Trace]) -> None:
        self._communicators, self._traces = communicators, traces
        self._found: dict[tuple[int, int], tuple[Key, tuple[int, ...]]] = {}

    def _find(self, actor: int, ref: int) -> tuple[Key, tuple[int, ...]]:
        if (actor, ref) not in self._found:
            self._found[actor, ref] = self._communicators.find(actor, self._traces[actor].comms[ref])
        return self._found[actor, ref]

    def collective(self, actor: int, node: Node) -> tuple[Key, tuple[int, ...]]:
        """Communicator of a node, and its ranks."""
        return self._find(actor, node.ref)

    def timed(self, actor: int, node: Node) -> Collective:
        """The collective of a node."""
        return self._communicators.collective(*self._find(actor, node.ref), node)

    def ends(self, timed: Collective, actors: tuple[int, ...], starts: list[int]) -> list[int]:
        """End of each rank."""
        return timed.ends(actors, starts)

    def message(self, actor: int, node: Node) -> tuple[Key, int]:
        """Key and time of a message."""
        peer, tag = peer_of(self._traces, actor, node.ref)
        src, dst = (actor, peer) if node.kind == SEND else (peer, actor)
        return (src, dst, tag, node.size), self._communicators.net.message(src, dst, node.size)


class Classes:
    """One rank stands for each class of ranks; its results hold for all of them."""

    def __init__(self, communicators: Communicators, traces: Sequence[Trace]) -> None:
        self._communicators, self._traces = communicators, traces
        self._found = [[communicators.find(rank, comm) for comm in trace.comms] for rank, trace in enumerate(traces)]
        self._slots = {
            (rank, key): slot for rank, found in enumerate(self._found) for slot, (key, _) in enumerate(found)
        }
        self._peer_slots = [{pair: slot for slot, pair in enumerate(trace.peers)} for trace in traces]
        self.of = self._refine()
        self.first = [self.of.index(number) for number in range(max(self.of) + 1)]

    def _refine(self) -> list[int]:
        """Coarsest classes in which equal ranks have equal programs and meet equal classes at equal cost."""
        shapes = {key: self._communicators.shape(key, members) for found in self._found for key, members in found}
        keys: list[object] = [
            (
                id(trace.program.shape),
                tuple(shapes[key] for key, _ in found),
                tuple(self._partner(rank, slot) for slot in range(len(trace.peers))),
            )
            for rank, (trace, found) in enumerate(zip(self._traces, self._found, strict=True))
        ]
        count = 0
        while True:
            numbers: dict[object, int] = {}
            of = [numbers.setdefault(key, len(numbers)) for key in keys]
            if len(numbers) == count:
                return of
            count = len(numbers)
            met: dict[Key, frozenset[tuple[int, int]]] = {}
            for found in self._found:
                for key, members in found:
                    if key not in met:
                        met[key] = frozenset((of[rank], self._slots.get((rank, key), -1)) for rank in members)
            keys = [
                (of[rank], tuple(met[key] for key, _ in found), tuple(of[peer] for peer, _ in trace.peers))
                for rank, (trace, found) in enumerate(zip(self._traces, self._found, strict=True))
            ]
            self._met = met

    def _partner(self, rank: int, slot: int) -> tuple[int, tuple[int, int]]:
        """(slot in which the peer knows this rank, path to it)."""
        peer, tag = peer_of(self._traces, rank, slot)
        partner = self._peer_slots[peer].get((rank, tag))
        if partner is None:
            raise Asymmetric
        return partner, self._communicators.net.path(rank, peer)

    def collective(self, actor: int, node: Node) -> tuple[object, tuple[int, ...]]:
        """Communicator of a node as the set of (class, slot) that meet there, and the classes."""
        met = self._met[self._found[self.first[actor]][node.ref][0]]
        return met, tuple(sorted({number for number, _ in met}))

    def timed(self, actor: int, node: Node) -> Collective:
        """The collective of a node."""
        return self._communicators.collective(*self._found[self.first[actor]][node.ref], node)

    def ends(self, timed: Collective, actors: tuple[int, ...], starts: list[int]) -> list[int]:
        """The common end of all classes that meet."""
        if not timed.alike or len(set(starts)) > 1:
            raise Asymmetric
        return [starts[0] + timed.together] * len(actors)

    def message(self, actor: int, node: Node) -> tuple[Key, int]:
        """Key (receiving class, its slot, bytes) and time of a message."""
        rank = self.first[actor]
        peer, tag = self._traces[rank].peers[node.ref]
        time = self._communicators.net.message(rank, peer, node.size)
        if node.kind == SEND:
            return (self.of[peer], self._peer_slots[peer][rank, tag], node.size), time
        return (actor, node.ref, node.size), time


def peer_of(traces: Sequence[Trace], rank: int, ref: int) -> tuple[int, int]:
    """(peer, tag), refused if there is no such rank."""
    peer, tag = traces[rank].peers[ref]
    if not 0 <= peer < len(traces):
        raise InputError(f"rank {rank} sends to or receives from rank {peer}, but ranks are 0 to {len(traces) - 1}")
    return peer, tag
