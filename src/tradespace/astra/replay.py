"""Replay of one iteration: per rank one compute, one communication and one CPU operation at a time.

Source: ASTRA-sim's workload layer as measured: at every completion all ready nodes are tried in ascending order of id;
a receive occupies nothing; a send ends when its message arrives; a collective starts on a rank as soon as that rank
issues it. A memory access occupies the communication slot. Times in whole ns.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tradespace.astra.chakra import COLLECTIVE, COMP, LOAD, METADATA, RECV, SEND, STORE, Node
from tradespace.astra.collective import Collective
from tradespace.astra.events import Clock
from tradespace.astra.side_files import RemoteMemory
from tradespace.astra.system_file import Machine
from tradespace.astra.traces import Program
from tradespace.errors import InputError

GPU, COMMUNICATION, CPU, NOTHING = range(4)
MAX_OPERATIONS = 20_000_000


class Asymmetric(Exception):  # noqa: N818 - a finding, not an error
    """The ranks of a class do not stay in step; every rank has to be simulated."""


class World(Protocol):
    """Who takes part in what: actors are ranks, or classes of ranks that do the same."""

    def collective(self, actor: int, node: Node) -> tuple[object, tuple[int, ...]]:
        """(name of the communicator, its actors)."""

    def timed(self, actor: int, node: Node) -> Collective:
        """The collective of a node."""

    def ends(self, timed: Collective, actors: tuple[int, ...], starts: list[int]) -> list[int]:
        """End of each actor."""

    def message(self, actor: int, node: Node) -> tuple[object, int]:
        """(key that a send and its receive share, ns on the way)."""


@dataclass
class Actor:
    """One rank at work."""

    program: Program
    missing: list[int]
    ready: list[list[int]] = field(default_factory=lambda: [[], [], [], []])
    busy: list[bool] = field(default_factory=lambda: [False] * 4)
    left: int = 0
    total: int = 0
    compute: int = 0
    communication: int = 0
    calls: dict[object, int] = field(default_factory=lambda: defaultdict(int))


@dataclass
class Meeting:
    """A collective that waits for its last rank."""

    node: Node
    starts: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # actor: time, index of its node, slot


class Replay:
    """The event loop over all actors."""

    def __init__(
        self, world: World, machine: Machine, memory: RemoteMemory | None, programs: Sequence[Program]
    ) -> None:
        if sum(len(program.nodes) for program in programs) > MAX_OPERATIONS:
            raise InputError(f"more than {MAX_OPERATIONS} operations over all ranks are not replayed one by one")
        self.clock = Clock()
        self.world, self.machine, self.memory = world, machine, memory
        self.actors = [Actor(program, list(program.parents), left=len(program.nodes)) for program in programs]
        self._meetings: dict[tuple[object, int], Meeting] = {}
        self._arrived: dict[object, int] = defaultdict(int)
        self._posted: dict[object, deque[tuple[int, int]]] = defaultdict(deque)
        self._free_at: dict[int, int] = {}

    def run(self) -> list[dict[str, int]]:
        """Times of every actor in ns."""
        for number, actor in enumerate(self.actors):
            for index, missing in enumerate(actor.missing):
                if not missing:
                    self._offer(actor, index)
            self.clock.after(0, self._issue, number)
        self.clock.run()
        for number, actor in enumerate(self.actors):
            if actor.left:
                raise InputError(self._stuck(number, actor))
        return [
            {
                "total": actor.total,
                "compute": actor.compute,
                "communication": actor.communication,
                "exposed": actor.total - actor.compute,
            }
            for actor in self.actors
        ]

    def _offer(self, actor: Actor, index: int) -> None:
        node = actor.program.nodes[index]
        slot = CPU if node.cpu else {COMP: GPU, RECV: NOTHING, METADATA: NOTHING}.get(node.kind, COMMUNICATION)
        if node.kind in (COMP, LOAD, STORE) and self._skipped(node):
            slot = NOTHING
        heapq.heappush(actor.ready[slot], index)

    def _skipped(self, node: Node) -> bool:
        return node.size == 0 and (node.kind != COMP or self.machine.roofline)

    def _issue(self, number: int) -> None:
        actor = self.actors[number]
        while True:
            heads = [(ready[0], slot) for slot, ready in enumerate(actor.ready) if ready and not actor.busy[slot]]
            if not heads:
                return
            index, slot = min(heads)
            heapq.heappop(actor.ready[slot])
            node = actor.program.nodes[index]
            if slot != NOTHING:
                actor.busy[slot] = True
            if node.kind == METADATA or (node.kind in (COMP, LOAD, STORE) and self._skipped(node)):
                self._retire(actor, index)
            elif node.kind == COMP:
                self._wait(number, index, slot, self._compute_time(node))
            elif node.kind == COLLECTIVE:
                self._join(number, index, slot, node)
            elif node.kind == SEND:
                key, time = self.world.message(number, node)
                self.clock.after(time, self._sent, number, index, slot, time, key)
            elif node.kind == RECV:
                self._receive(number, index, self.world.message(number, node)[0])
            else:
                self._wait(number, index, slot, self._access_time(number, node))

    def _retire(self, actor: Actor, index: int) -> None:
        actor.left -= 1
        actor.total = self.clock.now
        for child in actor.program.children[index]:
            actor.missing[child] -= 1
            if not actor.missing[child]:
                self._offer(actor, child)

    def _wait(self, number: int, index: int, slot: int, time: int) -> None:
        self.clock.after(time, self._done, number, index, slot, time)

    def _done(self, number: int, index: int, slot: int, time: int) -> None:
        actor = self.actors[number]
        if slot == GPU:
            actor.compute += time
        elif slot == COMMUNICATION and actor.program.nodes[index].kind in (SEND, COLLECTIVE):
            actor.communication += time
        actor.busy[slot] = False
        self._retire(actor, index)
        self._issue(number)

    def _compute_time(self, node: Node) -> int:
        if not self.machine.roofline:
            return node.duration or 1
        memory, peak = self.machine.system.memory_bandwidth, self.machine.peak
        if memory is None or peak is None or node.ops <= 0 or node.size < 0:
            raise InputError(
                f"node {node.id} ({node.name[:60]}): the roofline needs num_ops and tensor_size above 0; "
                f"ASTRA-sim divides by zero on num_ops = {node.ops}, tensor_size = {node.size}"
            )
        performance = min(memory * 1e9 * (node.ops / node.size), peak)
        return int(node.ops / performance * 1e9)

    def _access_time(self, number: int, node: Node) -> int:
        if self.memory is None or self.memory.kind == "NO_MEMORY_EXPANSION":
            raise InputError(
                f"node {node.id} ({node.name[:60]}) accesses remote memory, but no memory file with an "
                "expansion is given (--memory)"
            )
        time, now = self.memory.access(node.size), self.clock.now
        server = self.memory.server(number)
        if server is None:
            return time
        start = max(self._free_at.get(server, 0), now)
        self._free_at[server] = start + time
        return start + time - now

    def _sent(self, number: int, index: int, slot: int, time: int, key: object) -> None:
        self._done(number, index, slot, time)
        if self._posted[key]:
            receiver, at = self._posted[key].popleft()
            self._done(receiver, at, NOTHING, 0)
        else:
            self._arrived[key] += 1

    def _receive(self, number: int, index: int, key: object) -> None:
        if self._arrived[key]:
            self._arrived[key] -= 1
            self.clock.after(0, self._done, number, index, NOTHING, 0)
        else:
            self._posted[key].append((number, index))

    def _join(self, number: int, index: int, slot: int, node: Node) -> None:
        if node.comm == "broadcast":
            self._wait(number, index, slot, node.duration or 1)
            return
        name, actors = self.world.collective(number, node)
        call = self.actors[number].calls[name]
        self.actors[number].calls[name] += 1
        meeting = self._meetings.setdefault((name, call), Meeting(node))
        if (meeting.node.comm, meeting.node.size) != (node.comm, node.size):
            other = meeting.node
            raise InputError(
                f"node {node.id} ({node.name[:60]}): collective {call + 1} on this communicator is "
                f"{node.comm} of {node.size} bytes here and {other.comm} of {other.size} bytes on another "
                f"rank (node {other.id}): ASTRA-sim waits forever"
            )
        meeting.starts[number] = self.clock.now, index, slot
        if len(meeting.starts) < len(actors):
            return
        del self._meetings[name, call]
        timed = self.world.timed(number, node)
        starts = [meeting.starts[actor][0] for actor in actors]
        for actor, start, end in zip(actors, starts, self.world.ends(timed, actors, starts), strict=True):
            # A rank's end is scheduled by its last insertion, which decides among events of the same nanosecond.
            _, at, held = meeting.starts[actor]
            self.clock.after(end - timed.last - self.clock.now, self._ending, actor, at, held, end - start, timed.last)

    def _ending(self, number: int, index: int, slot: int, time: int, last: int) -> None:
        self.clock.after(last, self._done, number, index, slot, time)

    def _stuck(self, number: int, actor: Actor) -> str:
        for meeting in self._meetings.values():
            rank, (_, index, _) = next(iter(meeting.starts.items()))
            node = self.actors[rank].program.nodes[index]
            return (
                f"rank {rank}, node {node.id} ({node.name[:60]}): {node.comm} that not all ranks of its "
                "communicator issue: ASTRA-sim waits forever"
            )
        for waiting in self._posted.values():
            for rank, index in waiting:
                node = self.actors[rank].program.nodes[index]
                return (
                    f"rank {rank}, node {node.id} ({node.name[:60]}): no rank sends what this receive waits for "
                    "(source, tag and bytes must match): ASTRA-sim waits forever"
                )
        blocked = next(node for node, missing in zip(actor.program.nodes, actor.missing, strict=True) if missing)
        return (
            f"rank {number}, node {blocked.id} ({blocked.name[:60]}): {actor.left} nodes depend on each other in a "
            "circle: ASTRA-sim waits forever"
        )
