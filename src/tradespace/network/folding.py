"""The second folding of a stage's devices: expert x expert-tensor x expert-data (arXiv 2504.14960).

Dense layers use tensor x context x data of the same devices; both foldings share the pipeline.
"""

from __future__ import annotations

from tradespace.inputs.cluster import Cluster
from tradespace.inputs.strategy import Strategy
from tradespace.network.placement import Layout, place
from tradespace.num import Num, floor, maximum, minimum, where

FOLDED = {
    "tensor": ("expert_tensor",),
    "context": (),
    "expert": ("expert",),
    "data": ("expert_shard", "expert_replica"),
    "pipeline": ("pipeline",),
}
"""Group of the dense folding -> groups of the experts' folding at its place in the order."""


def expert_data(strategy: Strategy, data: Num) -> Num:
    """Devices that hold the same experts: tensor x context x data / (expert x expert_tensor), at least one."""
    devices = (strategy.tensor * strategy.context) * data
    return maximum(floor(devices / (strategy.expert * strategy.expert_tensor)), 1.0)


def expert_shard(strategy: Strategy, data: Num) -> Num:
    """Devices that share one copy of sharded expert states: of the expert-data group, those inside a shard group."""
    whole = expert_data(strategy, data)
    inside = strategy.shard * strategy.tensor / (strategy.expert * strategy.expert_tensor)
    return where(strategy.shard > 0.0, minimum(maximum(inside, 1.0), whole), whole)


def fold(dense: Layout, strategy: Strategy, cluster: Cluster, data: Num, shard: Num) -> Layout:
    """The layout with the experts' groups beside the dense ones; `shard` devices share one copy of sharded expert
    states, what is left of the expert-data group are replicas."""
    degrees = {
        "expert_tensor": strategy.expert_tensor,
        "expert": strategy.expert,
        "expert_shard": shard,
        "expert_replica": expert_data(strategy, data) / shard,
        "pipeline": strategy.pipeline,
    }
    order = tuple(group for name in strategy.order for group in FOLDED[name])
    folded = place(degrees, order, cluster.network, cluster.devices)
    return Layout({**folded.spans, **dense.spans}, dense.byte_time, dense.slowdown)
