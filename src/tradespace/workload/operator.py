"""Operator and Block: what one microbatch asks of one device, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tradespace.num import Num


@dataclass(frozen=True, slots=True, eq=False)
class Gemm:
    """`batch` matrix products (m x k)(k x n); `left`, `right`, `out` are m k, k n, m n values.

    Made by `Gemm.of`; the gradients' shapes share these counts, so each is computed once.
    """

    m: Num
    k: Num
    n: Num
    batch: Num
    left: Num
    right: Num
    out: Num
    flops: Num

    @staticmethod
    def of(m: Num, k: Num, n: Num, batch: Num = 1.0) -> Gemm:
        """A product from its sizes; 2 m k n batch FLOPs.

        >>> Gemm.of(2.0, 3.0, 4.0).flops
        48.0
        """
        left = m * k
        return Gemm(m, k, n, batch, left, k * n, m * n, 2.0 * left * (n * batch))

    @property
    def input_grad(self) -> Gemm:
        """(m, n, k): output gradient times transposed weight."""
        return Gemm(self.m, self.n, self.k, self.batch, self.out, self.right, self.left, self.flops)

    @property
    def weight_grad(self) -> Gemm:
        """(k, m, n): transposed input times output gradient."""
        return Gemm(self.k, self.m, self.n, self.batch, self.left, self.out, self.right, self.flops)


@dataclass(frozen=True, slots=True, eq=False)
class AttentionCore:
    """Fused attention: `flops` FLOPs in this phase (causal half), for heads of `head_dim` over `keys` keys."""

    flops: Num
    head_dim: Num
    keys: Num


class Routing(NamedTuple):
    """Experts per token, groups of experts, groups that a token may reach; `once`: 1 where a token goes once to each
    device of a node too, 0 where once to each of its experts there."""

    top_k: Num
    groups: Num
    top_groups: Num
    once: Num


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """A collective among a group of the strategy: `volume` = bytes of the full tensor, run with weight `share`.

    `share` is 1 where the exchange happens, 0 where it does not (so that a switch can be an axis). `awaited` names the
    operator that waits for it where work goes on meanwhile. `routing`: of an all-to-all that sends a token to each
    node once.
    """

    collective: str
    group: str
    volume: Num
    share: Num = 1.0
    awaited: str = ""
    routing: Routing | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """One phase of an operator on one device for one microbatch.

    `shape` is what runs on the matrix units, `traffic` the bytes that memory-bound kernels read and write,
    `exchanges` the collectives that the phase waits for, `flops` those of a memory-bound kernel where they are counted.
    """

    shape: Gemm | AttentionCore | None = None
    traffic: Num = 0.0
    exchanges: tuple[Exchange, ...] = ()
    flops: Num = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """A named operation with its three phases, the parameters it holds and the bytes it saves for backward.

    `kind` is gemm, grouped (one GEMM per local expert), head (a GEMM that stays in 16 bits), attention, score (unfused
    attention), pass (memory-bound), lookup, adapter, once (a projection of one token per sequence) or held (parameters
    without work). `module` names what selective recomputation may run again instead of saving. `chosen` = (experts per
    token, experts) marks weights of routed experts: they are sharded over the expert-data group, and a token uses its
    share. `operand` = bytes of `saved` that are an input kept for the weight gradient alone; `fused` = projections of
    one input that this GEMM multiplies together (q, k and v: 3). `shared`: its weights are another operator's.
    """

    name: str
    kind: str
    forward: Work
    input_grad: Work | None = None
    weight_grad: Work | None = None
    weights: Num = 0.0
    saved: Num = 0.0
    module: str = ""
    chosen: tuple[Num, Num] | None = None
    operand: Num = 0.0
    fused: Num = 1.0
    shared: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The operators of one kind of layer; `weights` = parameters of one such layer on one device, of which `routed`
    belong to experts (`experts`: there are some) and `adapters` to adapters (`frozen` = 1: those alone are trained).
    `volume` = bytes of its input for one microbatch in the tensor group, `boundary` = those that one device holds."""

    kind: str
    operators: tuple[Operator, ...]
    weights: Num
    boundary: Num
    volume: Num
    routed: Num = 0.0
    experts: bool = False
    adapters: Num = 0.0
    frozen: Num = 0.0

    @property
    def trained(self) -> tuple[Num, Num]:
        """Parameters that have a gradient: outside routed experts, and in them."""
        if isinstance(self.frozen, float) and self.frozen == 0.0:
            return (self.weights - self.routed if self.experts else self.weights), self.routed
        kept = 1.0 - self.frozen
        return (self.weights - self.routed) * kept + self.adapters * self.frozen, self.routed * kept

    @staticmethod
    def of(
        kind: str, operators: tuple[Operator, ...], boundary: Num = 0.0, volume: Num = 0.0, frozen: Num = 0.0
    ) -> Block:
        """A block from its operators; their parameters are added up once."""
        held = [op.weights for op in operators if not (isinstance(op.weights, float) and op.weights == 0.0)]
        routed = [op.weights for op in operators if op.chosen is not None]
        adapters = total([op.weights for op in operators if op.kind == "adapter"])
        return Block(kind, operators, total(held), boundary, volume, total(routed), bool(routed), adapters, frozen)


def total(values: Sequence[Num]) -> Num:
    """Sum of a few numbers; floats are added first, so that arrays are added as few times as possible.

    The running sum is an array of its own from the second array on, so it may be added to in place: a third cheaper.

    >>> total([1.0, 2.0])
    3.0
    """
    result: Num = 0.0
    for value in values:
        if isinstance(value, float):
            result = result + value
    own = False
    for value in values:
        if isinstance(value, float):
            continue
        if own and isinstance(result, np.ndarray) and result.shape == value.shape:
            np.add(result, value, out=result)
        elif isinstance(result, float) and result == 0.0:
            result = value
        else:
            result, own = result + value, True
    return result


def flagged(flag: Num, value: Num) -> Num:
    """`flag * value` for a flag of 0 or 1, without touching the value where the flag is a plain number.

    >>> flagged(0.0, 5.0), flagged(1.0, 5.0)
    (0.0, 5.0)
    """
    if isinstance(flag, float):
        return value if flag == 1.0 else 0.0 if flag == 0.0 else flag * value
    return flag * value


def gemm_operator(
    name: str,
    shape: Gemm,
    *,
    kind: str = "gemm",
    bias: Num = 0.0,
    saved: Num = 0.0,
    before: tuple[Exchange, ...] = (),
    after: tuple[Exchange, ...] = (),
    before_back: tuple[Exchange, ...] = (),
    after_back: tuple[Exchange, ...] = (),
    gather_back: tuple[Exchange, ...] = (),
    module: str = "",
    chosen: tuple[Num, Num] | None = None,
    operand: Num = 0.0,
    fused: Num = 1.0,
) -> Operator:
    """A linear layer: forward (m, k, n), input gradient (m, n, k), weight gradient (k, m, n).

    Exchanges: `before`/`after` the forward product, `before_back`/`after_back` the input gradient, `gather_back`
    the repeated gathering of the input for the weight gradient.
    """
    return Operator(
        name,
        kind,
        Work(shape, exchanges=before + after),
        Work(shape.input_grad, exchanges=before_back + after_back),
        Work(shape.weight_grad, exchanges=gather_back),
        weights=shape.right * shape.batch + bias,
        saved=saved,
        module=module,
        chosen=chosen,
        operand=operand,
        fused=fused,
    )


def pass_operator(
    name: str,
    kind: str,
    size: Num,
    forward: Num,
    backward: Num,
    *,
    weights: Num = 0.0,
    saved: Num = 0.0,
    module: str = "",
) -> Operator:
    """A memory-bound operation over `size` bytes: `forward` and `backward` passes of it."""
    work, back = Work(traffic=size * forward), Work(traffic=size * backward)
    return Operator(name, kind, work, back, weights=weights, saved=saved, module=module)
