"""Sizes of one microbatch on one device, and the operators that every kind of sublayer shares."""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num, ceil
from tradespace.workload.operator import Exchange, Operator, pass_operator


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """Sizes on one device: tokens of a microbatch, bytes of the residual activation, exchanges of the tensor group."""

    tokens: Num
    residual: Num  # share of the residual activation that one device holds
    vocab: Num
    volume: Num  # bytes of the whole residual activation of the tensor group
    held: Num  # bytes of the residual activation on one device
    entering: Num  # bytes of it that a column-split GEMM saves
    enter: tuple[Exchange, ...]  # gathers the sharded sequence before a column-split GEMM
    again: tuple[Exchange, ...]  # gathers it again for the weight gradient, where the gathered input was not saved
    leave: tuple[Exchange, ...]  # sums partial results: reduce-scatter with sequence parallel, else all-reduce


def local_sizes(model: Model, strategy: Strategy) -> Local:
    """Sizes on one device."""
    tensor, sharded = strategy.tensor, strategy.sequence_parallel
    tokens = strategy.micro_batch * (model.seq / strategy.context)
    padded = padded_vocab(model, strategy)
    residual = 1.0 - sharded + sharded / tensor
    volume = tokens * model.hidden * strategy.precision.value
    enter = (Exchange("all_gather", "tensor", volume, sharded),)
    held, gathered = volume * residual, strategy.profile.saves_gathered
    return Local(
        tokens=tokens,
        residual=residual,
        vocab=padded / tensor,
        volume=volume,
        held=held,
        entering=held if none(gathered) else held + gathered * (volume - held),
        enter=enter,
        again=enter if none(gathered) else (Exchange("all_gather", "tensor", volume, sharded * (1.0 - gathered)),),
        leave=(
            Exchange("reduce_scatter", "tensor", volume, sharded),
            Exchange("all_reduce", "tensor", volume, 1.0 - sharded),
        ),
    )


def padded_vocab(model: Model, strategy: Strategy) -> Num:
    """Vocabulary padded to a multiple of (profile's multiple x tensor), as vocabulary parallelism needs it."""
    unit = strategy.profile.vocab_multiple * strategy.tensor
    return ceil(model.vocab / unit) * unit


def norm(name: str, model: Model, strategy: Strategy, size: Local) -> Operator:
    """A norm over the residual activation; its input is saved."""
    profile, held = strategy.profile, size.held
    weights = model.norm_vectors * model.hidden
    return pass_operator(
        name, "pass", held, profile.norm_f, profile.norm_b, weights=weights, saved=held, module="layernorm"
    )


def residual_sum(name: str, strategy: Strategy, size: Local) -> Operator:
    """Bias, dropout and addition to the residual activation."""
    profile, held = strategy.profile, size.held
    mask = held * (strategy.precision.mask / strategy.precision.value) if profile.dropout else 0.0
    return pass_operator(name, "pass", held, profile.residual_f, profile.residual_b, saved=mask)


def activation(name: str, strategy: Strategy, inner: Num, gated: Num) -> Operator:
    """The activation of an MLP whose inner width takes `inner` bytes: one input, or gate and up."""
    profile = strategy.profile
    plain_f, gated_f = profile.plain_f, 2.0 * profile.gated_f
    plain_b, gated_b = profile.plain_b, 2.0 * profile.gated_b
    forward = plain_f + gated * (gated_f - plain_f)
    return pass_operator(name, "pass", inner, forward, plain_b + gated * (gated_b - plain_b))


def kept_widths(gated: Num, strategy: Strategy) -> Num:
    """Inner widths that an MLP's activation keeps: its input, or gate and up, and what an eager one adds."""
    widths, more = 1.0 + gated, strategy.profile.saves_gates
    return widths if none(more) else widths + more * gated


def none(value: Num) -> bool:
    """Whether a size that is 0 for "none" says so (an axis says that it is there).

    >>> none(0.0), none(2.0)
    (True, False)
    """
    return isinstance(value, float) and value == 0.0
