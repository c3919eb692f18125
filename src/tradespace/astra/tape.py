"""The operations of one pipeline stage in the order in which it issues them, as nodes that its ranks share.

A trace holds durations as whole microseconds: each is rounded so that all up to it together are right within half of
one (a kernel may come out as 0, which ASTRA-sim takes as 1 ns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tradespace.astra.chakra import COLLECTIVE, COMP, RECV, SEND, Node
from tradespace.astra.grid import Grid
from tradespace.astra.hardware import spanned
from tradespace.network.astra import Network

Axes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: seconds, and its FLOPs and bytes for a simulator that prices it itself."""

    name: str
    seconds: float
    flops: float = 1.0
    bytes: float = 1.0


@dataclass(frozen=True, slots=True)
class Group:
    """Axes of a grid that a collective runs over, with the number of ranks and the network dims if it fills them;
    `label` names all groups that are these ranks."""

    names: Axes
    size: int
    dims: tuple[bool, ...] = ()
    label: str = ""


@dataclass
class Tape:
    """Nodes of one rank of a stage. `tail` is what the next blocking operation waits for.

    `groups` and `peers` are what `Node.ref` points to: groups by the names of their axes, (stage, tag) of a partner.
    """

    nodes: list[Node] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    peers: list[tuple[int, int]] = field(default_factory=list)
    tail: tuple[int, ...] = ()
    _seconds: float = 0.0
    _micros: int = 0

    def compute(self, kernel: Kernel, note: str) -> None:
        """Run a kernel after everything before it."""
        self._seconds += kernel.seconds
        micros = round(self._seconds * 1e6) - self._micros
        self._micros += micros
        ident, name = len(self.nodes) + 1, f"{kernel.name} {note}"
        size, flops = max(round(kernel.bytes), 1), max(round(kernel.flops), 1)
        self.nodes.append(Node(ident, name, COMP, self.tail, micros * 1000, False, flops, size))
        self.tail = (ident,)

    def collective(
        self, name: str, kind: str, size: float, group: Group, after: Sequence[int] | None = None, block: bool = True
    ) -> tuple[int, ...]:
        """Issue a collective of `size` bytes of the full tensor (all-to-all: of what one rank sends); its id, or
        nothing for a single rank. `after`: what it waits for, absent: everything before it."""
        if group.size == 1 or size < 1.0:
            return ()
        share = size / group.size if kind == "all_gather" else size
        if group not in self.groups:
            self.groups.append(group)
        ident, ref = len(self.nodes) + 1, self.groups.index(group)
        before = self.tail if after is None else tuple(after)
        self.nodes.append(Node(ident, name, COLLECTIVE, before, 0, False, 0, round(share), kind, group.dims, ref))
        if block:
            self.tail = (ident,)
        return (ident,)

    def send(self, name: str, stage: int, size: float, tag: int) -> None:
        """Send to a rank of another stage; nothing on this stage waits for it."""
        self._message(SEND, name, stage, size, tag, self.tail)

    def receive(self, name: str, stage: int, size: float, tag: int) -> None:
        """Wait for the message of another stage and for everything before."""
        self.tail = (*self.tail, self._message(RECV, name, stage, size, tag, ()))

    def _message(self, kind: int, name: str, stage: int, size: float, tag: int, after: tuple[int, ...]) -> int:
        ident, ref = len(self.nodes) + 1, len(self.peers)
        self.peers.append((stage, tag))
        self.nodes.append(Node(ident, name, kind, after, size=max(round(size), 1), ref=ref))
        return ident


@dataclass(frozen=True)
class Tapes:
    """The tapes of a job: of each stage, the grid of each group's first axis, ranks between neighbouring stages."""

    stages: tuple[Tape, ...]
    grids: Mapping[str, Grid]
    stride: int


def groups_of(axes: Mapping[str, Grid], named: Sequence[Axes], network: Network) -> dict[Axes, Group]:
    """The groups by their axes; those of the same ranks are one."""
    same: dict[tuple[int, ...], list[Axes]] = {}
    for names in named:
        same.setdefault(axes[names[0]].members(names, 0), []).append(names)
    found: dict[Axes, Group] = {}
    for members, aliases in same.items():
        dims = spanned(network, members)
        flags = tuple(index in dims for index in range(len(network.dims))) if dims else ()
        short = [" x ".join(name for name in names if axes[name].degree(name) > 1) for names in aliases]
        group = Group(aliases[0], len(members), flags, " = ".join(dict.fromkeys(short)))
        found |= dict.fromkeys(aliases, group)
    return found
