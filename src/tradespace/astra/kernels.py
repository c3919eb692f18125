"""One phase of an operator on a tape: its kernel, and its exchanges before, beside and after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tradespace.astra.tape import Group, Kernel, Tape
from tradespace.cost.compute import Rates, phase_time
from tradespace.workload.operator import AttentionCore, Block, Exchange, Gemm, Operator, Work


def kernel(op: Operator, work: Work, phase: str, seconds: float, value: float) -> Kernel:
    """The kernel of a phase that takes `seconds`: FLOPs as counted, bytes as every operand read or written once
    (attention: queries, keys, values and output), for values of `value` bytes; one FLOP per value moved where none are
    counted.

    >>> from tradespace.workload.operator import Work
    >>> op = Operator("proj", "gemm", Work(Gemm.of(2.0, 3.0, 4.0)))
    >>> kernel(op, op.forward, "forward", 1e-6, 2.0)
    Kernel(name='proj.forward', seconds=1e-06, flops=48.0, bytes=52.0)
    """
    shape, flops, size = work.shape, float(work.flops), float(work.traffic)
    if isinstance(shape, Gemm):
        flops = float(shape.flops)
        size += float((shape.left + shape.right + shape.out) * shape.batch) * value
    elif isinstance(shape, AttentionCore):
        flops = float(shape.flops)
        size += 2.0 * flops / float(shape.keys) * value  # 2 x keys FLOPs per value of each of the four tensors
    return Kernel(f"{op.name}.{phase}", seconds, flops or size / value, size)


@dataclass(frozen=True)
class Writer:
    """Puts operators of blocks on a tape: rates of the device, bytes of a value, group of each exchange."""

    rates: Rates
    value: float
    groups: Mapping[str, Group]

    def phase(self, tape: Tape, op: Operator, work: Work | None, phase: str, note: str) -> None:
        """One phase. Gathers of the tensor group come before the kernel, a context ring runs beside it, everything
        else follows; what comes next waits for all."""
        if work is None:
            return
        beside: tuple[int, ...] = ()
        later: list[Exchange] = []
        for exchange in work.exchanges:
            if exchange.group == "context":
                beside += self.exchange(tape, exchange, op, note, block=False)
            elif exchange.group == "tensor" and exchange.collective == "all_gather":
                self.exchange(tape, exchange, op, note)
            else:
                later.append(exchange)
        seconds = float(phase_time(op, work, phase, self.rates))
        if seconds > 0.0:
            tape.compute(kernel(op, work, phase, seconds, self.value), note)
        tape.tail += beside
        for exchange in later:
            self.exchange(tape, exchange, op, note)

    def exchange(self, tape: Tape, exchange: Exchange, op: Operator, note: str, block: bool = True) -> tuple[int, ...]:
        """One exchange of an operator, weighted by its share. A ring pass moves what a ring's all-gather does."""
        size, group = float(exchange.volume) * float(exchange.share), self.groups[exchange.group]
        kind = "all_gather" if exchange.collective == "ring_pass" else exchange.collective
        return tape.collective(f"{op.name}.{exchange.collective} {note}", kind, size, group, block=block)

    def forward(self, tape: Tape, block: Block, note: str) -> None:
        """All operators forward."""
        for op in block.operators:
            self.phase(tape, op, op.forward, "forward", note)

    def again(self, tape: Tape, block: Block, modules: tuple[str, ...], note: str) -> None:
        """What selective recomputation runs again: kernels of the modules, and the exchanges of their experts."""
        for op in block.operators:
            if op.module in modules:
                sent = any(exchange.group == "expert" for exchange in op.forward.exchanges)
                self.phase(tape, op, op.forward if sent else replace(op.forward, exchanges=()), "forward", note)

    def backward(self, tape: Tape, block: Block, note: str, phases: tuple[str, ...]) -> None:
        """All operators backward, last first: input gradient, then weight gradient."""
        for op in reversed(block.operators):
            for name in phases:
                self.phase(tape, op, op.input_grad if name == "input_grad" else op.weight_grad, name, note)
