"""Remote-memory files and communicator-group files.

Source: `astra-sim/astra-sim`, remote_memory_backend/analytical and the comm-group option.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tradespace.astra.faults import warn
from tradespace.astra.files import json_object, number, read_text, whole
from tradespace.errors import InputError, nearest

MEMORY_TYPES = ("NO_MEMORY_EXPANSION", "PER_NPU_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL")


@dataclass(frozen=True)
class RemoteMemory:
    """Expanded memory: access = latency (ns) + floor(bytes / bandwidth), bandwidth in bytes/ns (GB/s of 1e9)."""

    kind: str
    latency: float = 0.0
    bandwidth: float = 1.0
    npus_per_node: int = 1

    def access(self, size: int) -> int:
        """ns of one access.

        >>> RemoteMemory("MEMORY_POOL", 700, 100).access(1 << 20)
        11185
        """
        return int(self.latency) + int(size / self.bandwidth)

    def server(self, rank: int) -> int | None:
        """Which queue the rank's requests share with others, one request at a time; None: its own memory."""
        if self.kind == "PER_NODE_MEMORY_EXPANSION":
            return rank // self.npus_per_node
        return 0 if self.kind == "MEMORY_POOL" else None


def read_memory(path: str | Path) -> RemoteMemory:
    """Remote memory from its JSON file."""
    values = json_object(read_text(path), path)
    kind = values.get("memory-type")
    if kind not in MEMORY_TYPES:
        raise InputError(f"{path}: memory-type {str(kind)[:40]!r} is not known{nearest(str(kind)[:40], MEMORY_TYPES)}")
    if kind == "NO_MEMORY_EXPANSION":
        return RemoteMemory(kind)
    per_node = 1
    if kind == "PER_NODE_MEMORY_EXPANSION":
        whole(values, "num-nodes", path, 1, 1 << 20)
        per_node = whole(values, "num-npus-per-node", path, 1, 1 << 20)
        warn(f"{path}: PER_NODE_MEMORY_EXPANSION aborts in ASTRA-sim; here each node serves one request at a time")
    return RemoteMemory(
        kind,
        number(values, "remote-mem-latency", path, 0, 1e12),
        number(values, "remote-mem-bw", path, 1e-6, 1e9),
        per_node,
    )


def read_groups(path: str | Path, npus: int) -> dict[str, tuple[int, ...]]:
    """Communicator groups by name; the order of the ranks is kept, because the ring runs in it."""
    groups = {}
    for key, ranks in json_object(read_text(path), path).items():
        if not key.isdecimal() or int(key) == 0:
            raise InputError(f"{path}: group {key[:40]!r}, but a key is a positive whole number (0 means all ranks)")
        if not isinstance(ranks, list) or not ranks:
            raise InputError(f"{path}: group {key} must be a list of ranks")
        for rank in ranks:
            if not isinstance(rank, int) or isinstance(rank, bool) or not 0 <= rank < npus:
                raise InputError(f"{path}: group {key} names rank {str(rank)[:40]}, but ranks are 0 to {npus - 1}")
        if len(set(ranks)) < len(ranks):
            raise InputError(f"{path}: group {key} names a rank twice")
        groups[key] = tuple(ranks)
    return groups
