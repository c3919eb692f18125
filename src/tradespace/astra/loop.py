"""A step of COMET's training loop on a tape: forward exchanges block, gradients' exchanges run beside what follows.

The order of `schedule.comet_loop`; every device does the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from tradespace.astra.grid import loop_grids
from tradespace.astra.kernels import kernel
from tradespace.astra.tape import Axes, Group, Kernel, Tape, Tapes, groups_of
from tradespace.cost.training_loop import priced
from tradespace.network.astra import Network
from tradespace.schedule.comet_loop import LayerTimes, StackTimes
from tradespace.step import Step
from tradespace.workload.layer_table import Stack
from tradespace.workload.operator import Exchange, Operator, Work


def loop_tape(step: Step, network: Network) -> Tapes:
    """The one tape of a training loop."""
    axes = loop_grids(step)
    loop = Loop(step, groups_of(axes, [(name,) for name in axes], network))
    work = priced(step.model, step.cluster, step.strategy)
    stacks = list(zip(work.stacks, work.times, strict=True))
    for stack, times in stacks:
        for number in range(int(float(stack.count))):
            loop.forward(stack, times, f"{stack.block.kind}{number}")
    for stack, times in reversed(stacks):
        for number in reversed(range(int(float(stack.count)))):
            loop.backward(stack, times, f"{stack.block.kind}{number}")
    loop.tape.tail += loop.late
    for name, part in (("optimizer", "optimizer"), ("outside the model", "other")):
        if float(step.once[part]) > 0.0:
            loop.tape.compute(Kernel(name, float(step.once[part])), "")
    return Tapes((loop.tape,), axes, 1)


class Loop:
    """The loop's state: the tape, exchanges that a named operator waits for, and those that only the end waits for."""

    def __init__(self, step: Step, groups: dict[Axes, Group]) -> None:
        self.step, self.groups = step, groups
        self.tape = Tape()
        self.late: tuple[int, ...] = ()
        self.awaited: dict[str, tuple[int, ...]] = {}

    def forward(self, stack: Stack, times: StackTimes, note: str) -> None:
        """One pass through a stack."""
        for op, seconds in zip(stack.block.operators, times.layers, strict=True):
            self._run(op, op.forward, "forward", seconds, note)
            self._issue(op.forward.exchanges, op, note, block=True)
        self._settle()

    def backward(self, stack: Stack, times: StackTimes, note: str) -> None:
        """One pass back: recomputation, then layer by layer input gradient, weight gradient, their exchanges."""
        overlap = self.step.strategy.overlap
        if float(self.step.strategy.recompute) >= 2.0:
            for exchange in stack.restore:
                self._exchange(exchange, "checkpoint", note, block=True)
            self.forward(stack, times, f"{note} again")
        for op, seconds in zip(reversed(stack.block.operators), reversed(times.layers), strict=True):
            wait: tuple[int, ...] = ()
            if op.input_grad is not None:
                self._run(op, op.input_grad, "input_grad", seconds, note)
                wait = self._issue(op.input_grad.exchanges, op, note, block=not float(overlap.tensor))
            if op.weight_grad is not None:
                self._run(op, op.weight_grad, "weight_grad", seconds, note)
                self.late += self._issue(op.weight_grad.exchanges, op, note, block=not float(overlap.gradient))
            self.tape.tail += wait
        self._settle()

    def _run(self, op: Operator, work: Work, phase: str, times: LayerTimes, note: str) -> None:
        self.tape.tail += self.awaited.pop(op.name, ())
        seconds = float(getattr(times, phase))
        if seconds > 0.0:
            self.tape.compute(kernel(op, work, phase, seconds, float(self.step.strategy.precision.value)), note)

    def _issue(self, exchanges: Iterable[Exchange], op: Operator, note: str, block: bool) -> tuple[int, ...]:
        """Issue a phase's exchanges; the ids of those that nothing waits for yet."""
        loose: tuple[int, ...] = ()
        for exchange in exchanges:
            if exchange.awaited:
                issued = self._exchange(exchange, op.name, note, block=False)
                self.awaited[exchange.awaited] = self.awaited.get(exchange.awaited, ()) + issued
            else:
                issued = self._exchange(exchange, op.name, note, block)
                loose += () if block else issued
        return loose

    def _exchange(self, exchange: Exchange, name: str, note: str, block: bool) -> tuple[int, ...]:
        size, group = float(exchange.volume) * float(exchange.share), self.groups[exchange.group,]
        return self.tape.collective(
            f"{name}.{exchange.collective} {note}", exchange.collective, size, group, block=block
        )

    def _settle(self) -> None:
        """At the end of a pass everything that was awaited has arrived."""
        for issued in self.awaited.values():
            self.tape.tail += issued
        self.awaited.clear()
