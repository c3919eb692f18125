"""Expressions of a study: derived fields, constraints and objectives as text, on numbers or open axes alike."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from tradespace.errors import InputError, nearest
from tradespace.inputs.strategy import RECOMPUTE_CODES
from tradespace.inputs.units import in_si

Lookup = Callable[[str, str], Any]
"""From a dotted name and the place that uses it to a number, an array with open axes, or a word."""

LONGEST = 1000
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "abs": (1, np.abs),
    "ceil": (1, np.ceil),
    "floor": (1, np.floor),
    "sqrt": (1, np.sqrt),
}


@dataclass(frozen=True)
class Expression:
    """Arithmetic and comparisons over named numbers: + - * / // %, < <= == ..., and, or, not, `a if c else b`, min,
    max, abs, ceil, floor, sqrt. Sizes may carry units: "memory_total <= '70 GB'".

    >>> Expression("tensor * pipeline <= 8 and tensor > 1", "rule").value(lambda name, where: 2.0)
    True
    """

    text: str
    where: str = field(repr=False, compare=False)

    @cached_property
    def tree(self) -> ast.expr:
        """The parsed text; anything else than an expression is an error."""
        if not isinstance(self.text, str) or not 0 < len(self.text) <= LONGEST:
            raise InputError(f"{self.where}: a text of 1 to {LONGEST} characters is needed, such as 'tensor <= 8'")
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError(
                f"{self.where}: '{self.text}' is no expression, such as 'tensor * pipeline <= 64'"
            ) from None

    def value(self, lookup: Lookup) -> Any:
        """The value: a float, a bool, or an array on the axes that its names touch."""
        try:
            with np.errstate(all="ignore"):
                found = self._value(self.tree, lookup)
        except RecursionError:
            raise InputError(f"{self.where}: the expression is nested too deeply") from None
        if isinstance(found, str):
            raise InputError(f"{self.where}: '{self.text}' is a word, not a number")
        array = np.asarray(found)
        return array if array.ndim else array.item()

    def _value(self, node: ast.expr, lookup: Lookup) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return float(number)
            case ast.Constant(value=str() as text):
                return RECOMPUTE_CODES[text] if text in RECOMPUTE_CODES else in_si(text, self.where)
            case ast.Name() | ast.Attribute():
                return lookup(self._name(node), self.where)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](self._number(left, lookup), self._number(right, lookup))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return np.negative(self._number(operand, lookup))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return np.logical_not(self._number(operand, lookup))
            case ast.BoolOp(op=op, values=values):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                parts = [self._number(part, lookup) for part in values]
                return reduce(join, parts)
            case ast.IfExp(test=test, body=body, orelse=other):
                return np.where(*(self._number(part, lookup) for part in (test, body, other)))
            case ast.Compare():
                return self._comparison(node, lookup)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(name, arguments, lookup)
        raise InputError(f"{self.where}: '{ast.unparse(node)}' cannot be used in an expression")

    def _number(self, node: ast.expr, lookup: Lookup) -> Any:
        found = self._value(node, lookup)
        if isinstance(found, str):
            raise InputError(f"{self.where}: '{ast.unparse(node)}' is the word '{found}', not a number")
        return np.asarray(found, dtype=np.float64) if not isinstance(found, np.ndarray) else found

    def _comparison(self, node: ast.Compare, lookup: Lookup) -> Any:
        """a < b <= c; words compare with words, as in schedule == 'gpipe'."""
        result: Any = True
        nodes = [node.left, *node.comparators]
        for left, op, right in zip(nodes, node.ops, nodes[1:], strict=False):
            if type(op) not in _COMPARE:
                raise InputError(f"{self.where}: '{ast.unparse(node)}' cannot be used in an expression")
            words = [self._word(side, lookup) for side in (left, right)]
            if any(word is not None for word, fixed in words if not fixed):
                here: Any = (words[0][0] == words[1][0]) == isinstance(op, ast.Eq)
            else:
                here = _COMPARE[type(op)](self._number(left, lookup), self._number(right, lookup))
            result = np.logical_and(result, here)
        return result

    def _word(self, node: ast.expr, lookup: Lookup) -> tuple[str | None, bool]:
        """The word that a side of a comparison is, None for a number; whether it is written in the expression."""
        if isinstance(node, ast.Constant):
            return (node.value if isinstance(node.value, str) else None), True
        found = lookup(self._name(node), self.where) if isinstance(node, (ast.Name, ast.Attribute)) else None
        return (found if isinstance(found, str) else None), False

    def _call(self, name: str, arguments: list[ast.expr], lookup: Lookup) -> Any:
        if name not in FUNCTIONS:
            raise InputError(f"{self.where}: unknown function '{name}'{nearest(name, FUNCTIONS)}")
        count, function = FUNCTIONS[name]
        if len(arguments) != count:
            raise InputError(f"{self.where}: {name} takes {count} value{'s' if count > 1 else ''}")
        return function(*(self._number(argument, lookup) for argument in arguments))

    def _name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self._name(node.value)}.{node.attr}"
        raise InputError(f"{self.where}: '{ast.unparse(node)}' cannot be used in an expression")
