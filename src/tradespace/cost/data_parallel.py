"""Exchange of gradients and parameters among data-parallel ranks, and what overlap leaves of it.

Reduction hides behind the last microbatch's backward, gathering behind the first forward; FSDP gathers per layer and
leaves a share of the shorter of compute and exchange exposed (measured, docs/equations.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradespace.cost.stage import BlockTimes
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.strategy import Strategy
from tradespace.network.collectives import collective_time, together_time
from tradespace.network.placement import Layout, Span, crosses, joined
from tradespace.num import Num, any_true, at_least, both, maximum, minimum, where
from tradespace.schedule.stage_times import StageTimes
from tradespace.workload.operator import Block, total


def data_exchange(
    strategy: Strategy,
    cluster: Cluster,
    layout: Layout,
    blocks: dict[str, Block],
    times: dict[str, BlockTimes],
    numbers: Mapping[str, Num],
    held: tuple[Num, Num],
    shards: tuple[Num, Num],
    pipeline: StageTimes,
) -> Num:
    """Exposed seconds per step of gradient and parameter exchange, by ZeRO stage (an axis may hold several).

    `numbers` of layers of each kind; `held`: trained parameters on the worst stage, dense and of experts, whose
    sharded states `shards` devices share.
    """
    streamed = both(strategy.zero >= 3.0, strategy.pipeline == 1.0)
    fsdp: Num = 0.0
    if any_true(streamed):
        fsdp = exposed_fsdp(strategy, cluster, layout, blocks, times, numbers, pipeline.microbatches, shards[0])
        if streamed is True:
            return fsdp
    chunks = strategy.virtual_stages
    windows = (pipeline.forward[0] / chunks, pipeline.backward[0] / chunks)
    if has_experts(held):
        free = _free_shares(layout, times, numbers)
        windows = (windows[0] * free[0], windows[1] * free[1])
    late = exposed_data(strategy, cluster, layout, held, shards, windows, pipeline.microbatches)
    return where(streamed, fsdp, late)


def optimizer_time(strategy: Strategy, held: tuple[Num, Num], shards: tuple[Num, Num], memory_rate: Num) -> Num:
    """Seconds of the update: traffic of the local shards (dense, experts) over memory bandwidth, plus launches."""
    local = held[0] * (1.0 - strategy.at_least("zero", 1.0) * (1.0 - 1.0 / shards[0]))
    if has_experts(held):
        local = local + held[1] * (1.0 - strategy.at_least("zero", 1.0) * (1.0 - 1.0 / shards[1]))
    return local * (strategy.optimizer.traffic / memory_rate) + strategy.profile.optimizer_fixed


def exposed_data(
    strategy: Strategy,
    cluster: Cluster,
    layout: Layout,
    held: tuple[Num, Num],
    shards: tuple[Num, Num],
    windows: tuple[Num, Num],
    microbatches: Num,
) -> Num:
    """Exposed seconds per step for ZeRO 0-2, and for FSDP inside a pipeline (gathered once per step).

    `held` on the worst stage; `windows`: seconds of the first forward and the last backward of one chunk.
    ZeRO 0 all-reduces gradients; 1-3 reduce-scatter them and gather parameters. ZeRO 2 without a pipeline reduces in
    every microbatch.
    """
    profile, overlap = strategy.profile, strategy.overlap
    parts: list[Part] = [(held[0], shards[0], DENSE)]
    if has_experts(held):
        parts.append((held[1], shards[1], EXPERTS))
    reduce, gather = _exchanges_time(strategy, cluster, layout, parts)
    first, last = windows
    behind_b = last * (profile.data_window * overlap.gradient)
    behind_f = first * (profile.data_window * overlap.parameter)
    late = maximum(reduce - behind_b, 0.0)
    second = strategy.at_least("zero", 2.0) * (1.0 - strategy.at_least("pipeline", 2.0))
    each = 1.0 + second * (microbatches - 1.0)
    return late * each + maximum(gather - behind_f, 0.0)


Groups = tuple[tuple[str, ...], str]
DENSE: Groups = (("context", "shard"), "replica")
EXPERTS: Groups = (("expert_shard",), "expert_replica")
"""Groups that share the sharded states of dense parameters and of experts, and their replicas outside."""


Part = tuple[Num, Num, Groups]
"""Weights, devices that share their sharded states, and the groups inside and outside of those."""


def has_experts(held: tuple[Num, Num]) -> bool:
    """Whether the second number, of expert parameters, is more than a plain 0."""
    return not (isinstance(held[1], float) and held[1] == 0.0)


def _free_shares(layout: Layout, times: dict[str, BlockTimes], numbers: Mapping[str, Num]) -> tuple[Num, Num]:
    """Shares of the layers' forward and backward in which the experts' all-to-all leaves the links of the data group
    free: where both cross the same dim, one waits for the other."""
    shared = crosses(joined(layout, "context", "shard", "replica"), layout.spans["expert"])
    free: list[Num] = []
    for i, phase in enumerate(("forward_total", "backward_total")):
        sent = total([number * times[kind].sent[i] for kind, number in numbers.items()])
        busy = total([number * getattr(times[kind], phase) for kind, number in numbers.items()])
        free.append(maximum(1.0 - shared * (sent / busy), 0.0))
    return free[0], free[1]


def _exchanges_time(strategy: Strategy, cluster: Cluster, layout: Layout, parts: Sequence[Part]) -> tuple[Num, Num]:
    """Seconds to reduce the gradients and to gather the parameters; dense weights and experts run at once."""
    running: dict[str, list[tuple[str, Span, Num]]] = {"plain": [], "scatter": [], "replicas": [], "gather": []}
    for parameters, shard, (inside, outside) in parts:
        inner = joined(layout, *inside)
        gradients = parameters * strategy.precision.reduce
        running["plain"].append(("all_reduce", joined(layout, *inside, outside), gradients))
        running["scatter"].append(("reduce_scatter", inner, gradients))
        running["replicas"].append(("all_reduce", layout.spans[outside], gradients / shard))
        running["gather"].append(("all_gather", inner, parameters * strategy.precision.value))
    times = {name: together_time(cluster.network, each, cluster.fill) for name, each in running.items()}
    sharded = strategy.at_least("zero", 1.0)
    reduce = sharded * (times["scatter"] + times["replicas"]) + (1.0 - sharded) * times["plain"]
    return reduce, sharded * times["gather"]


def exposed_fsdp(
    strategy: Strategy,
    cluster: Cluster,
    layout: Layout,
    blocks: dict[str, Block],
    times: dict[str, BlockTimes],
    numbers: Mapping[str, Num],
    microbatches: Num,
    shard: Num,
) -> Num:
    """Exposed seconds per step of FSDP without a pipeline: every microbatch gathers each layer twice and scatters
    its gradients.

    Per layer and direction: max(slowdown compute, exchange) + x min(compute, exchange) - compute.
    """
    ends = BlockSum(
        blocks["embedding"].weights + blocks["head"].weights,
        0.0,
        (blocks["embedding"].trained[0] + blocks["head"].trained[0], 0.0),
        times["embedding"].forward_total + times["head"].forward_total,
        times["embedding"].backward_total + times["head"].backward_total,
    )
    exposed: Num = 0.0
    slowed = 1.0 + (strategy.profile.fsdp_slowdown - 1.0) * at_least(shard, 2.0)
    for kind, number in numbers.items():
        block, time = blocks[kind], times[kind]
        layer = BlockSum(block.weights, block.routed, block.trained, time.forward_total, time.backward_total)
        exposed = exposed + number * _exposed_unit(strategy, cluster, layout, layer, slowed)
    exposed = exposed + _exposed_unit(strategy, cluster, layout, ends, slowed)
    return exposed * microbatches


class BlockSum:
    """Parameters (all, of routed experts; with a gradient outside and in experts) and seconds of one FSDP unit."""

    def __init__(self, weights: Num, routed: Num, trained: tuple[Num, Num], forward: Num, backward: Num) -> None:
        self.weights, self.routed, self.trained = weights, routed, trained
        self.forward, self.backward = forward, backward


def _exposed_unit(strategy: Strategy, cluster: Cluster, layout: Layout, unit: BlockSum, slowed: Num) -> Num:
    profile = strategy.profile
    inner = joined(layout, "context", "shard")
    dense, routed = unit.trained
    if has_experts((0.0, unit.routed)):
        gather, scatter = _unit_exchange(strategy, cluster, inner, unit.weights - unit.routed, dense)
        more = _unit_exchange(strategy, cluster, layout.spans["expert_shard"], unit.routed, routed)
        gather, scatter = gather + more[0], scatter + more[1]
    else:
        gather, scatter = _unit_exchange(strategy, cluster, inner, unit.weights, dense)
    total: Num = 0.0
    for compute, exchange in ((unit.forward, gather), (unit.backward, gather + scatter)):
        total = total + (maximum(compute * slowed, exchange) + profile.fsdp_exposed * minimum(compute, exchange))
    return total - (unit.forward + unit.backward)


def _unit_exchange(strategy: Strategy, cluster: Cluster, group: Span, weights: Num, trained: Num) -> tuple[Num, Num]:
    """Seconds to gather the parameters of one unit and to scatter the gradients of the trained ones."""
    network, fill = cluster.network, cluster.fill
    gather = collective_time("all_gather", network, group, weights * strategy.precision.value, fill)
    scatter = collective_time("reduce_scatter", network, group, trained * strategy.precision.reduce, fill)
    return gather, scatter
