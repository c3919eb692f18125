"""A predicted step as Chakra traces for ASTRA-sim: what runs on every rank, on the cluster's network.

Ranks of a pipeline stage share one program; they differ in their communicators and partners.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from tradespace.astra.hardware import machine_of, network_of_cluster
from tradespace.astra.loop import loop_tape
from tradespace.astra.stages import stage_tapes
from tradespace.astra.system_file import Machine
from tradespace.astra.tape import Tapes
from tradespace.astra.traces import Comm, Trace, program_of
from tradespace.errors import InputError
from tradespace.network.astra import Network
from tradespace.step import Step

MAX_OPERATIONS = 50_000_000
LEAST_PER_LAYER = 10  # operations of a layer and microbatch, so that what is far too large is not built first


@dataclass(frozen=True)
class Exported:
    """Traces of every rank, communicator groups by name, the network and system that they run on, and the tapes that
    they were made of."""

    traces: tuple[Trace, ...]
    groups: Mapping[str, tuple[int, ...]]
    network: Network
    machine: Machine
    tapes: Tapes


def from_step(step: Step) -> Exported:
    """The traces of a predicted step of one candidate.

    >>> from tradespace.inputs import load
    >>> from tradespace.predict import predict
    >>> cluster = load.cluster("dgx-h100", devices=8)
    >>> strategy = load.strategy("tp=2,pp=2,global_batch=8", cluster=cluster)
    >>> found = from_step(predict(load.model("llama-3.1-8b"), cluster, strategy))
    >>> len(found.traces), found.groups["1"], found.traces[0].program is found.traces[3].program
    (8, (0, 2), True)
    """
    if step.shape != ():
        raise InputError("export: many candidates at once; one step is exported at a time")
    network, _ = network_of_cluster(step.cluster)
    layers = float(step.microbatches) * float(step.model.layers) / float(step.strategy.pipeline)
    if layers * LEAST_PER_LAYER * network.size > MAX_OPERATIONS:
        raise _too_large()
    written = stage_tapes(step, network) if step.per_microbatch else loop_tape(step, network)
    if sum(len(tape.nodes) for tape in written.stages) * (network.size // len(written.stages)) > MAX_OPERATIONS:
        raise _too_large()
    several = any(sum(group.dims) > 1 for tape in written.stages for group in tape.groups)
    traces, groups = _resolved(written, network.size)
    return Exported(traces, groups, network, machine_of(step.cluster, network, several), written)


def _too_large() -> InputError:
    return InputError(
        f"export: more than {MAX_OPERATIONS} operations over all ranks; fewer microbatches (a smaller global_batch) or "
        "fewer devices are needed"
    )


def _resolved(written: Tapes, ranks: int) -> tuple[tuple[Trace, ...], dict[str, tuple[int, ...]]]:
    """Traces of every rank; a group that fills network dims is said by them, every other one by its members."""
    shapes: dict[Hashable, Hashable] = {}
    programs = [program_of(tape.nodes, f"stage {stage}", shapes) for stage, tape in enumerate(written.stages)]
    names: dict[tuple[int, ...], str] = {}
    traces = []
    for rank in range(ranks):
        stage = rank // written.stride % len(programs)
        comms: list[Comm] = []
        for group in written.stages[stage].groups:
            members = () if group.dims else written.grids[group.names[0]].members(group.names, rank)
            comms.append((names.setdefault(members, str(len(names) + 1)) if members else "", group.dims))
        peers = tuple((rank + (other - stage) * written.stride, tag) for other, tag in written.stages[stage].peers)
        traces.append(Trace(programs[stage], tuple(comms), peers))
    return tuple(traces), {name: members for members, name in names.items()}
