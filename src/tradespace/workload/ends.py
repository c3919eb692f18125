"""Parts before the first and after the last layer: tables, projections, parameters without work on text."""

from __future__ import annotations

from tradespace.inputs.layers import Held, Linear, Table
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.workload.local import Local
from tradespace.workload.operator import Gemm, Operator, Work, gemm_operator


def table(part: Table, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:  # noqa: ARG001
    """A look-up whose rows are added to the token embedding."""
    back = Work(traffic=3.0 * size.volume)
    return (
        Operator(part.name, "lookup", Work(traffic=2.0 * size.volume), None, back, weights=part.rows * model.hidden),
    )


def linear(part: Linear, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:  # noqa: ARG001
    """A projection of every token, or of one token per sequence."""
    one = not isinstance(part.once, float) or part.once == 1.0
    rows = strategy.micro_batch if one else size.tokens * size.residual
    shape = Gemm.of(rows, part.inputs, part.outputs)
    saved = rows * part.inputs * strategy.precision.value
    kind = "once" if one else "gemm"
    return (gemm_operator(part.name, shape, kind=kind, bias=part.bias * part.outputs, saved=saved),)


def held(part: Held, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:  # noqa: ARG001
    """Parameters without work, replicated in the tensor group."""
    return (Operator(part.name, "held", Work(), weights=part.parameters),)
