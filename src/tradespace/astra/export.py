"""Writes an iteration as ASTRA-sim reads it: one `.et` per rank, communicator groups, network YAML, system JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tradespace.astra.chakra import encode, encode_file, encode_variable
from tradespace.astra.iteration import Iteration, to_traces, variable_of
from tradespace.astra.network_file import write_network
from tradespace.astra.side_files import RemoteMemory
from tradespace.astra.system_file import Machine
from tradespace.astra.traces import Trace
from tradespace.errors import InputError
from tradespace.network.astra import Network


def write_iteration(
    iteration: Iteration,
    folder: str | Path,
    network: Network,
    machine: Machine,
    memory: RemoteMemory | None = None,
    name: str = "step",
) -> list[Path]:
    """Files of an iteration in `folder`: NAME.RANK.et, NAME.json (groups), network.yml, system.json, memory.json.

    Durations are whole microseconds in a trace (at least 1): what is shorter is exact only under the roofline.
    """
    traces, groups = to_traces(iteration)
    return write_traces(traces, groups, folder, network, machine, memory, name)


def write_traces(
    traces: Sequence[Trace],
    groups: Mapping[str, tuple[int, ...]],
    folder: str | Path,
    network: Network,
    machine: Machine,
    memory: RemoteMemory | None = None,
    name: str = "step",
) -> list[Path]:
    """As `write_iteration`, for traces: one file after the other, so that their sizes do not add up in memory."""
    if len(traces) != network.size:
        raise InputError(f"the iteration has {len(traces)} ranks, the network {network.size} NPUs")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    side: dict[str, str] = {
        f"{name}.json": json.dumps({key: list(members) for key, members in groups.items()}, indent=0),
        "network.yml": write_network(network),
        "system.json": json.dumps(system_values(machine), indent=2),
    }
    if memory:
        side["memory.json"] = json.dumps(memory_values(memory), indent=2)
    known: dict[int, bytes] = {}
    for rank, trace in enumerate(traces):
        (folder / f"{name}.{rank}.et").write_bytes(encode_file(_messages(trace, rank, known)))
    for file, content in side.items():
        (folder / file).write_text(content, encoding="utf-8")
    return [folder / f"{name}.{rank}.et" for rank in range(len(traces))] + [folder / file for file in side]


def _messages(trace: Trace, rank: int, known: dict[int, bytes]) -> Iterator[bytes]:
    """Messages of a rank; what ranks share is encoded once (`known`: by the node's identity)."""
    varying: dict[tuple[int, int], bytes] = {}
    for node in trace.program.nodes:
        message = known.get(id(node))
        if message is None:
            message = known[id(node)] = encode(node)
        if node.ref >= 0:
            own = (node.ref, node.kind)
            if own not in varying:
                varying[own] = encode_variable(variable_of(node, trace, rank))
            message += varying[own]
        yield message


def system_values(machine: Machine) -> dict[str, object]:
    """Keys of a system JSON.

    >>> from tradespace.network.astra import System
    >>> system_values(Machine(System({"all_reduce": ("ring",)})))["all-reduce-implementation"]
    ['ring']
    """
    system = machine.system
    values: dict[str, object] = {
        "scheduling-policy": "LIFO",
        "endpoint-delay": system.endpoint_delay,
        "active-chunks-per-dimension": system.active,
        "preferred-dataset-splits": system.chunks,
        "collective-optimization": system.optimization,
        "roofline-enabled": int(machine.roofline),
    }
    for collective, names in system.algorithms.items():
        values[f"{collective.replace('_', '-')}-implementation"] = list(names)
    if system.memory_bandwidth is not None:
        values["local-mem-bw"] = system.memory_bandwidth
    if machine.peak is not None:
        values["peak-perf"] = machine.peak / 1e12
    return values


def memory_values(memory: RemoteMemory) -> dict[str, object]:
    """Keys of a remote-memory JSON."""
    values: dict[str, object] = {"memory-type": memory.kind}
    if memory.kind != "NO_MEMORY_EXPANSION":
        values |= {"remote-mem-latency": memory.latency, "remote-mem-bw": memory.bandwidth}
    if memory.kind == "PER_NODE_MEMORY_EXPANSION":
        values["num-npus-per-node"] = memory.npus_per_node
    return values
