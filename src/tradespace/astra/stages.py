"""The stages of a predicted step: which layers each model chunk holds, which groups there are, one tape per stage."""

from __future__ import annotations

from collections.abc import Mapping

from tradespace.astra.grid import grids
from tradespace.astra.kernels import Writer
from tradespace.astra.stage import INNER, OUTER, Plan, Stage, Unit
from tradespace.astra.tape import Axes, Tapes, groups_of
from tradespace.cost.compute import Rates, rates
from tradespace.cost.stage import BlockTimes, Exchanges, block_times
from tradespace.network.astra import Network
from tradespace.network.folding import expert_shard, fold
from tradespace.network.placement import Layout, layout
from tradespace.predict import head_cost
from tradespace.schedule.passes import Order
from tradespace.schedule.table import SCHEDULES
from tradespace.step import Step
from tradespace.workload.count import numbers
from tradespace.workload.families import blocks_of
from tradespace.workload.operator import Block
from tradespace.workload.partition import partition


def stage_tapes(step: Step, network: Network) -> Tapes:
    """A tape for every pipeline stage."""
    strategy = step.strategy
    blocks = blocks_of(step.model, strategy)
    axes = grids(step, any(block.experts for block in blocks.values()))
    named: list[Axes] = [(name,) for name in axes]
    for inner, outer in zip(INNER, OUTER, strict=True):
        named += [inner, inner + outer] if inner[0] in axes else []
    groups = groups_of(axes, named, network)
    single = {names[0]: group for names, group in groups.items() if len(names) == 1}
    speed, times = _times(step, blocks)
    order = SCHEDULES[strategy.schedule].order(
        int(strategy.pipeline), int(strategy.virtual_stages), int(step.microbatches)
    )
    plan = Plan(
        step=step,
        times=times,
        writer=Writer(speed, float(strategy.precision.value), single),
        groups=groups,
        units=_chunks(step, blocks, times, order),
        order=order,
        stage_of={
            (one.kind == "forward", one.chunk, one.microbatch): stage
            for stage, passes in enumerate(order)
            for one in passes
            if one.kind != "weight_grad"
        },
        volume=float(blocks[next(iter(numbers(step.model)))].volume),
    )
    tapes = tuple(Stage(plan, stage).write() for stage in range(len(order)))
    return Tapes(tapes, axes, axes["pipeline"].stride("pipeline"))


def placed(step: Step, blocks: Mapping[str, Block]) -> Layout:
    """Where the prediction places the groups of the dense layers and of the experts."""
    strategy = step.strategy
    shard = float(strategy.shard) or float(step.data) * float(strategy.context)
    dense = layout(strategy, step.cluster, step.data, shard)
    if not any(block.experts for block in blocks.values()):
        return dense
    return fold(dense, strategy, step.cluster, step.data, expert_shard(strategy, step.data))


def _times(step: Step, blocks: dict[str, Block]) -> tuple[Rates, dict[str, BlockTimes]]:
    """Rates of the device, and what each block takes in the prediction."""
    strategy, precision = step.strategy, step.strategy.precision
    speed = rates(step.cluster.device, precision.gemm, precision.value, precision.cast, strategy.profile)
    prices = Exchanges(step.cluster, placed(step, blocks))
    return speed, {kind: block_times(block, speed, prices, strategy) for kind, block in blocks.items()}


def _chunks(
    step: Step, blocks: Mapping[str, Block], times: dict[str, BlockTimes], order: Order
) -> tuple[tuple[Unit, ...], ...]:
    """The units of every model chunk: a stage's run of layers is cut into its chunks as evenly as possible, with fewer
    layers in the chunks of embedding and head."""
    model, strategy = step.model, step.strategy
    kinds = [kind.name for kind in model.layer_kinds()]
    run = [kinds[int(index)] for index in model.pattern] if model.kinds else kinds * int(model.layers)
    classes = partition(model.layers, strategy.pipeline, head_cost(times, numbers(model), strategy))
    sizes = [int(stage.layers) for stage in classes for _ in range(int(stage.count))]
    last = max(one.chunk for one in order[-1])
    chunks: dict[int, list[Unit]] = {}
    start = 0
    for size, passes in zip(sizes, order, strict=True):
        held = sorted({one.chunk for one in passes})
        for place, chunk in enumerate(held):
            ends = [size * part // len(held) for part in range(len(held) + 1)]
            if last in held and 0 not in held:
                ends = [size - end for end in reversed(ends)]
            first, end = start + ends[place], start + ends[place + 1]
            chunks[chunk] = [_unit(f"layer{i}", blocks[run[i]], step) for i in range(first, end)]
        start += size
    chunks[0].insert(0, _unit("embedding", blocks["embedding"], step))
    chunks[last].append(_unit("head", blocks["head"], step))
    return tuple(tuple(chunks[chunk]) for chunk in sorted(chunks))


def _unit(name: str, block: Block, step: Step) -> Unit:
    """A unit; a table that embedding and head share is held once where one stage has both."""
    strategy, (dense, routed) = step.strategy, block.trained
    tied = 0.0
    if block.kind == "head" and float(step.model.tied) and float(strategy.pipeline) == 1.0:
        tied = sum(float(op.weights) for op in block.operators if op.kind == "head")
    trained = (max(float(dense) - tied, 0.0), float(routed))
    if float(strategy.zero) < 3.0 or float(strategy.pipeline) > 1.0:
        return Unit(name, block, trained, trained)
    return Unit(name, block, (float(block.weights - block.routed) - tied, float(block.routed)), trained)
