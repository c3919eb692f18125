"""A cluster as ASTRA-sim describes one: a network of per-link bandwidths, a system with an algorithm per dim.

ASTRA-sim counts bandwidth per directed link in GB of 2**30 bytes, and a switch's latency twice. So a ring gets half of
a device's bandwidth per link, a fully connected device one peer's share of it, a switch half of the latency.
"""

from __future__ import annotations

from collections.abc import Sequence

from tradespace.astra.faults import warn
from tradespace.astra.system_file import Machine
from tradespace.errors import InputError
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.cluster import Dim as Level
from tradespace.network.astra import COLLECTIVES, Dim, Network, System

TOPOLOGY = {
    "ring": "Ring",
    "mesh": "Ring",
    "cube_mesh": "Ring",
    "switch": "Switch",
    "dragonfly": "Switch",
    "fully_connected": "FullyConnected",
}
UNLIKE = {"mesh": "the link that closes a ring", "cube_mesh": "a ring of links", "dragonfly": "one switch"}
MAX_CHUNKS = 64


def network_of_cluster(cluster: Cluster) -> tuple[Network, tuple[int, ...]]:
    """(network, which of the cluster's dims each of its dims is) of a job on `cluster`, which must fill whole dims.

    Dims in which the job has a single position are left out.

    >>> from tradespace.inputs import load
    >>> network, _ = network_of_cluster(load.cluster("dgx-h100", devices=32))
    >>> [(dim.kind, dim.size, dim.bandwidth, dim.latency) for dim in network.dims]
    [('Switch', 8, 419.095159, 1650.0), ('Switch', 4, 46.566129, 1850.0)]
    """
    left, dims, places = int(float(cluster.devices)), [], []
    for place, level in enumerate(cluster.network):
        last = place == len(cluster.network) - 1
        size = left if last else min(left, int(float(level.size)))
        if left % size:
            raise InputError(
                f"{cluster.key}: {int(float(cluster.devices))} devices do not fill whole groups of {size} on "
                f"{level.name}, but ASTRA-sim's dims are full; use a multiple of {size}"
            )
        left //= size
        if size > 1:
            dims.append(_dim(level, size))
            places.append(place)
    if not dims:
        raise InputError(f"{cluster.key}: one device has no network; ASTRA-sim needs at least 2 devices")
    return Network(tuple(dims)), tuple(places)


def _dim(level: Level, size: int) -> Dim:
    if level.kind in UNLIKE:
        warn(f"{level.name}: ASTRA-sim has no {level.kind}; it is written as {UNLIKE[level.kind]}")
    rate = float(level.bandwidth) / float(level.oversubscription)
    share = {"ring": 0.5, "mesh": 0.5, "fully_connected": 1.0 / max(float(level.size) - 1.0, size - 1.0)}
    latency = float(level.latency) * (0.5e9 if TOPOLOGY[level.kind] == "Switch" else 1e9)
    return Dim(TOPOLOGY[level.kind], size, round(rate * share.get(level.kind, 1.0) / 2**30, 6), round(latency, 3))


def machine_of(cluster: Cluster, network: Network, several: bool) -> Machine:
    """System and roofline of a cluster's devices; the roofline is off, since traces carry durations.

    `several`: some collective runs over several dims, which chunks then pipeline: as many chunks (a power of two) as
    leave the cluster's `fill` of the faster dims' time exposed. On one dim chunks would only add latency.
    """
    chunks = 1
    while several and chunks < MAX_CHUNKS and chunks * float(cluster.fill) < 1.0:
        chunks *= 2
    algorithms = {name: tuple(_algorithm(name, dim) for dim in network.dims) for name in COLLECTIVES}
    memory = float(cluster.local.bandwidth) / 1e9
    return Machine(System(algorithms, memory_bandwidth=memory, chunks=chunks), False, float(cluster.device.peak))


def _algorithm(collective: str, dim: Dim) -> str:
    """What a library runs there, as far as ASTRA-sim can say it. An all-to-all through a switch has one peer in flight
    at a time (direct1): `direct` would send to all peers at once, each at the adapter's full rate."""
    if dim.kind == "FullyConnected":
        return "direct"
    if dim.kind == "Ring":
        return "ring"
    if collective == "all_to_all":
        return "direct1"
    return "halvingDoubling" if dim.size & (dim.size - 1) == 0 else "ring"


def spanned(network: Network, members: Sequence[int]) -> tuple[int, ...] | None:
    """The dims that a group of ranks fills completely; None where it fills only a part of some dim.

    >>> net = Network((Dim("Ring", 4, 1, 1), Dim("Switch", 2, 1, 1)))
    >>> spanned(net, (1, 5)), spanned(net, (0, 1, 2, 3)), spanned(net, (0, 1))
    ((1,), (0,), None)
    """
    dims, count = [], 1
    for index, dim in enumerate(network.dims):
        stride = network.stride(index)
        if len({rank // stride % dim.size for rank in members}) > 1:
            dims.append(index)
            count *= dim.size
    return tuple(dims) if count == len(members) else None
