"""Every rank and every message of one collective, event by event.

Needed where ranks do not all fare alike: trees, contention on links, ranks that start at different times.
Events of one nanosecond run in the order in which they were scheduled.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from tradespace.astra.trees import tree
from tradespace.errors import InputError
from tradespace.network.astra import Network, Phase, Program, System, program

Key = tuple[int, int, int, int, int]  # chunk, leg, source, destination, bytes


class DeadlockError(InputError):
    """Ranks that wait for each other forever."""


class Clock:
    """The event queue."""

    def __init__(self) -> None:
        self.now = 0
        self._slots: dict[int, list[tuple[Callable[..., None], tuple[Any, ...]]]] = {}
        self._times: list[int] = []

    def after(self, delay: int, call: Callable[..., None], *args: Any) -> None:
        """Run `call(*args)` in `delay` ns."""
        time = self.now + delay
        slot = self._slots.get(time)
        if slot is None:
            slot = self._slots[time] = []
            heapq.heappush(self._times, time)
        slot.append((call, args))

    def run(self) -> None:
        """Run until nothing is left to happen."""
        while self._times:
            self.now = self._times[0]
            slot = self._slots[self.now]
            for call, args in slot:  # grows while it runs
                call(*args)
            heapq.heappop(self._times)
            del self._slots[self.now]


class Free:
    """Messages that never meet (the congestion-unaware backend)."""

    def __init__(self, clock: Clock, net: Network) -> None:
        self._clock, self._net = clock, net

    def send(self, src: int, dst: int, size: int, arrive: Callable[..., None], *args: Any) -> None:
        """Call `arrive(*args)` when the message is there."""
        self._clock.after(self._net.message(src, dst, size), arrive, *args)


class Links:
    """Directed FIFO links, whole messages stored and forwarded at every hop (the congestion-aware backend)."""

    def __init__(self, clock: Clock, net: Network) -> None:
        self._clock, self._dim = clock, net.dims[0]
        self._waiting: dict[tuple[int, int], deque[Any] | None] = {}
        self._times: dict[int, tuple[int, int]] = {}

    def send(self, src: int, dst: int, size: int, arrive: Callable[..., None], *args: Any) -> None:
        """Call `arrive(*args)` when the message has passed every link of its route."""
        if size not in self._times:
            transfer = self._dim.transfer(size)
            self._times[size] = int(transfer), int(self._dim.latency + transfer)
        self._hop(self._route(src, dst), 0, size, arrive, args)

    def _route(self, src: int, dst: int) -> list[int]:
        n, kind = self._dim.size, self._dim.kind
        if kind == "Switch":
            return [src, n, dst]
        if kind == "FullyConnected":
            return [src, dst]
        clockwise = (dst - src) % n
        step = 1 if clockwise <= n - clockwise else -1
        return [(src + step * i) % n for i in range(min(clockwise, n - clockwise) + 1)]

    def _hop(self, route: list[int], at: int, size: int, arrive: Callable[..., None], args: tuple[Any, ...]) -> None:
        if at == len(route) - 1:
            arrive(*args)
            return
        link = route[at], route[at + 1]
        waiting = self._waiting.get(link)
        if waiting is not None:
            waiting.append((route, at, size, arrive, args))
            return
        self._waiting[link] = deque()
        self._transmit(link, route, at, size, arrive, args)

    def _transmit(
        self,
        link: tuple[int, int],
        route: list[int],
        at: int,
        size: int,
        arrive: Callable[..., None],
        args: tuple[Any, ...],
    ) -> None:
        busy, there = self._times[size]
        self._clock.after(there, self._hop, route, at + 1, size, arrive, args)
        self._clock.after(busy, self._release, link)

    def _release(self, link: tuple[int, int]) -> None:
        waiting = self._waiting[link]
        if waiting:
            self._transmit(link, *waiting.popleft())
        else:
            self._waiting[link] = None


class Mailbox:
    """Pairs arrived messages with posted receives of the same key, first come first served."""

    def __init__(self) -> None:
        self._arrived: dict[Key, int] = defaultdict(int)
        self._posted: dict[Key, deque[Callable[[], None]]] = defaultdict(deque)

    def arrive(self, key: Key) -> None:
        """A message is there: complete the first receive that waits for it."""
        if self._posted[key]:
            self._posted[key].popleft()()
        else:
            self._arrived[key] += 1

    def post(self, key: Key, done: Callable[[], None]) -> None:
        """A rank is ready to receive: complete at once if the message is there."""
        if self._arrived[key]:
            self._arrived[key] -= 1
            done()
        else:
            self._posted[key].append(done)


class PacketRank:
    """One rank in one phase of ring, direct or halvingDoubling (see `Program`)."""

    def __init__(self, run: Run, rank: int, chunk: int, leg: int, phase: Phase) -> None:
        self.run, self.rank, self.chunk, self.leg, self.phase = run, rank, chunk, leg, phase
        self.program: Program = program(phase.algorithm, phase.collective, phase.scope.size, phase.size)
        self.packets = [(peer, size) for peer, size, count in self.program.steps for _ in range(count)]
        self.here = phase.scope.position(rank)
        self.inserted = self.sent = self.received = self.free = 0

    def start(self) -> None:
        """Begin the phase at this rank."""
        for _ in range(self.program.window):
            self._insert()

    def _insert(self) -> None:
        delay = self.phase.delay
        if self.program.does_reduce(self.inserted):
            delay += self.run.system.reduction(self.packets[min(self.inserted, len(self.packets) - 1)][1])
        self.inserted += 1
        self.run.clock.after(delay, self._inserted)

    def _inserted(self) -> None:
        self.free += 1
        gate = self.program.gate
        while self.free and self.sent < len(self.packets):
            if gate and self.sent >= gate and self.received < gate:
                break
            self._send(*self.packets[self.sent])
        if self.sent == len(self.packets) and self.free == self.program.window:
            self.run.finish(self.rank, self.chunk)

    def _send(self, peer: int, size: int) -> None:
        scope, rank, here = self.phase.scope, self.rank, self.here
        to, source = (here + peer) % scope.size, (here - peer) % scope.size
        if self.program.xor:
            to = source = here ^ peer
        self.sent, self.free = self.sent + 1, self.free - 1
        self.run.send(self, scope.rank(rank, to), size)
        self.run.receive(self, scope.rank(rank, source), size, self._received)

    def _received(self) -> None:
        self.received += 1
        self._insert()


class TreeRank:
    """One rank in one phase of doubleBinaryTree."""

    def __init__(self, run: Run, rank: int, chunk: int, leg: int, phase: Phase) -> None:
        self.run, self.rank, self.chunk, self.leg, self.phase = run, rank, chunk, leg, phase
        scope = phase.scope
        parent, children = tree(scope.position(rank), scope.size, top=chunk % 2 == 0)
        self.parent = None if parent is None else scope.rank(rank, parent)
        self.children = [scope.rank(rank, child) for child in children]
        self.missing = len(self.children)

    def start(self) -> None:
        """Begin the phase at this rank."""
        if not self.children:
            self.run.clock.after(self.phase.delay, self._up)
        for child in self.children:
            self.run.receive(self, child, self.phase.size, self._from_child)

    def _from_child(self) -> None:
        delay = self.phase.delay + self.run.system.reduction(self.phase.size)
        self.run.clock.after(delay, self._reduced)

    def _reduced(self) -> None:
        self.missing -= 1
        if not self.missing:
            self._up()

    def _up(self) -> None:
        if self.parent is None:
            self._down()
            return
        self.run.send(self, self.parent, self.phase.size)
        self.run.receive(self, self.parent, self.phase.size, self._from_parent)

    def _from_parent(self) -> None:
        delay = self.phase.delay + (self.run.system.reduction(self.phase.size) if self.children else 0)
        self.run.clock.after(delay, self._down)

    def _down(self) -> None:
        for child in self.children:
            self.run.send(self, child, self.phase.size)
        self.run.finish(self.rank, self.chunk)


class Run:
    """One collective over `ranks` that start at `starts`; `chunks[i]` is the plan of chunk i."""

    def __init__(self, net: Network, system: System, chunks: Sequence[Sequence[Phase]], servers: int) -> None:
        self.clock = Clock()
        self.system, self.chunks, self.servers = system, chunks, servers
        self._transport: Free | Links = Links(self.clock, net) if net.aware else Free(self.clock, net)
        self._mail = Mailbox()
        self._legs: dict[tuple[int, int], int] = {}
        self._waiting: dict[tuple[int, tuple[int, int]], deque[int]] = defaultdict(deque)
        self._busy: dict[tuple[int, tuple[int, int]], int] = defaultdict(int)
        self._left: dict[int, int] = {}
        self.ends: dict[int, int] = {}

    def times(self, ranks: Sequence[int], starts: Sequence[int]) -> list[int]:
        """End (ns) of each rank that starts at the given time."""
        for rank, start in zip(ranks, starts, strict=True):
            self.clock.after(start, self._enter, rank)
        self.clock.run()
        if len(self.ends) < len(ranks):
            raise DeadlockError(
                "ranks take their chunks in different orders and wait for each other forever; use the ascending "
                "order of dims, or more even starts"
            )
        return [self.ends[rank] for rank in ranks]

    def _enter(self, rank: int) -> None:
        self._left[rank] = len(self.chunks)
        for chunk, legs in enumerate(self.chunks):
            self._legs[rank, chunk] = 0
            self._waiting[rank, legs[0].queue].append(chunk)
            self._refill(rank, legs[0].queue)

    def _refill(self, rank: int, queue: tuple[int, int]) -> None:
        waiting = self._waiting[rank, queue]
        while waiting and self._busy[rank, queue] < self.servers:
            self._busy[rank, queue] += 1
            chunk = waiting.popleft()
            leg = self._legs[rank, chunk]
            phase = self.chunks[chunk][leg]
            kind = TreeRank if phase.algorithm == "doubleBinaryTree" else PacketRank
            kind(self, rank, chunk, leg, phase).start()

    def finish(self, rank: int, chunk: int) -> None:
        """A rank is done with a phase: next dim's queue, then the freed server, then the next dim."""
        leg = self._legs[rank, chunk]
        queue = self.chunks[chunk][leg].queue
        self._busy[rank, queue] -= 1
        self._legs[rank, chunk] = leg + 1
        following = self.chunks[chunk][leg + 1].queue if leg + 1 < len(self.chunks[chunk]) else None
        if following is not None:
            self._waiting[rank, following].append(chunk)
        else:
            self._left[rank] -= 1
            if not self._left[rank]:
                self.ends[rank] = self.clock.now
        self._refill(rank, queue)
        if following is not None:
            self._refill(rank, following)

    def send(self, sender: PacketRank | TreeRank, dst: int, size: int) -> None:
        """A message of a rank's phase; its arrival completes the matching receive."""
        key = sender.chunk, sender.leg, sender.rank, dst, size
        self._transport.send(sender.rank, dst, size, self._mail.arrive, key)

    def receive(self, receiver: PacketRank | TreeRank, src: int, size: int, done: Callable[[], None]) -> None:
        """Wait for the message of the same phase from `src`."""
        self._mail.post((receiver.chunk, receiver.leg, src, receiver.rank, size), done)
