"""One pipeline stage of a predicted step: its passes in the schedule's order, on a tape.

What `predict` prices, in the order in which it is issued; overlap comes from what waits for what. Gathers of
parameters run ahead of their layers. Reductions of gradients run beside what follows, in a pipeline after the chunk's
last pass, and their ids come last: ASTRA-sim runs one exchange at a time on a rank, the ready one with the lowest id,
and other stages must not wait for a reduction. Shares of exchanges that a profile hides cannot be said in a trace:
they block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tradespace.astra.kernels import Writer
from tradespace.astra.tape import Axes, Group, Kernel, Tape
from tradespace.cost.stage import BlockTimes
from tradespace.inputs.strategy import Strategy
from tradespace.schedule.passes import KINDS, Order, Pass
from tradespace.step import Step
from tradespace.workload.operator import Block

INNER = (("context", "shard"), ("expert_shard",))
OUTER = (("replica",), ("expert_replica",))
"""Axes of the ranks that share the sharded states of dense parameters and of experts, and of their replicas."""


@dataclass(frozen=True)
class Unit:
    """A layer, the embedding or the head: its name and block; parameters that are gathered and those with a gradient,
    dense ones and those of experts."""

    name: str
    block: Block
    gathered: tuple[float, float]
    trained: tuple[float, float]


@dataclass(frozen=True)
class Plan:
    """What all stages share: `units` of each model chunk, the `order` of passes of each stage, the stage of each pass
    (forward?, chunk, microbatch), `volume` = bytes of a layer's input in the tensor group."""

    step: Step
    times: Mapping[str, BlockTimes]
    writer: Writer
    groups: Mapping[Axes, Group]
    units: tuple[tuple[Unit, ...], ...]
    order: Order
    stage_of: Mapping[tuple[bool, int, int], int]
    volume: float

    @property
    def strategy(self) -> Strategy:
        """The step's strategy."""
        return self.step.strategy

    @property
    def streamed(self) -> bool:
        """Whether every microbatch gathers each layer's parameters (full sharding without a pipeline)."""
        return float(self.strategy.zero) >= 3.0 and float(self.strategy.pipeline) == 1.0


@dataclass
class Stage:
    """Writes the tape of stage `number`."""

    plan: Plan
    number: int
    tape: Tape = field(default_factory=Tape)
    reductions: list[tuple[Unit, str, tuple[int, ...]]] = field(default_factory=list)
    late: tuple[int, ...] = ()  # reductions that only the optimizer waits for
    ahead: tuple[int, ...] = ()  # gathers that the next layer waits for
    gathers: tuple[int, ...] = ()  # the last ones issued

    def write(self) -> Tape:
        """All passes, then the optimizer's update."""
        passes = self.plan.order[self.number]
        last = {one.chunk: one.microbatch for one in passes}
        for one in passes:
            self._receive(one)
            if one.kind == "forward":
                self._forward(one)
            else:
                self._backward(one, one.microbatch == last[one.chunk])
            self._send(one)
        for unit, note, after in self.reductions:
            self._reduce(unit, note, after)
        self.tape.tail += self.late
        for name, part in (("optimizer", "optimizer"), ("outside the model", "other")):
            seconds = float(self.plan.step.once[part])
            if seconds > 0.0:
                self.tape.compute(Kernel(name, seconds), "")
        return self.tape

    def _forward(self, one: Pass) -> None:
        plan = self.plan
        gathers = plan.streamed or (float(plan.strategy.zero) >= 1.0 and one.microbatch == 0)
        units = plan.units[one.chunk]
        for unit, following in zip(units, (*units, None)[1:], strict=True):
            note = f"{unit.name} mb{one.microbatch}"
            if gathers:
                self._gathered(unit, following, note)
            plan.writer.forward(self.tape, unit.block, note)
            self._launch(unit, "forward", note)

    def _backward(self, one: Pass, last: bool) -> None:
        plan, strategy = self.plan, self.plan.strategy
        phases = ("input_grad", "weight_grad") if one.kind == "backward" else (one.kind,)
        each = plan.streamed or (float(strategy.zero) == 2.0 and float(strategy.pipeline) == 1.0)
        units, done = plan.units[one.chunk][::-1], []
        for unit, following in zip(units, (*units, None)[1:], strict=True):
            note = f"{unit.name} mb{one.microbatch}"
            if "input_grad" in phases:
                if plan.streamed:
                    self._gathered(unit, following, note)
                self._recompute(unit, note)
            plan.writer.backward(self.tape, unit.block, note, phases)
            if "input_grad" in phases:
                self._launch(unit, "backward", note)
            if "weight_grad" in phases and (each or last):
                done.append((unit, note, self.tape.tail))
        alone = float(strategy.pipeline) == 1.0
        self.reductions += [(unit, note, after if alone else self.tape.tail) for unit, note, after in done]

    def _recompute(self, unit: Unit, note: str) -> None:
        code = float(self.plan.strategy.recompute)
        if unit.block.kind in ("embedding", "head") or not code:
            return
        if code >= 2.0:
            self.plan.writer.forward(self.tape, unit.block, f"{note} again")
        else:
            self.plan.writer.again(self.tape, unit.block, self.plan.strategy.modules, f"{note} again")

    def _launch(self, unit: Unit, direction: str, note: str) -> None:
        """What the host's launches add to the kernels of a layer, spread over the passes by their time."""
        times = self.plan.times[unit.block.kind]
        forward, backward = float(times.forward_total), float(times.backward_total)
        seconds = float(times.host) * (forward if direction == "forward" else backward) / (forward + backward)
        if seconds > 0.0:
            self.tape.compute(Kernel(f"launches.{direction}", seconds), note)

    def _gathered(self, unit: Unit, following: Unit | None, note: str) -> None:
        """Wait for this unit's parameters, gathered now if nobody did; issue the gathers of the following one."""
        self.tape.tail += self.ahead or self._gather(unit, note)
        self.ahead = ()
        if following is not None and float(self.plan.strategy.overlap.parameter):
            self.ahead = self._gather(following, f"{following.name} beside {note}")

    def _gather(self, unit: Unit, note: str) -> tuple[int, ...]:
        """Issue the gathers of a unit: under full sharding not before the layer ahead of which they run, else one after
        the other from the start of the step."""
        value = float(self.plan.strategy.precision.value)
        after = self.tape.tail if self.plan.streamed else self.gathers
        issued: list[int] = []
        for parameters, axes in zip(unit.gathered, INNER, strict=True):
            if parameters:
                size, group = parameters * value, self.plan.groups[axes]
                issued += self.tape.collective(f"parameters {note}", "all_gather", size, group, after, block=False)
        self.gathers = tuple(issued) or self.gathers
        return tuple(issued)

    def _reduce(self, unit: Unit, note: str, after: tuple[int, ...]) -> None:
        """Reduce a unit's gradients: scattered among the ranks that share states and summed over their replicas, or
        summed over all."""
        strategy, name = self.plan.strategy, f"gradients {note}"
        for parameters, inner, outer in zip(unit.trained, INNER, OUTER, strict=True):
            if not parameters:
                continue
            size = parameters * float(strategy.precision.reduce)
            if float(strategy.zero) < 1.0:
                self._late(name, "all_reduce", size, inner + outer, after)
                continue
            scattered = self._late(name, "reduce_scatter", size, inner, after)
            self._late(name, "all_reduce", size / self.plan.groups[inner].size, outer, scattered or after)

    def _late(self, name: str, kind: str, size: float, axes: Axes, after: tuple[int, ...]) -> tuple[int, ...]:
        block = not float(self.plan.strategy.overlap.gradient)
        issued = self.tape.collective(
            name, kind, size, self.plan.groups[axes], self.tape.tail if block else after, block
        )
        self.late += issued
        return issued

    def _receive(self, one: Pass) -> None:
        """Wait for the input of a pass from another stage, and gather what was sent in parts."""
        source = self._partner(one, -1)
        if source is None:
            return
        name = f"from stage {source}, chunk {one.chunk} mb{one.microbatch}"
        self.tape.receive(name, source, self._volume / self._tensor.size, self._tag(one))
        gathered = self._volume * (1.0 - float(self.plan.strategy.sequence_parallel))
        self.tape.collective(f"gather {name}", "all_gather", gathered, self._tensor)

    def _send(self, one: Pass) -> None:
        """Send the result of a pass to the stage that needs it: each tensor rank its part (Narayanan et al. 2021,
        section 4.1)."""
        target = self._partner(one, 1)
        if target is not None:
            step = -1 if one.kind == "forward" else 1
            following = Pass(one.kind, one.chunk - step, one.microbatch)
            name = f"to stage {target}, chunk {following.chunk} mb{one.microbatch}"
            self.tape.send(name, target, self._volume / self._tensor.size, self._tag(following))

    def _partner(self, one: Pass, side: int) -> int | None:
        """The stage before (-1) or after (1) a pass on the way of its microbatch; None at the ends, and where both
        passes run on the same stage."""
        if one.kind == "weight_grad":
            return None
        along = -KINDS[one.kind].step * side
        stage = self.plan.stage_of.get((one.kind == "forward", one.chunk + along, one.microbatch))
        return None if stage == self.number else stage

    def _tag(self, one: Pass) -> int:
        """A number for the input of each pass."""
        return 2 * (one.microbatch * len(self.plan.units) + one.chunk) + (one.kind != "forward")

    @property
    def _tensor(self) -> Group:
        return self.plan.groups["tensor",]

    @property
    def _volume(self) -> float:
        """Bytes of a layer's input in the tensor group."""
        return self.plan.volume
