"""Numbers that are a float or an array with open axes, and the few functions that equations use on them.

A swept field lives on its own broadcast axis (size 1 on every other one), so each subexpression costs only as much
as the axes that it touches. Plain floats go through Python's own arithmetic, arrays through NumPy's; every function
here is correctly rounded or exact on both ways, so a scalar and the same element of an array agree bit for bit.
There are no transcendental functions for that reason: logarithms of degrees are piecewise linear between powers of
two, roots are square roots.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

Num: TypeAlias = float | NDArray[np.float64]
Bool: TypeAlias = bool | NDArray[np.bool_]


def maximum(a: Num, b: Num) -> Num:
    """The larger of two, element by element.

    >>> maximum(1.0, 2.0)
    2.0
    """
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return cast(Num, np.maximum(a, b))
    return a if a >= b else b


def minimum(a: Num, b: Num) -> Num:
    """The smaller of two, element by element.

    >>> minimum(1.0, 2.0)
    1.0
    """
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return cast(Num, np.minimum(a, b))
    return a if a <= b else b


def add_to(own: Num, value: Num) -> Num:
    """`own + value`, in place where `own` is an array of the full shape: for sums that nobody else holds yet.

    >>> add_to(1.0, 2.0)
    3.0
    """
    if isinstance(own, np.ndarray) and (not isinstance(value, np.ndarray) or value.shape == own.shape):
        return cast(Num, np.add(own, value, out=own))
    return own + value


def scale(own: Num, factor: Num) -> Num:
    """`own * factor`, in place where `own` is an array of the full shape that nobody else holds yet.

    >>> scale(3.0, 2.0)
    6.0
    """
    if isinstance(own, np.ndarray) and (not isinstance(factor, np.ndarray) or factor.shape == own.shape):
        return cast(Num, np.multiply(own, factor, out=own))
    return own * factor


def where(condition: Bool, a: Num, b: Num) -> Num:
    """`a` where the condition holds, else `b`; both are evaluated, so guard divisions.

    >>> where(False, 1.0, 2.0)
    2.0
    """
    if not isinstance(condition, np.ndarray):
        return a if condition else b
    if condition.ndim != 1:
        return cast(Num, np.where(condition, a, b))
    # On a flat list of candidates conditions alternate at random, and NumPy's branch costs 10 times a blend of bits.
    mask = np.negative(condition.view(np.int8), dtype=np.int64)
    first, second = (np.asarray(x, dtype=np.float64).view(np.int64) for x in (a, b))
    return cast(Num, (((first ^ second) & mask) ^ second).view(np.float64))


def at_least(a: Num, threshold: float) -> Num:
    """1.0 where the whole number `a` >= 0 is at least the whole `threshold` >= 1, else 0.0.

    A product with this mask costs one operation; a condition and `where` cost ten on a flat list of candidates.

    >>> at_least(2.0, 2.0), at_least(1.0, 2.0)
    (1.0, 0.0)
    """
    if threshold == 1.0:
        return minimum(a, 1.0)
    return minimum(maximum(a - (threshold - 1.0), 0.0), 1.0)


def ceil(a: Num) -> Num:
    """The least integer not below `a`, as a float.

    >>> ceil(1.2)
    2.0
    """
    return cast(Num, np.ceil(a)) if isinstance(a, np.ndarray) else float(math.ceil(a))


def floor(a: Num) -> Num:
    """The largest integer not above `a`, as a float.

    >>> floor(1.8)
    1.0
    """
    return cast(Num, np.floor(a)) if isinstance(a, np.ndarray) else float(math.floor(a))


def sqrt(a: Num) -> Num:
    """The square root (correctly rounded in Python and in NumPy alike).

    >>> sqrt(9.0)
    3.0
    """
    return cast(Num, np.sqrt(a)) if isinstance(a, np.ndarray) else math.sqrt(a)


def expm1(a: Num) -> Num:
    """e^a - 1, also for tiny `a`: halved ten times, twelve terms, then e^2a - 1 = g (g + 2); products and sums alone.

    >>> round(expm1(1.0), 12), expm1(0.0)
    (1.718281828459, 0.0)
    """
    part = a * (0.5**10)
    series: Num = 1.0
    for n in range(12, 1, -1):
        series = 1.0 + part * series * (1.0 / n)
    grown = part * series
    for _ in range(10):
        grown = grown * (grown + 2.0)
    return grown


def norm4(a: Num, b: Num) -> Num:
    """(a^4 + b^4)^(1/4): a smooth maximum, with two square roots instead of powers.

    >>> norm4(3.0, 0.0)
    3.0
    """
    aa, bb = a * a, b * b
    return sqrt(sqrt(aa * aa + bb * bb))


def gcd(a: Num, b: Num) -> Num:
    """The greatest common divisor of two whole numbers held as floats.

    >>> gcd(6.0, 8.0)
    2.0
    """
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return cast(Num, np.gcd(np.asarray(a, np.int64), np.asarray(b, np.int64)).astype(np.float64))
    return float(math.gcd(int(a), int(b)))


def is_multiple(a: Num, b: Num) -> Bool:
    """Whether the whole number `a` is a multiple of the whole number `b` (b >= 1).

    >>> is_multiple(6.0, 4.0)
    False
    """
    quotient = a / b
    return cast(Bool, quotient == floor(quotient))


def log2(a: Num) -> Num:
    """log2 of a degree >= 1: exact at powers of two, linear between them.

    >>> log2(8.0), log2(6.0)
    (3.0, 2.5)
    """
    if isinstance(a, np.ndarray):
        mantissa, exponent = np.frexp(a)
        return cast(Num, (exponent - 2.0) + 2.0 * mantissa)
    m, e = math.frexp(a)
    return (e - 2.0) + 2.0 * m


def whole(x: Num) -> int | NDArray[np.intp]:
    """A whole number held as a float, as an index.

    >>> whole(3.0)
    3
    """
    return x.astype(np.intp) if isinstance(x, np.ndarray) else int(x)


def take(table: NDArray[np.float64], index: int | NDArray[np.intp]) -> Num:
    """Rows of a table; beyond its end the last row.

    >>> take(np.array([1.0, 2.0]), 5)
    2.0
    """
    if isinstance(index, np.ndarray):
        return cast(Num, table.take(index, mode="clip"))
    return float(table[min(index, len(table) - 1)])


class Memo:
    """Remembers a subexpression of one operand, by the operand's identity, for the length of one prediction.

    Operators share operands (tokens, hidden width): what is computed from one of them is computed once.

    >>> memo = Memo()
    >>> memo.of(2.0, "double", lambda x: 2.0 * x)
    4.0
    """

    __slots__ = ("_known", "_products")

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[Num, Num]] = {}
        self._products: dict[tuple[int, int], tuple[Num, Num, Num]] = {}

    def product(self, a: Num, b: Num) -> Num:
        """`a * b`, remembered by both."""
        key = (id(a), id(b))
        found = self._products.get(key)
        if found is None:
            found = (a, b, a * b)
            self._products[key] = found
        return found[2]

    def of(self, operand: Num, name: str, function: Callable[[Num], Num]) -> Num:
        """`function(operand)`, remembered under `name`."""
        key = (id(operand), name)
        found = self._known.get(key)
        if found is None:
            found = (operand, function(operand))  # holding the operand keeps its id from being used again
            self._known[key] = found
        return found[1]


def both(a: Bool, b: Bool) -> Bool:
    """Logical and of two conditions.

    >>> both(True, False)
    False
    """
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return cast(Bool, np.logical_and(a, b))
    return bool(a and b)


def either(a: Bool, b: Bool) -> Bool:
    """Logical or of two conditions.

    >>> either(True, False)
    True
    """
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return cast(Bool, np.logical_or(a, b))
    return bool(a or b)


def negate(a: Bool) -> Bool:
    """Logical not of a condition.

    >>> negate(True)
    False
    """
    return cast(Bool, np.logical_not(a)) if isinstance(a, np.ndarray) else not a


def any_true(a: Bool) -> bool:
    """Whether a condition holds for any candidate.

    >>> any_true(False)
    False
    """
    return bool(a.any()) if isinstance(a, np.ndarray) else bool(a)


def shape_of(*values: Any) -> tuple[int, ...]:
    """The broadcast shape of numbers and arrays; `()` for plain numbers.

    >>> shape_of(1.0, 2.0)
    ()
    """
    return np.broadcast_shapes(*(v.shape for v in values if isinstance(v, np.ndarray)))
