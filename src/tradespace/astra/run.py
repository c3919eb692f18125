"""The two entry points: times of single collectives from a table, and the replay of an iteration from a folder."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tradespace.astra.collective import time_of
from tradespace.astra.faults import physical_notes, warn
from tradespace.astra.files import checked, read_text
from tradespace.astra.iteration import Iteration, to_traces
from tradespace.astra.network_file import network_of, read_network
from tradespace.astra.plans import ORDERS
from tradespace.astra.ranks import Classes, Communicators, Ranks
from tradespace.astra.replay import Asymmetric, Replay
from tradespace.astra.side_files import RemoteMemory, read_groups, read_memory
from tradespace.astra.system_file import Machine, machine, read_system
from tradespace.astra.text_workload import read_workload, to_iteration
from tradespace.astra.traces import Trace, read_traces
from tradespace.errors import InputError
from tradespace.network.astra import COLLECTIVES, Network

SHARED = ("MEMORY_POOL", "PER_NODE_MEMORY_EXPANSION")


def collectives(path: str | Path) -> list[dict[str, Any]]:
    """[{id, time_ns}] for every row of a table of collectives of the whole machine (CSV, columns as in the docs).

    Per-dim columns (topology, bandwidth_GBps, latency_ns, algorithm) join their entries with `_`, npus with `x`.
    """
    result = []
    try:
        for line, row in enumerate(csv.DictReader(read_text(path).splitlines()), 2):
            where = f"{path}, line {line}"
            if None in row or None in row.values() or "id" not in row:
                raise InputError(f"{where}: not as many columns as the header has, or no column `id`")
            name = row["id"]
            try:
                time = row_time(row, where)
            except InputError as error:
                raise error if where in str(error) else InputError(f"{where}: {error}") from None
            result.append({"id": int(name) if name.isdecimal() and len(name) < 19 else name, "time_ns": time})
    except csv.Error as error:
        raise InputError(f"{path}: not a table in CSV ({error})") from None
    if not result:
        raise InputError(f"{path}: no rows")
    return result


def row_time(row: Mapping[str, str], where: str) -> int:
    """ns of the collective of one row."""

    def cell(key: str, known: Sequence[str] = ()) -> str:
        value = row.get(key)
        if not value or (known and value not in known):
            hint = f"; known: {', '.join(known)}" if known else ""
            raise InputError(f"{where}: {key} = {str(value)[:40]!r} cannot be read{hint}")
        return value

    kinds = cell("topology").split("_")
    columns = {
        "topology": kinds,
        "npus_count": cell("npus").split("x"),
        "bandwidth": cell("bandwidth_GBps").split("_"),
        "latency": cell("latency_ns").split("_"),
    }
    plain = network_of(columns, where)
    net = Network(plain.dims, aware=cell("backend", ("unaware", "aware")) == "aware")
    if net.aware and len(net.dims) > 1:
        raise InputError(f"{where}: the congestion-aware backend knows one dim only")
    names = cell("algorithm").split("_")
    collective = cell("collective", COLLECTIVES)
    values = {
        "endpoint-delay": cell("endpoint_delay_ns"),
        "local-mem-bw": cell("local_mem_bw_GBps"),
        "preferred-dataset-splits": cell("chunks"),
        "active-chunks-per-dimension": cell("active_chunks_per_dim"),
        "collective-optimization": cell("collective_optimization"),
        "scheduling-policy": cell("scheduling_policy"),
        "inter-dimension-scheduling": cell("inter_dim_scheduling", ORDERS),
        f"{collective.replace('_', '-')}-implementation": names,
    }
    queues = int(checked(cell("queues_per_dim"), f"{where}: queues_per_dim", 1, 1024))
    system = machine(values, where, version2=False, queues=queues).system
    size = cell("comm_size_bytes")
    if not size.isdecimal() or len(size) > 19:
        raise InputError(f"{where}: comm_size_bytes = {size[:40]!r}, but it must be a whole number of bytes")
    return time_of(net, system, collective, int(size))


def replay(
    trace: str | Path,
    network: str | Path,
    system: str | Path,
    memory: str | Path | None = None,
    comm_groups: str | Path | None = None,
    *,
    queues: int = 1,
    reading: str = "native",
) -> dict[str, Any]:
    """{total_ns, ranks: {"0": {total, compute, communication, exposed}}} of an iteration, in ns.

    `trace` is a folder of NAME.RANK.et, or a text workload of version 1 (then `reading` says how to take it).
    `queues` is ASTRA-sim's command-line option num-queues-per-dim. Faults of ASTRA-sim are warned of.
    """
    net = read_network(network)
    config = read_system(system, queues)
    groups = read_groups(comm_groups, net.size) if comm_groups else {}
    expansion = read_memory(memory) if memory else None
    if Path(trace).is_file():
        if groups:
            raise InputError(f"{comm_groups}: a text workload has no communicator groups")
        traces, _ = to_traces(to_iteration(read_workload(trace), net, reading))
    else:
        traces = read_traces(trace, net.size)
    return replay_traces(traces, net, config, groups, expansion)


def replay_iteration(
    iteration: Iteration, net: Network, config: Machine, memory: RemoteMemory | None = None
) -> dict[str, Any]:
    """As `replay`, for an iteration in memory."""
    if len(iteration.ranks) != net.size:
        raise InputError(f"the iteration has {len(iteration.ranks)} ranks, the network {net.size} NPUs")
    traces, groups = to_traces(iteration)
    return replay_traces(traces, net, config, groups, memory)


def replay_traces(
    traces: Sequence[Trace],
    net: Network,
    config: Machine,
    groups: Mapping[str, tuple[int, ...]],
    memory: RemoteMemory | None = None,
) -> dict[str, Any]:
    """As `replay`, for traces in memory: one rank per class where ranks stay in step, else every rank."""
    used = {name for trace in traces for name, _ in trace.comms}
    pairs = {(rank, peer) for rank, trace in enumerate(traces) for peer, _ in trace.peers}
    for note in physical_notes(net, config.system, [*(groups[name] for name in used if name in groups), *pairs]):
        warn(note)
    communicators = Communicators(net, config.system, groups)
    try:
        if memory and memory.kind in SHARED:
            raise Asymmetric
        classes = Classes(communicators, traces)
        times = Replay(classes, config, memory, [traces[rank].program for rank in classes.first]).run()
        times = [times[number] for number in classes.of]
    except (Asymmetric, InputError):  # a fault is named by the rank that has it
        times = Replay(Ranks(communicators, traces), config, memory, [trace.program for trace in traces]).run()
    return {"total_ns": max(time["total"] for time in times), "ranks": {str(i): time for i, time in enumerate(times)}}
