"""One training step of COMET's loop: stacks of operators -> times, tiers and bytes -> Step.

The family decides the stacks: layer tables, recommendation models, and Transformers in COMET's nine-layer form. One
microbatch per step is the whole batch of a replica.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tradespace.cost.compute import rates
from tradespace.cost.loop_times import Machine, footprint, kernels, stack_times
from tradespace.cost.stage import Exchanges
from tradespace.cost.tiers import accesses, capacity
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.network.placement import Layout, place
from tradespace.num import Bool, Num, both, either, floor, negate, where
from tradespace.schedule.comet_loop import SOURCES, LoopTimes, StackTimes, Switches, comet_loop
from tradespace.step import Step
from tradespace.workload.count import flops_per_token, parameters, recomputed_flops
from tradespace.workload.layer_table import Stack
from tradespace.workload.loops import held_parameters, is_looped, stacks_of
from tradespace.workload.operator import total

SCHEDULE = "comet-loop"
"""The name in `Strategy.schedule`."""


def training_loop(model: Model, cluster: Cluster, strategy: Strategy) -> Step:
    """Time and memory of one step of the loop; every numeric field may be a number or an open-axis array.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-a100", devices=1024)
    >>> strategy = load.strategy("MP64_DP16,schedule=comet-loop,zero=2,recompute=full", cluster=cluster)
    >>> step = training_loop(load.model("transformer-1t"), cluster, strategy)
    >>> bool(step.fits), 0.2 < step.time["exposed_tensor"] / step.step_time < 0.5
    (True, True)
    """
    data = cluster.devices / strategy.tensor
    samples = strategy.global_batch / data
    device, overlap = cluster.device, strategy.overlap
    work = priced(model, cluster, strategy)
    switches = Switches(strategy.at_least("recompute", 2.0), overlap.tensor, overlap.gradient)
    times = comet_loop(work.times, switches)
    speed, reach = work.machine.rates, work.machine.reach
    update = update_time(work.stacks, strategy, reach["states"].stream, work.shard)
    count = parameters(model)
    return Step(
        model=model,
        cluster=cluster,
        strategy=replace(strategy, micro_batch=samples, schedule=SCHEDULE),
        step_time=times.total + (update + strategy.profile.step_fixed),
        jitter=0.0,
        once=time_parts(times, update, strategy.profile.step_fixed),
        per_microbatch={},
        numbers={"step": 1.0},
        p2p=0.0,
        kernels={"step": kernels(work.stacks, speed, reach)},
        stages={"first": work.memory},
        memory_total=total(list(work.memory.values())),
        capacity=capacity(device),
        illegal=illegal(model, strategy, data, samples),
        data=data,
        microbatches=1.0,
        model_flops=flops_per_token(model) * (strategy.global_batch * model.seq),
        recomputed_flops=(0.0, 0.0) if is_looped(model) else recomputed_flops(model),
        parameters={"total": count.total, "active": count.active},
        sources=(device.source, cluster.source, strategy.profile.source, *SOURCES),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """The loop's stacks with their seconds, the bytes of memory by part, and the devices that share one copy of sharded
    states."""

    stacks: tuple[Stack, ...]
    times: list[StackTimes]
    machine: Machine
    memory: dict[str, Num]
    shard: Num


def priced(model: Model, cluster: Cluster, strategy: Strategy) -> Priced:
    """Every operator and exchange of the loop on one device, in seconds.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-a100", devices=64)
    >>> strategy = load.strategy("MP8_DP8,schedule=comet-loop", cluster=cluster)
    >>> [len(stack.layers) for stack in priced(load.model("transformer-1t"), cluster, strategy).times]
    [9]
    """
    data, precision = cluster.devices / strategy.tensor, strategy.precision
    stacks = stacks_of(model, strategy, strategy.global_batch / data, cluster.devices)
    shard = where(strategy.shard > 0.0, strategy.shard, data)
    memory, sizes = footprint(model, stacks, strategy, shard)
    speed = rates(cluster.device, precision.gemm, precision.value, precision.cast, strategy.profile)
    reach = accesses(cluster.device, sizes, strategy.profile.hybrid)
    machine = Machine(speed, reach, Exchanges(cluster, groups(strategy, cluster, data)))
    return Priced(stacks, [stack_times(stack, machine) for stack in stacks], machine, memory, shard)


def groups(strategy: Strategy, cluster: Cluster, data: Num) -> Layout:
    """The groups of the loop on the network dims: tensor inside, data outside; all devices together."""
    laid = place({"tensor": strategy.tensor, "data": data}, ("tensor", "data"), cluster.network)
    every = place({"all": cluster.devices}, ("all",), cluster.network)
    return replace(laid, spans={**laid.spans, **every.spans})


def update_time(stacks: Sequence[Stack], strategy: Strategy, stream: Num, shard: Num) -> Num:
    """Seconds of the optimizer's update of the local shard: its traffic at the rate of the states' tier, launches."""
    held, _ = held_parameters(stacks)
    local = held * (1.0 - strategy.at_least("zero", 1.0) * (1.0 - 1.0 / shard))
    return local * (strategy.optimizer.traffic * stream) + strategy.profile.optimizer_fixed


def time_parts(times: LoopTimes, update: Num, fixed: Num) -> Mapping[str, Num]:
    """The loop's seconds under the names of `step.TIME_PARTS`; exchanges of embeddings are tensor-parallel ones."""
    return {
        "forward": times.forward,
        "input_grad": times.input_grad,
        "weight_grad": times.weight_grad,
        "recompute": times.recompute,
        "optimizer": update,
        "exposed_tensor": sum(times.exposed.values(), 0.0),
        "exposed_data": times.late,
        "other": fixed,
    }


def illegal(model: Model, strategy: Strategy, data: Num, samples: Num) -> dict[str, Bool]:
    """What the loop cannot run: conditions of `workload.legality.REASONS`, True where a candidate breaks them.

    As in COMET, work is split evenly over the tensor degree, whether or not heads and widths divide.
    """
    tensor = strategy.tensor
    others = either(strategy.pipeline != 1.0, strategy.context != 1.0)
    found: dict[str, Bool] = {
        "devices": negate(both(data == floor(data), data >= 1.0)),
        "batch": negate(samples == floor(samples)),
        "loop": either(others, tensor > 1.0) if model.family == "dlrm" else others,
    }
    if not is_looped(model):
        found["loop"] = either(others, strategy.sequence_parallel > 0.0)
    return found
