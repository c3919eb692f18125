"""What the algorithms share: how often bytes cross the wire."""

from __future__ import annotations

from collections.abc import Mapping

from tradespace.num import Num, floor

# How often a tensor's (n - 1)/n crosses the wire: an all-reduce scatters and gathers, the others do one of both.
CROSSINGS: Mapping[str, float] = {"all_reduce": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0, "all_to_all": 1.0}


def hops_of_ring(ranks: Num) -> Num:
    """Links that a byte of an all-to-all crosses on average on a two-way ring of n ranks: floor(n^2/4)/n, about n/4.

    Every byte goes the shorter way; its own rank's share stays and counts as 0.

    >>> hops_of_ring(8.0), hops_of_ring(2.0)
    (2.0, 0.5)
    """
    return floor(ranks * ranks / 4.0) / ranks
