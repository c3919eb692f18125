"""From blocks to StageTimes: sum operator and exchange times, add the host's launch floor, spread over stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tradespace.cost.compute import Rates, phase_time
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.strategy import Strategy
from tradespace.network.collectives import collective_time, exposed_fill, ring_pass_time, transfer_time
from tradespace.network.dispatch import dispatch_time
from tradespace.network.placement import Layout
from tradespace.num import Num, maximum, norm4
from tradespace.schedule.stage_times import StageTimes
from tradespace.workload.operator import Block, Exchange, flagged, total
from tradespace.workload.partition import StageClass


@dataclass(frozen=True, slots=True, eq=False)
class BlockTimes:
    """Seconds of one block for one microbatch: compute by phase, exposed exchanges, recompute, host excess.

    `forward_total` and `backward_total` are what the stage is busy for: norm4 of device and host time. `kernels` are
    the compute times of all phases with their kind of kernel (matrix, attention, memory_bound). `sent`: seconds that
    the experts' exchanges keep the network busy, forward and backward, hidden or not.
    """

    forward: Num
    input_grad: Num
    weight_grad: Num
    tensor: Num
    context: Num
    expert: Num
    recompute: Num
    host: Num
    forward_total: Num
    backward_total: Num
    kernels: tuple[tuple[str, Num], ...]
    sent: tuple[Num, Num] = (0.0, 0.0)


KINDS = {
    "gemm": "matrix",
    "grouped": "matrix",
    "adapter": "matrix",
    "once": "matrix",
    "head": "matrix",
    "attention": "attention",
    "score": "attention",
    "pass": "memory_bound",
    "lookup": "memory_bound",
    "held": "memory_bound",
}
PHASES = ("forward", "input_grad", "weight_grad")


@dataclass(eq=False)
class Exchanges:
    """Prices exchanges on a cluster's network, each distinct one once."""

    cluster: Cluster
    layout: Layout
    known: dict[object, tuple[object, Num]] = field(default_factory=dict)

    def time(self, exchange: Exchange) -> Num:
        """Seconds of a collective, whatever its share."""
        key = (exchange.collective, exchange.group, id(exchange.volume))
        if key not in self.known:
            span, network = self.layout.spans[exchange.group], self.cluster.network
            fill = exposed_fill(self.cluster, exchange.collective)
            if exchange.collective == "ring_pass":
                time = ring_pass_time(network, span, exchange.volume)
            elif exchange.routing is None:
                time = collective_time(exchange.collective, network, span, exchange.volume, fill)
            else:
                time = dispatch_time(network, span, exchange.volume, exchange.routing, fill)
            self.known[key] = (exchange.volume, time)  # holding the volume keeps its id from being used again
        return self.known[key][1]

    def sum(self, exchanges: tuple[Exchange, ...]) -> Num:
        """Seconds of several collectives, each weighted by its share."""
        key = tuple(id(exchange) for exchange in exchanges)
        if key not in self.known:
            shown = [e for e in exchanges if not (isinstance(e.share, float) and e.share == 0.0)]
            times = [
                self.time(e) if isinstance(e.share, float) and e.share == 1.0 else self.time(e) * e.share for e in shown
            ]
            self.known[key] = (exchanges, total(times))
        return self.known[key][1]


@dataclass(eq=False)
class Sums:
    """Seconds of a block by phase, and what of the forward is run again, as lists of terms; `traffic` = bytes of
    memory-bound kernels that nothing else depends on, which become seconds together."""

    compute: dict[str, list[Num]] = field(default_factory=lambda: {phase: [] for phase in PHASES})
    tensor: dict[str, list[Num]] = field(default_factory=lambda: {phase: [] for phase in PHASES})
    context: dict[str, list[Num]] = field(default_factory=lambda: {phase: [] for phase in PHASES})
    expert: dict[str, list[Num]] = field(default_factory=lambda: {phase: [] for phase in PHASES})
    beside: dict[str, list[Num]] = field(default_factory=lambda: {phase: [] for phase in PHASES})
    traffic: dict[str, list[Num]] = field(default_factory=lambda: {phase: [] for phase in PHASES})
    again: list[Num] = field(default_factory=list)
    again_expert: list[Num] = field(default_factory=list)


def block_times(block: Block, rates: Rates, prices: Exchanges, strategy: Strategy) -> BlockTimes:
    """Sum a block's operators; a context ring hides behind its own attention blocks, an all-gather is waited for."""
    sums = Sums()
    kernels: list[tuple[str, Num]] = []
    for op in block.operators:
        again = op.module in strategy.modules
        for phase, work in zip(PHASES, (op.forward, op.input_grad, op.weight_grad), strict=True):
            if work is None:
                continue
            if work.shape is None and not (again or work.exchanges or op.name.startswith("shared_")):
                sums.traffic[phase].append(work.traffic)
                continue
            seconds = phase_time(op, work, phase, rates)
            sums.compute[phase].append(seconds)
            kernels.append((KINDS[op.kind], seconds))
            if again and phase == "forward":
                sums.again.append(seconds)
            if op.name.startswith("shared_"):
                sums.beside[phase].append(seconds)
            if work.exchanges:
                _wait(sums, phase, seconds, work.exchanges, prices, again)
    for phase in PHASES:
        if sums.traffic[phase]:
            seconds = total(sums.traffic[phase]) / rates.memory
            sums.compute[phase].append(seconds)
            kernels.append(("memory_bound", seconds))
    layer = block.kind not in ("embedding", "head")
    return _assemble(layer, block.experts, sums, tuple(kernels), strategy)


def _wait(
    sums: Sums, phase: str, seconds: Num, exchanges: tuple[Exchange, ...], prices: Exchanges, again: bool
) -> None:
    """Add what a phase waits for to the sums of its group; a context ring hides behind `seconds` of compute, an
    all-gather of keys and values comes before it (Llama 3, arXiv 2407.21783, section 3.3.2)."""
    group = exchanges[0].group
    if group == "context":
        ring = tuple(each for each in exchanges if each.collective == "ring_pass")
        sums.context[phase].append(prices.sum(tuple(each for each in exchanges if each.collective != "ring_pass")))
        if ring:
            sums.context[phase].append(maximum(prices.sum(ring) - seconds, 0.0))
        return
    wait = prices.sum(exchanges)
    if group == "expert":
        sums.expert[phase].append(wait)
        if again and phase == "forward":
            sums.again_expert.append(wait)
    else:
        sums.tensor[phase].append(wait)


def _assemble(
    layer: bool, experts: bool, sums: Sums, kernels: tuple[tuple[str, Num], ...], strategy: Strategy
) -> BlockTimes:
    """Phases of a block together; in a layer the host's launch floor counts, and what recomputation repeats."""
    forward, input_grad, weight_grad = (total(sums.compute[phase]) for phase in PHASES)
    shown = 1.0 - strategy.profile.hide_tensor * strategy.overlap.tensor * strategy.sequence_parallel
    wait_f = total(sums.tensor["forward"]) * shown
    wait_b = total(sums.tensor["input_grad"] + sums.tensor["weight_grad"]) * shown
    ring_f, ring_b = total(sums.context["forward"]), total(sums.context["input_grad"])
    device_f = total([forward, wait_f, ring_f])
    device_b = total([input_grad, weight_grad, wait_b, ring_b])
    if not layer:
        wait, ring = total([wait_f, wait_b]), total([ring_f, ring_b])
        return BlockTimes(forward, input_grad, weight_grad, wait, ring, 0.0, 0.0, 0.0, device_f, device_b, kernels)
    sent_f, sent_b, sent_again = _dispatch(sums, strategy) if experts else (0.0, 0.0, 0.0)
    if experts:
        device_f, device_b = device_f + sent_f, device_b + sent_b
    host_f, host_b = _host(strategy, experts)
    busy_f, busy_b = norm4(device_f, host_f), norm4(device_b, host_b)
    full = strategy.at_least("recompute", 2.0)
    some = strategy.at_least("recompute", 1.0) - full
    attention = some * total(sums.again)
    again = some * sent_again if experts else 0.0
    return BlockTimes(
        forward=forward,
        input_grad=input_grad,
        weight_grad=weight_grad,
        tensor=wait_f * (1.0 + full) + wait_b,
        context=total([ring_f * (1.0 + full), ring_b]),
        expert=sent_f * (1.0 + full) + sent_b + again if experts else 0.0,
        recompute=full * forward + attention,
        host=(busy_f - device_f) * (1.0 + full) + (busy_b - device_b),
        forward_total=busy_f,
        backward_total=busy_b + total([full * busy_f + attention, again]),
        kernels=kernels,
        sent=(total(sums.expert["forward"]), total(sums.expert["input_grad"])),
    )


def _dispatch(sums: Sums, strategy: Strategy) -> tuple[Num, Num, Num]:
    """Exposed seconds of dispatch and combine: forward, backward, and again where a module is recomputed.

    The profile's share hides behind other work; what is left may hide behind the shared experts.
    """
    shown = 1.0 - strategy.profile.hide_expert * strategy.overlap.expert
    beside = strategy.overlap.shared_expert
    sent_f = total(sums.expert["forward"]) * shown
    sent_b = total(sums.expert["input_grad"]) * shown
    behind_f = total(sums.beside["forward"]) * beside
    behind_b = total(sums.beside["input_grad"] + sums.beside["weight_grad"]) * beside
    return maximum(sent_f - behind_f, 0.0), maximum(sent_b - behind_b, 0.0), total(sums.again_expert) * shown


def _host(strategy: Strategy, experts: bool) -> tuple[Num, Num]:
    """Host launch floor of a layer, forward and backward; about nothing under CUDA graphs."""
    profile, graphs = strategy.profile, strategy.cuda_graphs
    split = strategy.at_least("tensor", 2.0)
    eager_f = profile.host_f + split * (profile.host_tensor_f - profile.host_f)
    eager_b = profile.host_b + split * (profile.host_tensor_b - profile.host_b)
    if experts:
        eager_f, eager_b = maximum(eager_f, profile.host_experts_f), maximum(eager_b, profile.host_experts_b)
    return eager_f + graphs * (profile.graph_f - eager_f), eager_b + graphs * (profile.graph_b - eager_b)


def transfer(strategy: Strategy, prices: Exchanges, volume: Num) -> Num:
    """Exposed seconds of one stage-to-stage transfer of `volume` bytes: 1/tensor of the activation, gathered again
    without sequence parallelism (Narayanan et al. 2021, section 4.1: scatter/gather)."""
    profile = strategy.profile
    network, spans = prices.cluster.network, prices.layout.spans
    sent = transfer_time(network, spans["pipeline"], volume / strategy.tensor, profile.p2p_latency)
    gathered = prices.time(Exchange("all_gather", "tensor", volume)) * (1.0 - strategy.sequence_parallel)
    hidden = strategy.at_least("virtual_stages", 2.0) * (profile.hide_p2p * strategy.overlap.pipeline)
    time = (sent + gathered) * (1.0 - hidden)
    return strategy.at_least("pipeline", 2.0) * time


def stage_times(
    times: dict[str, BlockTimes],
    stages: tuple[StageClass, ...],
    strategy: Strategy,
    microbatches: Num,
    p2p: Num,
) -> StageTimes:
    """Per class of stage: layers of each kind x layer + embedding + head."""
    embedding, head = times["embedding"], times["head"]
    forward: list[Num] = []
    backward: list[Num] = []
    for stage in stages:
        for times_of, part in ((forward, "forward_total"), (backward, "backward_total")):
            ends = (flagged(stage.embedding, getattr(embedding, part)), flagged(stage.head, getattr(head, part)))
            layers = [number * getattr(times[kind], part) for kind, number in stage.numbers.items()]
            times_of.append(total([*ends, *layers]))  # ends first: `total` adds plain numbers first
    return StageTimes(
        counts=tuple(stage.count for stage in stages),
        forward=tuple(forward),
        backward=tuple(backward),
        p2p=p2p,
        pipeline=strategy.pipeline,
        virtual_stages=strategy.virtual_stages,
        microbatches=microbatches,
    )


PARTS = {
    "forward": "forward",
    "input_grad": "input_grad",
    "weight_grad": "weight_grad",
    "exposed_tensor": "tensor",
    "exposed_context": "context",
    "exposed_expert": "expert",
    "recompute": "recompute",
    "other": "host",
}
ENDS = ("forward", "input_grad", "weight_grad", "exposed_tensor", "exposed_context")
"""Parts of the step that embedding and head have too."""


def busy_parts(times: dict[str, BlockTimes], numbers: Mapping[str, Num]) -> dict[str, tuple[Num, tuple[Num, ...]]]:
    """Seconds of one microbatch by part of the step: in one layer of a model with one kind; then in embedding and head,
    and in all layers of a model with several kinds."""
    embedding, head = times["embedding"], times["head"]
    layer = times.get("layer")
    found: dict[str, tuple[Num, tuple[Num, ...]]] = {}
    for name, part in PARTS.items():
        ends: list[Num] = [getattr(embedding, part), getattr(head, part)] if name in ENDS else []
        if layer is None:
            ends += [number * getattr(times[kind], part) for kind, number in numbers.items()]
        found[name] = (0.0 if layer is None else getattr(layer, part), tuple(ends))
    return found
