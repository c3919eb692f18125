"""A collective as ASTRA-sim cuts it: chunks, the order of dims of each chunk, and the phases of each chunk.

Sources: ASTRA-sim's system layer as measured; Rashidi et al., "Themis" (arXiv 2110.04478) as ASTRA-sim codes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tradespace.astra.faults import warn
from tradespace.errors import InputError
from tradespace.network.astra import GROUP_DELAY, Network, Phase, Scope, System

Chunk = tuple[Phase, ...]
MAX_CHUNKS = 100_000
MAX_BYTES = 1 << 60
ORDERS = ("ascending", "roundRobin", "themis")


def cut(net: Network, system: System, collective: str, size: int) -> tuple[int, int]:
    """(bytes per chunk, number of chunks): every chunk is full-size, a remainder becomes one more.

    Chunks of fewer bytes than there are NPUs are raised to that size, except in an all-gather, where ASTRA-sim loops
    forever on a chunk of zero bytes.

    >>> from tradespace.network.astra import Dim
    >>> net = Network((Dim("Ring", 4, 50, 500),))
    >>> cut(net, System({}, chunks=4), "all_reduce", 10)
    (4, 4)
    >>> cut(net, System({}, chunks=3), "all_gather", 10)
    (3, 4)
    """
    if not 0 <= size <= MAX_BYTES:
        raise InputError(f"{collective}: {size} bytes, but a collective has between 0 and 2**60 bytes")
    if size == 0 and collective != "all_gather":
        warn(f"{collective} of zero bytes: ASTRA-sim still sends chunks of one byte per NPU, which cost latency")
    if not 1 <= system.chunks <= MAX_CHUNKS // 2:
        raise InputError(f"preferred-dataset-splits = {system.chunks}, but it must be between 1 and {MAX_CHUNKS // 2}")
    chunk = size // system.chunks
    if collective == "all_gather":
        if not chunk:
            raise InputError(
                f"all_gather of {size} bytes in {system.chunks} chunks: chunks of zero bytes, on which "
                "ASTRA-sim never ends; use at most one chunk per byte"
            )
    elif chunk < net.size:
        chunk = net.size
        size = system.chunks * chunk
    return chunk, -(-size // chunk)


def plans(net: Network, system: System, collective: str, size: int, dims: Sequence[int]) -> list[Chunk]:
    """Phases of every chunk of a collective of all ranks over the network dims `dims`."""
    chunk, count = cut(net, system, collective, size)
    algorithms = _algorithms(system, collective)
    if algorithms[0].startswith("one"):
        name = algorithms[0][3].lower() + algorithms[0][4:]
        check(system, collective, name, net.size)
        phase = Phase(collective, name, chunk, Scope(net.size), (0, 0), system.endpoint_delay)
        return [(_in_queue(phase, system, collective, i),) for i in range(count)]
    if len(algorithms) != len(net.dims):
        raise InputError(
            f"{collective}: {len(algorithms)} algorithms for {len(net.dims)} network dims; give one per "
            "dim, first dim first"
        )
    for dim in dims:
        check(system, collective, algorithms[dim], net.dims[dim].size)
    orders = _orders(net, system, collective, chunk, count, dims)
    known: dict[tuple[int, ...], Chunk] = {}
    for order in orders:
        if order not in known:
            known[order] = _legs(net, system, collective, chunk, order)
    if system.queues == 1:
        return [known[order] for order in orders]
    return [tuple(_in_queue(phase, system, collective, i) for phase in known[order]) for i, order in enumerate(orders)]


def group_plans(net: Network, system: System, collective: str, size: int, members: tuple[int, ...]) -> list[Chunk]:
    """Phases of every chunk of a collective of some ranks: one ring in the order given, if there are several dims.

    On one dim the configured algorithm runs over the members. Either way an insertion costs 10 ns, whatever the
    endpoint delay.
    """
    chunk, count = cut(net, system, collective, size)
    algorithm = _algorithms(system, collective)[0] if len(net.dims) == 1 else "ring"
    if algorithm.startswith("one"):
        algorithm = algorithm[3].lower() + algorithm[4:]
    if algorithm == "doubleBinaryTree":
        raise InputError(
            f"{collective} of ranks {list(members)[:8]}: doubleBinaryTree runs over the whole machine "
            "only; choose ring, direct or halvingDoubling"
        )
    if len(members) == 1:
        algorithm = "ring"
    else:
        check(system, collective, algorithm, len(members))
    phase = Phase(collective, algorithm, chunk, Scope(len(members), members=members), (0, 0), GROUP_DELAY)
    return [(_in_queue(phase, system, collective, i),) for i in range(count)]


def check(system: System, collective: str, algorithm: str, n: int) -> None:
    """Refuse what hangs or crashes ASTRA-sim, warn of what it silently changes."""
    power = n & (n - 1) == 0
    if collective == "all_to_all" and algorithm in ("halvingDoubling", "doubleBinaryTree"):
        warn(f"all_to_all: there is no {algorithm} all-to-all; ASTRA-sim runs ring instead")
    elif algorithm == "halvingDoubling" and not power:
        raise InputError(
            f"{collective}: halvingDoubling over {n} ranks does not end in ASTRA-sim; it needs a power of two"
        )
    elif algorithm == "doubleBinaryTree":
        if not power:
            raise InputError(
                f"{collective}: doubleBinaryTree over {n} ranks crashes ASTRA-sim; it needs a power of two"
            )
        if collective != "all_reduce":
            warn(f"{collective}: doubleBinaryTree knows all-reduce only; ASTRA-sim silently runs an all-reduce instead")
    reduces = collective in ("all_reduce", "reduce_scatter") or algorithm == "doubleBinaryTree"
    if reduces and system.memory_bandwidth is None:
        raise InputError(f"{collective}: local-mem-bw is missing from the system file, and a reduction needs it")


def _algorithms(system: System, collective: str) -> tuple[str, ...]:
    names = system.algorithms.get(collective, ())
    if not names:
        raise InputError(
            f"the system file has no {collective.replace('_', '-')}-implementation, and the workload has "
            f"an {collective}"
        )
    return names


def _legs(net: Network, system: System, collective: str, size: int, order: tuple[int, ...]) -> Chunk:
    inner, last = order[:-1], order[-1]
    if collective != "all_reduce" or (system.optimization == "baseline" and system.order != "themis"):
        legs = [(dim, collective) for dim in order]
    elif system.order == "themis":
        legs = [(dim, "reduce_scatter") for dim in order] + [(dim, "all_gather") for dim in reversed(order)]
    else:
        legs = [(dim, "reduce_scatter") for dim in inner] + [(last, "all_reduce")]
        legs += [(dim, "all_gather") for dim in reversed(inner)]
    phases = []
    for dim, kind in legs:
        scope = Scope(net.dims[dim].size, net.stride(dim))
        phase = Phase(kind, system.algorithms[collective][dim], size, scope, (dim, 0), system.endpoint_delay)
        phases.append(phase)
        size = phase.out
    return tuple(phases)


def _in_queue(phase: Phase, system: System, collective: str, index: int) -> Phase:
    """Chunks take the queues of a dim in turn; an all-reduce gathers in the second half of them."""
    queues, first = system.queues, 0
    if queues == 1:
        return phase
    if collective == "all_reduce":
        queues //= 2
        first = queues if phase.collective == "all_gather" else 0
    return Phase(
        phase.collective,
        phase.algorithm,
        phase.size,
        phase.scope,
        (phase.queue[0], first + index % queues),
        phase.delay,
    )


def _orders(
    net: Network, system: System, collective: str, chunk: int, count: int, dims: Sequence[int]
) -> list[tuple[int, ...]]:
    gather = collective == "all_gather"
    if system.order == "themis" and collective != "all_to_all":
        return _themis(net, gather, chunk, count, tuple(dims))
    base = tuple(dims)[::-1] if gather else tuple(dims)
    if system.order == "roundRobin":
        return [base[i % len(base) :] + base[: i % len(base)] for i in range(count)]
    return [base] * count


def _themis(net: Network, gather: bool, chunk: int, count: int, dims: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Order of dims of each chunk by accumulated load, with ASTRA-sim's own bookkeeping.

    A small imbalance keeps the ascending order. There the all-gather adds the load of position p, with p's bandwidth
    and size, to the p-th dim from the end: the fault that erases the benefit of Themis for all-gathers.
    """
    if gather:
        warn("themis all_gather: ASTRA-sim adds the load to the wrong dims, which erases the benefit of reordering")
    sizes = [net.dims[dim].size for dim in dims]
    relative = [net.dims[dim].bandwidth / net.dims[dims[0]].bandwidth for dim in dims]
    factor = [n - 1 if gather else (n - 1) / n for n in sizes]
    load = [0.0] * len(dims)
    order = list(range(len(dims)))
    orders = []
    for _ in range(count):
        order = sorted(order, key=load.__getitem__)
        if gather:
            order.reverse()
        light = order[-1] if gather else order[0]
        worth = int(abs(load[order[-1]] - load[order[0]]) * relative[light] / factor[light] * 2**20)
        for dim in order[:-1] if gather else ():
            worth //= sizes[dim]
        small = worth < chunk // 16
        chosen = sorted(order) if small else order
        size = chunk
        for dim in chosen:
            target = len(dims) - 1 - dim if gather and small else dim
            load[target] += size / 2**20 * factor[dim] / relative[dim]
            size = size * sizes[dim] if gather else size // sizes[dim]
        orders.append(tuple(dims[dim] for dim in chosen))
    return orders
