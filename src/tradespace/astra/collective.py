"""How long a collective takes each of its ranks: the shortest exact way for the case at hand, remembered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tradespace.astra.events import DeadlockError, Run
from tradespace.astra.faults import warn
from tradespace.astra.plans import Chunk, group_plans, plans
from tradespace.errors import InputError
from tradespace.network.astra import Network, Phase, System, job_shop, phase_time, program

MAX_MESSAGES = 20_000_000
MAX_NS = 1 << 60
MAX_DIRECT = 1 << 16
Times = NDArray[np.int64]


class Collective:
    """One collective of `members` (None: all ranks on the network dims `dims`), ready to be timed."""

    def __init__(
        self,
        net: Network,
        system: System,
        kind: str,
        size: int,
        dims: tuple[int, ...],
        members: tuple[int, ...] | None = None,
    ) -> None:
        self.net, self.system, self.kind = net, system, kind
        self.members = members
        if members is None:
            self.chunks: list[Chunk] = plans(net, system, kind, size, dims)
        else:
            self.chunks = group_plans(net, system, kind, size, members)
        self.servers = -(-system.active // system.queues)
        self._ends: dict[tuple[int, ...], list[int]] = {}

    @cached_property
    def alike(self) -> bool:
        """Whether all ranks that start together fare alike, so that one of them stands for all."""
        if not self._fair():
            return False
        tied = self._shop[1]
        if tied and self._messages(self.net.size) > MAX_MESSAGES:
            warn(
                f"{self.kind}: chunks of different phases join a queue in the same nanosecond, where ranks may differ; "
                "too large to simulate rank by rank"
            )
            return True
        return not tied

    def _fair(self) -> bool:
        phases = {phase for chunk in self.chunks for phase in chunk}
        if any(phase.algorithm == "doubleBinaryTree" for phase in phases):
            return False
        one = self.servers == 1 and self.system.queues == 1
        if self.net.aware and not (one and all(map(self._apart, phases))):
            return False
        return self.members is None or uniform(self.net, self.members, self.chunks[0][0])

    def _apart(self, phase: Phase) -> bool:
        """Whether no two messages of a phase ever want the same link."""
        if phase.algorithm == "halvingDoubling" and phase.collective != "all_to_all":
            return self.net.dims[phase.queue[0]].kind != "Ring"
        return phase.algorithm == "ring" and self.members is None

    @cached_property
    def _shop(self) -> tuple[int, bool, int]:
        legs: dict[Phase, tuple[int, int]] = {}
        for phase in {phase for chunk in self.chunks for phase in chunk}:
            if phase.algorithm.startswith("direct") and phase.scope.size > MAX_DIRECT:
                raise InputError(f"{self.kind}: direct over {phase.scope.size} ranks is too large to simulate")
            legs[phase] = phase_time(self.net, self.system, phase)
        shop = [[(phase.queue, *legs[phase]) for phase in chunk] for chunk in self.chunks]
        return *job_shop(shop, self.servers), legs[self.chunks[-1][-1]][1]

    @property
    def together(self) -> int:
        """ns until all ranks have ended, if they start together and fare alike."""
        return self._shop[0]

    @property
    def last(self) -> int:
        """ns from the scheduling of a rank's end to that end: its final insertion."""
        return self._shop[2] if self.alike else self.chunks[-1][-1].delay

    def ends(self, ranks: Sequence[int], starts: Sequence[int]) -> list[int]:
        """End of each rank, for ranks that start at the given times (ns); group ranks in the group's order."""
        first = min(starts)
        offsets = tuple(start - first for start in starts)
        known = self._ends.get(offsets)
        if known is None:
            known = self._ends[offsets] = self._time(ranks, offsets)
        return [first + end for end in known]

    def _time(self, ranks: Sequence[int], offsets: tuple[int, ...]) -> list[int]:
        if not any(offsets) and self.alike:
            return [self.together] * len(offsets)
        phase = self.chunks[0][0]
        one = self.members is not None and not self.net.aware and self.system.queues == 1
        if one and not phase.algorithm.startswith("direct"):
            return window_of_one(self.net, self.system, phase, len(self.chunks), self.servers, offsets)
        messages = self._messages(len(ranks))
        if messages > MAX_MESSAGES:
            raise InputError(
                f"{self.kind}: about {messages} messages to simulate one by one, more than {MAX_MESSAGES}; "
                "use fewer ranks or chunks, or the congestion-unaware backend with equal starts"
            )
        run = Run(self.net, self.system, self.chunks, self.servers)
        try:
            return run.times(ranks, offsets)
        except DeadlockError:
            if any(offsets) or not self._fair():
                raise
            warn(
                f"{self.kind}: ranks that order chunks of one nanosecond differently wait for each other forever; "
                "timed as if all ranks kept one order"
            )
            return [self.together] * len(offsets)

    def _messages(self, ranks: int) -> int:
        """About how many hops of messages there are to simulate."""
        total = 0
        for phase in (phase for chunk in self.chunks for phase in chunk):
            n, packets, hops = phase.scope.size, 2, 1
            if phase.algorithm != "doubleBinaryTree":
                steps = program(phase.algorithm, phase.collective, n, phase.size).steps
                packets = sum(count for _, _, count in steps)
            if self.net.aware and phase.algorithm != "ring":
                hops = max(2, n // 4)
            total += ranks * packets * hops
        return total


def uniform(net: Network, members: tuple[int, ...], phase: Phase) -> bool:
    """Whether every member pays the same for each step of the phase."""
    n = len(members)
    steps = program(phase.algorithm, phase.collective, n, phase.size)
    if n * len(steps.steps) > MAX_MESSAGES // 10:
        raise InputError(f"{phase.collective}: {phase.algorithm} over {n} listed ranks is too large to simulate")
    for peer, _, _ in steps.steps:
        paths = {net.path(rank, members[i ^ peer if steps.xor else (i + peer) % n]) for i, rank in enumerate(members)}
        if len(paths) > 1:
            return False
    return True


def window_of_one(
    net: Network, system: System, phase: Phase, chunks: int, servers: int, offsets: Sequence[int]
) -> list[int]:
    """Ends of the members of a ring or halvingDoubling group, all ranks at once as vectors.

    With one packet in flight a rank's k-th packet leaves at s_k; the packet that it waits for arrives at s_k of the
    sender plus the message, is taken when both are there, and its insertion ends at s_(k+1).
    """
    members = phase.scope.members or ()
    n = len(members)
    steps = program(phase.algorithm, phase.collective, n, phase.size)
    packets = sum(count for _, _, count in steps.steps)
    if n * packets * chunks > 10 * MAX_MESSAGES:
        raise InputError(f"{phase.collective}: {n * packets * chunks} messages are too many to simulate")
    moves: list[tuple[NDArray[np.intp], Times, int]] = []
    slowest = 0
    for peer, size, count in steps.steps:
        source = np.arange(n) ^ peer if steps.xor else (np.arange(n) - peer) % n
        cost = [net.message(members[int(j)], members[i], size) for i, j in enumerate(source)]
        slowest = max(slowest, *cost)
        moves += [(source, np.array([min(one, MAX_NS) for one in cost], dtype=np.int64), size)] * count
    delays = []
    for index in range(packets + 1):
        size = moves[min(index, packets - 1)][2] if moves else 0
        delays.append(phase.delay + (system.reduction(size) if steps.does_reduce(index) else 0))
    if (slowest + max(delays)) * (packets + 1) * chunks + max(offsets) > MAX_NS:
        raise InputError(f"{phase.collective}: takes longer than 2**60 ns")
    slots = np.tile(np.array(offsets, dtype=np.int64), (min(servers, chunks), 1))
    for _ in range(chunks):
        slot = slots.argmin(axis=0)
        time = slots[slot, np.arange(n)] + delays[0]
        for (source, cost_in, _), delay in zip(moves, delays[1:], strict=True):
            time = np.maximum(time[source] + cost_in, time) + delay
        slots[slot, np.arange(n)] = time
    return [int(end) for end in slots.max(axis=0)]


def time_of(net: Network, system: System, kind: str, size: int) -> int:
    """ns until the last rank of a collective of the whole machine has ended.

    >>> from tradespace.network.astra import Dim
    >>> ring = Network((Dim("Ring", 4, 50, 500),))
    >>> time_of(ring, System({"all_reduce": ("ring",)}, memory_bandwidth=1600), "all_reduce", 65536)
    4990
    """
    collective = Collective(net, system, kind, size, tuple(range(len(net.dims))))
    if collective.alike:
        return collective.together
    return max(collective.ends(range(net.size), [0] * net.size))
