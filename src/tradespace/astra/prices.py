"""One collective or message of an exported step, priced by the prediction's network and by ASTRA-sim's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tradespace.astra.chakra import SEND, Node
from tradespace.astra.from_step import Exported
from tradespace.astra.ranks import Communicators
from tradespace.astra.stages import placed
from tradespace.astra.tape import Group
from tradespace.cost.stage import Exchanges
from tradespace.cost.training_loop import groups as loop_layout
from tradespace.inputs.cluster import Cluster
from tradespace.network.astra import Network, System
from tradespace.network.collectives import collective_time, exposed_fill, ring_pass_time, transfer_time
from tradespace.network.placement import Layout, joined
from tradespace.step import Step
from tradespace.workload.families import blocks_of
from tradespace.workload.operator import Exchange


@dataclass(frozen=True)
class Site:
    """Where a step's groups lie, and the exchanges of routed tokens by their bytes."""

    step: Step
    found: Exported
    layout: Layout
    routed: Mapping[int, Exchange]

    @staticmethod
    def of(step: Step, found: Exported) -> Site:
        """The site of a step."""
        if not step.per_microbatch:
            return Site(step, found, loop_layout(step.strategy, step.cluster, step.data), {})
        blocks = blocks_of(step.model, step.strategy)
        works = [
            work
            for block in blocks.values()
            for op in block.operators
            for work in (op.forward, op.input_grad, op.weight_grad)
            if work is not None
        ]
        sent = [exchange for work in works for exchange in work.exchanges if exchange.routing is not None]
        return Site(step, found, placed(step, blocks), {round(float(exchange.volume)): exchange for exchange in sent})


@dataclass(frozen=True)
class Case:
    """A node of the first rank of `stage`, and its group; variants of either model may be given."""

    site: Site
    node: Node
    stage: int
    group: Group

    @property
    def rank(self) -> int:
        """The rank that is looked at."""
        return self.stage * self.site.found.tapes.stride

    @property
    def members(self) -> tuple[int, ...]:
        """Ranks of the group, or both ends of a message."""
        if self.node.kind == SEND:
            return (self.rank, self.site.found.traces[self.rank].peers[self.node.ref][0])
        return self.site.found.tapes.grids[self.group.names[0]].members(self.group.names, self.rank)

    @property
    def bytes(self) -> int:
        """Bytes of the full tensor; of an all-to-all and a message those that one rank sends."""
        return self.node.size * (self.group.size if self.node.comm == "all_gather" else 1)

    def physical(self, cluster: Cluster | None = None, size: float | None = None, routed: bool = True) -> float:
        """Seconds in the prediction; `routed`: a token goes once to each node, where the operator says so."""
        site, cluster = self.site, cluster or self.site.step.cluster
        span, size = joined(site.layout, *self.group.names), float(self.bytes) if size is None else size
        if self.node.kind == SEND:
            return float(transfer_time(cluster.network, span, size, site.step.strategy.profile.p2p_latency))
        if ".ring_pass" in self.node.name:
            return float(ring_pass_time(cluster.network, span, size))
        if routed and self.node.comm == "all_to_all" and self.node.size in site.routed:
            return float(Exchanges(cluster, site.layout).time(replace(site.routed[self.node.size], volume=size)))
        return float(
            collective_time(self.node.comm, cluster.network, span, size, exposed_fill(cluster, self.node.comm))
        )

    def astra(self, net: Network | None = None, system: System | None = None) -> float:
        """Seconds in ASTRA-sim, if all ranks start together."""
        found = self.site.found
        net, system = net or found.network, system or found.machine.system
        if self.node.kind == SEND:
            sender, receiver = self.members
            return net.message(sender, receiver, self.node.size) / 1e9
        world = Communicators(net, system, found.groups)
        key, members = world.find(self.rank, found.traces[self.rank].comms[self.node.ref])
        timed = world.collective(key, members, self.node)
        return (timed.together if timed.alike else max(timed.ends(members, [0] * len(members)))) / 1e9
