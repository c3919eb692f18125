"""The common form of a training loop's workload: stacks of operators, run one after another on every device.

A stack is a block that is repeated, with what brings back its checkpoint when it is recomputed. Layer tables of the
user, COMET's Transformer (`transformer_table`) and recommendation models (`dlrm`) all take this form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from tradespace.inputs.layer_table import PHASES, Row
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.workload.operator import Block, Exchange, Gemm, Operator, Work, total


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """A block that is run `count` times; `restore` = exchanges that bring back the checkpoint it is recomputed from."""

    block: Block
    count: Num
    restore: tuple[Exchange, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What scales a table: samples of one replica, tensor degree."""

    samples: Num
    tensor: Num


def stacks(model: Model, strategy: Strategy, samples: Num) -> tuple[Stack, ...]:
    """The stacks of a layer table on one device for `samples` samples of a replica.

    >>> from tradespace.inputs import load
    >>> rows = [{"name": "a", "m": 1, "k": 4, "n": 8}]
    >>> model = load.model({"name": "mlp", "family": "table", "table": {"rows": rows}})
    >>> strategy = load.strategy("global_batch=8", cluster=load.cluster("dgx-a100"))
    >>> stacks(model, strategy, 2.0)[0].block.operators[0].forward.shape.flops
    128.0
    """
    shares = Shares(samples, strategy.tensor)
    if model.table.sizes == "device":
        shares = Shares(1.0, 1.0)
    return tuple(
        _stack(name, tuple(rows), strategy, shares) for name, rows in groupby(model.table.rows, lambda row: row.stack)
    )


def _stack(name: str, rows: tuple[Row, ...], strategy: Strategy, shares: Shares) -> Stack:
    value = strategy.precision.value
    checkpoints = [row for row in rows if row.kind == "checkpoint"]
    operators = tuple(_operator(row, strategy, shares) for row in rows if row.kind != "checkpoint")
    held = total([_local(row, shares) * row.values * value for row in checkpoints])
    restore = tuple(exchange for row in checkpoints for exchange in _exchange(row, "forward", value, shares, 0.0))
    return Stack(Block.of(name, operators, boundary=held), rows[0].repeat, restore)


def _local(row: Row, shares: Shares) -> Num:
    """Samples of a replica over the tensor degree where the row is split."""
    return shares.samples / shares.tensor if row.split != "none" else shares.samples


def _operator(row: Row, strategy: Strategy, shares: Shares) -> Operator:
    value = strategy.precision.value
    if row.kind == "gemm":
        return _product(row, strategy, shares)
    local = _local(row, shares)
    saved = row.saved * local * value if row.saved > 0.0 else 0.0
    if row.kind == "lookup":
        traffic, weights = row.m * row.n * local * value, row.k * row.n
        held = weights / shares.tensor if row.split != "none" else weights
        back = 2.0 * traffic  # the touched rows are read and written
        works = (Work(traffic=traffic), Work(), Work(traffic=back))
        return Operator(row.name, "lookup", *_with(row, works, strategy, shares, held), weights=held, saved=saved)
    works = (
        Work(traffic=row.values * local * value, flops=row.flops * local),
        Work(traffic=row.values_back * local * value, flops=row.flops_back * local),
        Work(),
    )
    return Operator(row.name, "pass", *_with(row, works, strategy, shares, 0.0), saved=saved)


def _product(row: Row, strategy: Strategy, shares: Shares) -> Operator:
    """A matrix product; samples multiply the rows of weight products, the batch of activation products."""
    parts = {name: shares.tensor if row.split == name else 1.0 for name in ("batch", "m", "k", "n")}
    rows, batch = row.m / parts["m"], row.batch / parts["batch"]
    if row.weights == 1.0:
        rows = rows * shares.samples
    else:
        batch = batch * shares.samples
    shape = Gemm.of(rows, row.k / parts["k"], row.n / parts["n"], batch)
    weights = row.weights * shape.right * batch
    saved = shape.left * batch if row.saved < 0.0 else row.saved * _local(row, shares)
    works = (Work(shape), Work(shape.input_grad), Work(shape.weight_grad))
    return Operator(
        row.name,
        "gemm",
        *_with(row, works, strategy, shares, weights),
        weights=weights,
        saved=saved * strategy.precision.value,
    )


def _with(
    row: Row, works: tuple[Work, ...], strategy: Strategy, shares: Shares, weights: Num
) -> tuple[Work, Work, Work]:
    """The phases' work with the row's exchanges."""
    precision = strategy.precision
    forward, back, late = works
    first, second = (_exchange(row, phase, precision.value, shares, weights) for phase in PHASES[:2])
    third = _exchange(row, PHASES[2], precision.reduce, shares, weights)
    if third:
        third += full_shard(weights, strategy)
    return replace(forward, exchanges=first), replace(back, exchanges=second), replace(late, exchanges=third)


def _exchange(row: Row, phase: str, value: Num, shares: Shares, weights: Num) -> tuple[Exchange, ...]:
    text = getattr(row, phase)
    if not text:
        return ()
    collective, group = text.split()
    values = getattr(row, f"{phase}_values")
    if phase == "weight_grad":
        return (Exchange(collective, group, (values if values > 0.0 else weights) * value),)
    return (Exchange(collective, group, values * shares.samples * value, awaited=getattr(row, f"{phase}_awaited")),)


def gradients(weights: Num, strategy: Strategy) -> tuple[Exchange, ...]:
    """The reduction of `weights` gradients over the data group: an all-reduce, which ZeRO 1 and 2 move as a
    reduce-scatter and a gather of the same volume; ZeRO 3 gathers once more (Rajbhandari et al. 2020, section 7)."""
    reduce = Exchange("all_reduce", "data", weights * strategy.precision.reduce)
    return (reduce, *full_shard(weights, strategy))


def full_shard(weights: Num, strategy: Strategy) -> tuple[Exchange, ...]:
    """ZeRO 3's second gather of parameters; it waits in the same queue as the reductions."""
    again = strategy.at_least("zero", 3.0)
    if isinstance(again, float) and again == 0.0:
        return ()
    return (Exchange("all_gather", "data", weights * strategy.precision.value, again),)
