"""From blocks to StageTimes: sum operator and exchange times, add the host's launch floor, spread over stages."""

from __future__ import annotations

from dataclasses import dataclass, field

from tradespace.cost.compute import Rates, phase_time
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.strategy import Strategy
from tradespace.network.collectives import collective_time, transfer_time
from tradespace.network.placement import Layout
from tradespace.num import Num, at_least, maximum, norm4
from tradespace.schedule.stage_times import StageTimes
from tradespace.workload.operator import Block, Exchange, flagged, total
from tradespace.workload.partition import StageClass


@dataclass(frozen=True, slots=True, eq=False)
class BlockTimes:
    """Seconds of one block for one microbatch: compute by phase, exposed exchanges, recompute, host excess.

    `forward_total` and `backward_total` are what the stage is busy for: norm4 of device and host time. `kernels` are
    the compute times of all phases with their kind of kernel (matrix, attention, memory_bound).
    """

    forward: Num
    input_grad: Num
    weight_grad: Num
    tensor: Num
    context: Num
    recompute: Num
    host: Num
    forward_total: Num
    backward_total: Num
    kernels: tuple[tuple[str, Num], ...]


KINDS = {
    "gemm": "matrix",
    "head": "matrix",
    "attention": "attention",
    "score": "attention",
    "pass": "memory_bound",
    "lookup": "memory_bound",
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
            time = collective_time(exchange.collective, network, span, exchange.volume, self.cluster.fill)
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


def block_times(block: Block, rates: Rates, prices: Exchanges, strategy: Strategy) -> BlockTimes:
    """Sum a block's operators; a context ring hides behind its own attention blocks."""
    compute: dict[str, list[Num]] = {phase: [] for phase in PHASES}
    tensor: dict[str, list[Num]] = {phase: [] for phase in PHASES}
    context: dict[str, list[Num]] = {phase: [] for phase in PHASES}
    kernels: list[tuple[str, Num]] = []
    core: list[Num] = []
    for op in block.operators:
        for phase, work in zip(PHASES, (op.forward, op.input_grad, op.weight_grad), strict=True):
            if work is None:
                continue
            seconds = phase_time(op, work, phase, rates)
            compute[phase].append(seconds)
            kernels.append((KINDS[op.kind], seconds))
            if op.core and phase == "forward":
                core.append(seconds)
            if work.exchanges and work.exchanges[0].group == "context":
                ring = prices.sum(work.exchanges)
                if not (isinstance(ring, float) and ring == 0.0):
                    context[phase].append(maximum(ring - seconds, 0.0))
            elif work.exchanges:
                tensor[phase].append(prices.sum(work.exchanges))
    return _assemble(block.kind == "layer", compute, tensor, context, core, tuple(kernels), strategy)


def _assemble(
    layer: bool,
    compute: dict[str, list[Num]],
    tensor: dict[str, list[Num]],
    context: dict[str, list[Num]],
    core: list[Num],
    kernels: tuple[tuple[str, Num], ...],
    strategy: Strategy,
) -> BlockTimes:
    """Phases of a block together; in a layer the host's launch floor counts, and what recomputation repeats."""
    forward, input_grad, weight_grad = (total(compute[phase]) for phase in PHASES)
    shown = 1.0 - strategy.profile.hide_tensor * strategy.overlap.tensor * strategy.sequence_parallel
    wait_f = total(tensor["forward"]) * shown
    wait_b = total(tensor["input_grad"] + tensor["weight_grad"]) * shown
    ring_f, ring_b = total(context["forward"]), total(context["input_grad"])
    device_f = total([forward, wait_f, ring_f])
    device_b = total([input_grad, weight_grad, wait_b, ring_b])
    if not layer:
        wait, ring = total([wait_f, wait_b]), total([ring_f, ring_b])
        return BlockTimes(forward, input_grad, weight_grad, wait, ring, 0.0, 0.0, device_f, device_b, kernels)
    host_f, host_b = _host(strategy)
    busy_f, busy_b = norm4(device_f, host_f), norm4(device_b, host_b)
    full = at_least(strategy.recompute, 2.0)
    attention = (at_least(strategy.recompute, 1.0) - full) * total(core)
    return BlockTimes(
        forward=forward,
        input_grad=input_grad,
        weight_grad=weight_grad,
        tensor=wait_f * (1.0 + full) + wait_b,
        context=total([ring_f * (1.0 + full), ring_b]),
        recompute=full * forward + attention,
        host=(busy_f - device_f) * (1.0 + full) + (busy_b - device_b),
        forward_total=busy_f,
        backward_total=busy_b + (full * busy_f + attention),
        kernels=kernels,
    )


def _host(strategy: Strategy) -> tuple[Num, Num]:
    """Host launch floor of a layer, forward and backward; about nothing under CUDA graphs."""
    profile, graphs = strategy.profile, strategy.cuda_graphs
    split = at_least(strategy.tensor, 2.0)
    eager_f = profile.host_f + split * (profile.host_tensor_f - profile.host_f)
    eager_b = profile.host_b + split * (profile.host_tensor_b - profile.host_b)
    return eager_f + graphs * (profile.graph_f - eager_f), eager_b + graphs * (profile.graph_b - eager_b)


def transfer(strategy: Strategy, prices: Exchanges, volume: Num) -> Num:
    """Exposed seconds of one stage-to-stage transfer of `volume` bytes: 1/tensor of the activation, gathered again
    without sequence parallelism (Narayanan et al. 2021, section 4.1: scatter/gather)."""
    profile = strategy.profile
    network, spans = prices.cluster.network, prices.layout.spans
    sent = transfer_time(network, spans["pipeline"], volume / strategy.tensor, profile.p2p_latency)
    gathered = prices.time(Exchange("all_gather", "tensor", volume)) * (1.0 - strategy.sequence_parallel)
    hidden = at_least(strategy.virtual_stages, 2.0) * (profile.hide_p2p * strategy.overlap.pipeline)
    time = (sent + gathered) * (1.0 - hidden)
    return at_least(strategy.pipeline, 2.0) * time


def stage_times(
    times: dict[str, BlockTimes],
    stages: tuple[StageClass, ...],
    strategy: Strategy,
    microbatches: Num,
    p2p: Num,
) -> StageTimes:
    """Per class of stage: layers x layer + embedding + head."""
    layer, embedding, head = times["layer"], times["embedding"], times["head"]
    forward: list[Num] = []
    backward: list[Num] = []
    for stage in stages:
        for times_of, part in ((forward, "forward_total"), (backward, "backward_total")):
            ends = (flagged(stage.embedding, getattr(embedding, part)), flagged(stage.head, getattr(head, part)))
            times_of.append(total([stage.layers * getattr(layer, part), *ends]))
    return StageTimes(
        counts=tuple(stage.count for stage in stages),
        forward=tuple(forward),
        backward=tuple(backward),
        p2p=p2p,
        pipeline=strategy.pipeline,
        virtual_stages=strategy.virtual_stages,
        microbatches=microbatches,
    )


def busy_parts(times: dict[str, BlockTimes]) -> dict[str, tuple[Num, tuple[Num, ...]]]:
    """Seconds of one microbatch by part of the step, in one layer, and in embedding and head."""
    layer, embedding, head = times["layer"], times["embedding"], times["head"]
    parts = {
        "forward": "forward",
        "input_grad": "input_grad",
        "weight_grad": "weight_grad",
        "exposed_tensor": "tensor",
        "exposed_context": "context",
    }
    found = {
        name: (getattr(layer, part), (getattr(embedding, part), getattr(head, part))) for name, part in parts.items()
    }
    return {**found, "recompute": (layer.recompute, ()), "other": (layer.host, ())}
