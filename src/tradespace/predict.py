"""predict(model, cluster, strategy) -> Step: the whole model on one page."""

from __future__ import annotations

from collections.abc import Mapping

from tradespace.cost.compute import rates
from tradespace.cost.data_parallel import data_exchange, optimizer_time
from tradespace.cost.memory import footprints, most_trained, worst
from tradespace.cost.stage import BlockTimes, Exchanges, block_times, busy_parts, stage_times, transfer
from tradespace.cost.training_loop import SCHEDULE, training_loop
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.network.folding import expert_shard, fold
from tradespace.network.placement import layout
from tradespace.num import Num, ceil, floor, log2, maximum, where
from tradespace.schedule.table import SCHEDULES
from tradespace.step import Step
from tradespace.workload.count import flops_per_token, numbers, parameters, recomputed_flops
from tradespace.workload.families import blocks_of
from tradespace.workload.legality import illegal
from tradespace.workload.loops import is_looped
from tradespace.workload.operator import total
from tradespace.workload.partition import by_kind, partition


def predict(model: Model, cluster: Cluster, strategy: Strategy) -> Step:
    """Time and memory of one training step; every numeric field may be a number or an open-axis array.

    The core trusts its inputs: `inputs.load` checks them. Candidates that are illegal or do not fit are data
    (`Step.illegal`, `Step.fits`), never exceptions.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100", devices=8)
    >>> strategy = load.strategy("tp=2,global_batch=64,recompute=selective", cluster=cluster)
    >>> step = predict(load.model("llama-3.1-8b"), cluster, strategy)
    >>> bool(step.fits), 0.3 < step.mfu < 0.6
    (True, True)
    """
    if strategy.schedule == SCHEDULE or is_looped(model):
        return training_loop(model, cluster, strategy)
    profile, precision = strategy.profile, strategy.precision
    data = cluster.devices / (strategy.tensor * strategy.context * strategy.pipeline)
    shard = where(strategy.shard > 0.0, strategy.shard, data * strategy.context)
    microbatches = ceil(strategy.global_batch / (data * strategy.micro_batch))

    blocks = blocks_of(model, strategy)
    groups, shards = layout(strategy, cluster, data, shard), (shard, shard)
    if any(block.experts for block in blocks.values()):
        shards = (shard, expert_shard(strategy, data))
        groups = fold(groups, strategy, cluster, data, shards[1])
    speed = rates(cluster.device, precision.gemm, precision.value, precision.cast, profile)
    prices = Exchanges(cluster, groups)
    times = {kind: block_times(block, speed, prices, strategy) for kind, block in blocks.items()}
    layers = numbers(model)
    stages = by_kind(partition(model.layers, strategy.pipeline, head_cost(times, layers, strategy)), model)

    schedule = SCHEDULES[strategy.schedule]
    memory = footprints(model, blocks, stages, strategy, shards, microbatches, schedule.in_flight)
    held = most_trained(memory)

    p2p = transfer(strategy, prices, blocks[next(iter(layers))].volume)
    pipeline = stage_times(times, stages, strategy, microbatches, p2p)
    exchange = data_exchange(strategy, cluster, groups, blocks, times, layers, held, shards, pipeline)
    update = optimizer_time(strategy, held, shards, speed.memory)
    worked = schedule.makespan(pipeline) + (exchange + (update + profile.step_fixed))
    jitter = profile.jitter * log2(maximum(cluster.devices / 8.0, 1.0))

    count = parameters(model)
    flops = flops_per_token(model) * (strategy.global_batch * model.seq)
    return Step(
        model=model,
        cluster=cluster,
        strategy=strategy,
        step_time=worked * (1.0 + jitter),
        jitter=jitter,
        once={"exposed_data": exchange, "optimizer": update, "other": profile.step_fixed},
        per_microbatch=busy_parts(times, layers),
        numbers={**layers, "embedding": 1.0, "head": 1.0},
        p2p=p2p,
        kernels={kind: block.kernels for kind, block in times.items()},
        stages={name: part.parts for name, part in memory.items()},
        memory_total=worst([part.total for part in memory.values()]),
        capacity=cluster.local.capacity - cluster.device.reserve,
        illegal=illegal(model, strategy, data, microbatches),
        data=data,
        microbatches=microbatches,
        model_flops=flops,
        recomputed_flops=recomputed_flops(model),
        parameters={"total": count.total, "active": count.active},
        sources=(cluster.device.source, cluster.source, profile.source, *schedule.sources),
    )


def head_cost(times: dict[str, BlockTimes], layers: Mapping[str, Num], strategy: Strategy) -> Num:
    """How many layers the head counts as where a framework splits layers over stages by cost; else 0."""
    if isinstance(strategy.profile.balanced, float) and strategy.profile.balanced == 0.0:
        return 0.0  # else every axis of the times would enter the stage sizes
    head = times["head"]
    every = [number * (times[kind].forward_total + times[kind].backward_total) for kind, number in layers.items()]
    ratio = (head.forward_total + head.backward_total) * total(list(layers.values())) / total(every)
    return strategy.profile.balanced * floor(ratio + 0.5)
