"""Double binary trees: who is above and below whom, by in-order numbering, as measured on ASTRA-sim."""

from __future__ import annotations


def tree(position: int, n: int, top: bool) -> tuple[int | None, list[int]]:
    """(parent, children) of a position in the tree whose root is n-1 (`top`) or 0; n is a power of two.

    >>> tree(3, 8, True), tree(7, 8, True), tree(0, 8, True)
    ((7, [1, 5]), (None, [3]), (1, []))
    """
    shift = 0 if top else 1  # the perfect tree covers n-1 positions from here, numbered in order
    root = n - 1 if top else 0
    middle = n // 2 - 1 + shift
    if position == root:
        return None, [middle]
    number = position - shift + 1  # 1 .. n-1: the height is the number of trailing zeros
    step = number & -number
    above = number - step if number & (2 * step) else number + step
    parent = root if number == n // 2 else above - 1 + shift
    children = [number - step // 2 - 1 + shift, number + step // 2 - 1 + shift] if step > 1 else []
    return parent, children
