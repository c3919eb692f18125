"""ASTRA-sim's analytical network: message cost, phases of a collective, and their job shop, in whole nanoseconds.

Source of every rule: the published behaviour of `astra-sim/astra-sim` and `astra-sim/astra-network-analytical`
(Won et al., "ASTRA-sim 2.0", arXiv 2303.14006; Rashidi et al., "Themis", arXiv 2110.04478), re-measured row by row.
Here live the rules for ranks that all behave alike; `tradespace.astra.events` simulates ranks that do not.

Units: bytes; nanoseconds (ASTRA-sim's cycle); network bandwidth in GB/s of 2**30 bytes per directed link; local
memory bandwidth in GB/s of 1e9 bytes. These are ASTRA-sim's own units: rounding happens in them.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all")
TOPOLOGIES = ("Ring", "FullyConnected", "Switch")
GROUP_DELAY = 10  # ns: what an inner communicator pays in place of the endpoint delay


@dataclass(frozen=True)
class Dim:
    """One network dim. `fixed` is a cost per message (ns) that only version-1 networks have."""

    kind: str
    size: int
    bandwidth: float
    latency: float
    fixed: float = 0.0

    def hops(self, src: int, dst: int) -> int:
        """Links that a message between two positions crosses (a switch counts as two)."""
        if self.kind == "Ring":
            distance = abs(src - dst)
            return min(distance, self.size - distance)
        return 2 if self.kind == "Switch" else 1

    def transfer(self, size: int) -> float:
        """ns to push `size` bytes into one link."""
        return size / (self.bandwidth * 2**30 / 1e9)


@dataclass(frozen=True)
class MemoryFloor:
    """Version-1 networks: no message is faster than `scale` x (latency ns + bytes / bandwidth)."""

    scale: float
    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Network:
    """Dims, the first one fastest in the rank number: rank = sum of position x product of the sizes before.

    A message is charged on one dim alone: the lowest in which the two ranks differ (`highest`: version 1).
    `aware`: the congestion-aware backend, whose messages are stored and forwarded whole at every hop.

    >>> net = Network((Dim("Ring", 4, 300, 100), Dim("Switch", 4, 50, 1000)))
    >>> net.message(0, 4, 1 << 20), net.message(0, 5, 1 << 20)
    (21531, 3355)
    """

    dims: tuple[Dim, ...]
    highest: bool = False
    floor: MemoryFloor | None = None
    aware: bool = False

    @property
    def size(self) -> int:
        """Number of NPUs."""
        return math.prod(dim.size for dim in self.dims)

    def stride(self, index: int) -> int:
        """Distance in rank numbers between neighbours on dim `index`."""
        return math.prod(dim.size for dim in self.dims[:index])

    def path(self, src: int, dst: int) -> tuple[int, int]:
        """(dim that pays, links crossed on it) of a message; (0, 0) to oneself."""
        stride, chosen = 1, (0, 0)
        for index, dim in enumerate(self.dims):
            a, b = src // stride % dim.size, dst // stride % dim.size
            stride *= dim.size
            if a != b:
                chosen = index, dim.hops(a, b)
                if not self.highest:
                    break
        return chosen

    def message(self, src: int, dst: int, size: int) -> int:
        """ns of one message without contention: floor(hops x latency + bytes / bandwidth)."""
        index, hops = self.path(src, dst)
        if not hops:
            return 0
        dim = self.dims[index]
        if self.aware:
            return hops * int(dim.latency + dim.transfer(size))
        time = hops * dim.latency + dim.transfer(size) + dim.fixed
        if self.floor:
            memory = self.floor.latency + size / (self.floor.bandwidth * 2**30 / 1e9)
            time = max(time, self.floor.scale * memory)
        return int(time)


@dataclass(frozen=True)
class System:
    """What ASTRA-sim's system file says about collectives. `algorithms[collective]` names one algorithm per dim."""

    algorithms: Mapping[str, tuple[str, ...]]
    endpoint_delay: int = 10
    memory_bandwidth: float | None = None
    chunks: int = 1
    active: int = 1
    queues: int = 1
    optimization: str = "localBWAware"
    order: str = "ascending"

    def reduction(self, size: int) -> int:
        """ns to reduce `size` bytes: two reads and one write of local memory, each rounded down."""
        if self.memory_bandwidth is None:
            raise ValueError("a reduction needs local-mem-bw")
        return 3 * int(size / (self.memory_bandwidth * 1e9) * 1e9)


@dataclass(frozen=True)
class Scope:
    """The ranks of a phase: every `stride`-th of `size` positions, or the listed `members` in their order."""

    size: int
    stride: int = 1
    members: tuple[int, ...] | None = None

    def position(self, rank: int) -> int:
        """Position of `rank` among its peers."""
        return self.members.index(rank) if self.members else rank // self.stride % self.size

    def rank(self, near: int, position: int) -> int:
        """Rank at `position` among the peers of rank `near`."""
        if self.members:
            return self.members[position]
        return near + (position - near // self.stride % self.size) * self.stride


@dataclass(frozen=True)
class Phase:
    """One collective of one chunk of `size` bytes on one scope; `queue` is the FIFO in which it waits."""

    collective: str
    algorithm: str
    size: int
    scope: Scope
    queue: tuple[int, int]
    delay: int

    @property
    def out(self) -> int:
        """Bytes that the chunk has afterwards."""
        factor = self.scope.size
        return {"reduce_scatter": self.size // factor, "all_gather": self.size * factor}.get(self.collective, self.size)


@dataclass(frozen=True)
class Program:
    """What one rank of a packet algorithm does: at most `window` packets in flight, `steps` of (peer, bytes, count).

    The peer is a shift of the position (`xor`: a mask). Insertions come in cycles of `window` that do not reduce and
    `cycle - window` that do, if `reduces` says so for this cycle ("all", "even" or "none"). `gate`: a direct
    all-reduce starts no packet of its second half before that many messages have come in.
    """

    window: int
    steps: tuple[tuple[int, int, int], ...]
    cycle: int
    reduces: str
    xor: bool = False
    gate: int = 0

    def does_reduce(self, insertion: int) -> bool:
        """Whether the insertion of this number (from 0) passes the reduction."""
        turn, place = divmod(insertion, self.cycle)
        return place >= self.window and (self.reduces == "all" or (self.reduces == "even" and turn % 2 == 0))


def window(algorithm: str, size: int) -> int:
    """Packets in flight: all peers for `direct`, at most W for `directW`, one for the others."""
    if not algorithm.startswith("direct"):
        return 1
    return min(int(algorithm[6:] or size), size - 1)


@lru_cache(maxsize=64)
def program(algorithm: str, collective: str, n: int, size: int) -> Program:
    """Packets of ring, direct and halvingDoubling for one chunk of `size` bytes over `n` ranks.

    >>> program("ring", "all_reduce", 4, 4096).steps
    ((1, 1024, 6),)
    >>> program("halvingDoubling", "reduce_scatter", 8, 4096).steps
    ((1, 2048, 1), (2, 1024, 1), (4, 512, 1))
    """
    reduces = {"all_reduce": "even", "reduce_scatter": "all"}.get(collective, "none")
    piece = size if collective == "all_gather" else size // n
    halves = 2 if collective == "all_reduce" else 1
    if algorithm == "halvingDoubling" and collective != "all_to_all":
        log = n.bit_length() - 1
        if collective == "all_gather":
            steps = tuple((n >> (k + 1), size << k, 1) for k in range(log))
        else:
            steps = tuple((1 << k, size >> (k + 1), 1) for k in range(log))
            steps += steps[::-1] if halves == 2 else ()
        return Program(1, steps, max(log, 1), reduces, xor=True)
    if algorithm.startswith("direct"):
        width = window(algorithm, n)
        steps = tuple((k, piece, 1) for k in range(1, n)) * halves
        return Program(width, steps, 2 * width, reduces, gate=n - 1 if halves == 2 else 0)
    count = n * (n - 1) // 2 if collective == "all_to_all" else halves * (n - 1)
    return Program(1, ((1, piece, count),), n, reduces)


def phase_time(net: Network, system: System, phase: Phase) -> tuple[int, int]:
    """(duration, its last insertion) in ns of a phase that all ranks start together and in which all fare alike."""
    steps = program(phase.algorithm, phase.collective, phase.scope.size, phase.size)
    near = phase.scope.rank(0, 0)

    def cost(peer: int, size: int) -> int:
        return net.message(near, phase.scope.rank(near, peer), size)

    if steps.window > 1:
        return _windowed(steps, cost, phase.delay, system.reduction)
    time, insertion, size = 0, 0, 0
    for peer, size, count in steps.steps:
        time += count * (cost(peer, size) + phase.delay)
        if steps.reduces != "none":
            time += system.reduction(size) * sum(map(steps.does_reduce, range(insertion, insertion + count)))
        insertion += count
    last = phase.delay + (system.reduction(size) if steps.does_reduce(insertion) and steps.reduces != "none" else 0)
    return time + last, last


def _windowed(
    steps: Program, cost: Callable[[int, int], int], delay: int, reduction: Callable[[int], int]
) -> tuple[int, int]:
    """One rank's direct phase: what it sends to i+k reaches i+k exactly when i-k's packet reaches it."""
    packets = [(cost(peer, size), size) for peer, size, _ in steps.steps]
    size = packets[-1][1]
    events: list[tuple[int, int, bool]] = []
    inserted = sent = received = free = now = last = serial = 0

    def insert() -> None:
        nonlocal inserted, last, serial
        last = delay + (reduction(size) if steps.does_reduce(inserted) else 0)
        inserted, serial = inserted + 1, serial + 1
        heapq.heappush(events, (now + last, serial, False))

    for _ in range(steps.window):
        insert()
    while events:
        now, _, message = heapq.heappop(events)
        if message:
            received += 1
            insert()
            continue
        free += 1
        while free and sent < len(packets) and not (steps.gate and sent >= steps.gate and received < steps.gate):
            heapq.heappush(events, (now + packets[sent][0], serial + 1, True))
            sent, free, serial = sent + 1, free - 1, serial + 1
    return now, last


def job_shop(chunks: Sequence[Sequence[tuple[tuple[int, int], int, int]]], servers: int) -> tuple[int, bool]:
    """(makespan in ns, tied) of chunks through FIFO queues of `servers`; a chunk is a list of (queue, duration, last).

    A finished phase joins the tail of its next queue, then the freed server takes the head of its own queue. `tied`:
    chunks from different phases joined one queue in the same nanosecond, by events scheduled in the same nanosecond;
    ranks may then differ in the order, which only the simulation of all ranks can tell.

    >>> job_shop([[((0, 0), 5, 1), ((1, 0), 3, 1)]] * 2, servers=1)
    (13, False)
    """
    waiting: dict[tuple[int, int], deque[int]] = {}
    busy: dict[tuple[int, int], int] = {}
    joined: dict[tuple[int, int], tuple[int, int, object]] = {}
    at = [0] * len(chunks)
    # An event is (time, when it was scheduled, serial): events of one nanosecond run in the order of scheduling.
    events: list[tuple[int, int, int, int]] = []
    serial = now = 0
    tied = False

    def refill(queue: tuple[int, int]) -> None:
        nonlocal serial
        while waiting.get(queue) and busy.get(queue, 0) < servers:
            chunk = waiting[queue].popleft()
            busy[queue] = busy.get(queue, 0) + 1
            _, duration, last = chunks[chunk][at[chunk]]
            serial += 1
            heapq.heappush(events, (now + duration, now + duration - last, serial, chunk))

    for chunk, legs in enumerate(chunks):
        waiting.setdefault(legs[0][0], deque()).append(chunk)
        refill(legs[0][0])
    while events:
        now, scheduled, _, chunk = heapq.heappop(events)
        queue = chunks[chunk][at[chunk]][0]
        busy[queue] -= 1
        at[chunk] += 1
        following = chunks[chunk][at[chunk]][0] if at[chunk] < len(chunks[chunk]) else None
        if following:
            before, source = joined.get(following, (-1, -1, None)), chunks[chunk][at[chunk] - 1]
            tied = tied or (before[:2] == (now, scheduled) and before[2] != source)
            joined[following] = now, scheduled, source
            waiting.setdefault(following, deque()).append(chunk)
        refill(queue)
        if following:
            refill(following)
    return now, tied
