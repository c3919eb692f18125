"""Memory traffic of a matrix product that knows the on-chip buffer: three models, chosen by `Profile.traffic`.

(m x k)(k x n) with operands U = m k, V = k n and output W = m n values, and a buffer of S values. Each model gives the
values read of U, read of V and written of W for one product of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tradespace.errors import InputError, nearest
from tradespace.num import Memo, Num, ceil, maximum, sqrt, where
from tradespace.workload.operator import Gemm


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """The on-chip buffer: `size` in values, `tile` = side of the square output tile that it holds, in values."""

    size: Num
    tile: Num
    memo: Memo = field(default_factory=Memo)

    @staticmethod
    def of(capacity: Num, value: Num) -> Buffer:
        """A buffer of `capacity` bytes for `value`-byte values: three tiles of t x t share it, t = sqrt(S / 3).

        >>> Buffer.of(24.0, 2.0).tile
        2.0
        """
        return Buffer(capacity / value, sqrt(capacity / (3.0 * value)))


Traffic = tuple[Num, Num, Num]


def compulsory(shape: Gemm, buffer: Buffer) -> Traffic:  # noqa: ARG001
    """U, V, W: each value crosses the memory interface once (Williams, Waterman and Patterson 2009, section 3)."""
    return shape.left, shape.right, shape.out


def buffered(shape: Gemm, buffer: Buffer) -> Traffic:
    """The cheaper of two loop orders: min(U + V ceil(U/S), V + U ceil(V/S)), and W.

    One operand is held in the buffer part by part; the other one streams past each part. The long operands of
    weight-gradient products at a large tensor degree stream again and again. Assumed form of COMET's
    (arXiv 2211.16648) buffer-aware traffic.

    >>> [float(x) for x in buffered(Gemm.of(4.0, 2.0, 3.0), Buffer(4.0, 1.0))]
    [8.0, 12.0, 12.0]
    """
    hold_left = buffer.memo.of(shape.left, "parts", lambda u: ceil(u / buffer.size)) * shape.right
    hold_right = buffer.memo.of(shape.right, "parts", lambda v: ceil(v / buffer.size)) * shape.left
    left_stays = shape.left + hold_left <= shape.right + hold_right
    return where(left_stays, shape.left, hold_right), where(left_stays, hold_left, shape.right), shape.out


def tiled(shape: Gemm, buffer: Buffer) -> Traffic:
    """Output-stationary square tiles of side t: U max(1, n/t), V max(1, m/t), W.

    Each operand is read again for every tile along the other output side (Hong and Kung 1981: the order of I/O of a
    blocked product).

    >>> [float(x) for x in tiled(Gemm.of(4.0, 2.0, 3.0), Buffer(12.0, 2.0))]
    [12.0, 12.0, 12.0]
    """
    tile = buffer.tile
    again_n = buffer.memo.of(shape.n, "reload", lambda side: maximum(1.0, side / tile))
    again_m = buffer.memo.of(shape.m, "reload", lambda side: maximum(1.0, side / tile))
    return buffer.memo.product(shape.left, again_n), buffer.memo.product(shape.right, again_m), shape.out


Model = Callable[[Gemm, Buffer], Traffic]

TRAFFIC: Mapping[str, Model] = {"compulsory": compulsory, "buffered": buffered, "tiled": tiled}
"""By the word in `Profile.traffic`."""


def traffic_model(name: str) -> Model:
    """The traffic model of a name."""
    if name not in TRAFFIC:
        raise InputError(f"profile.traffic: unknown model '{name}'{nearest(name, TRAFFIC)}")
    return TRAFFIC[name]
