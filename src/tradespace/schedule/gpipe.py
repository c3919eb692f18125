"""GPipe: all forwards, then all backwards (Huang et al. 2019, arXiv 1811.06965)."""

from __future__ import annotations

from tradespace.errors import InputError
from tradespace.num import Num, maximum
from tradespace.schedule.passes import Order, Pass
from tradespace.schedule.stage_times import StageTimes, transfer_per_pass

EXACT = "always (one chunk per stage)"
SOURCES = ("Huang et al. 2019, arXiv 1811.06965", "Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1")


def makespan(times: StageTimes) -> Num:
    """Seconds from the first forward's start to the last backward's end.

    Each half is a flow shop of identical jobs: the first microbatch passes all stages, each further one adds the
    slowest stage. sum f + (m - 1) max f + sum b + (m - 1) max b, every pass lengthened by its transfer.

    >>> makespan(StageTimes((1.0, 2.0, 0.0, 1.0), (1.0, 1.0, 0.0, 1.0), (2.0, 2.0, 0.0, 2.0), 0.0, 4.0, 1.0, 8.0))
    33.0
    """
    total: Num = 0.0
    slowest_f, slowest_b = times.forward[0], times.backward[0]
    for count, forward, backward in zip(times.counts, times.forward, times.backward, strict=True):
        total = total + count * (forward + backward)
        slowest_f, slowest_b = maximum(slowest_f, forward), maximum(slowest_b, backward)
    more = times.microbatches - 1.0
    transfers = (2.0 * times.virtual_stages) * transfer_per_pass(times) * (more + times.pipeline)
    return total + more * (slowest_f + slowest_b) + transfers


def order(pipeline: int, virtual_stages: int, microbatches: int) -> Order:
    """The passes of each stage.

    >>> [p.kind for p in order(2, 1, 2)[0]]
    ['forward', 'forward', 'backward', 'backward']
    """
    if virtual_stages != 1:
        raise InputError(f"gpipe: virtual_stages = {virtual_stages}, but a stage is one chunk; 'interleaved' has more")
    every = range(microbatches)
    return [[Pass("forward", i, j) for j in every] + [Pass("backward", i, j) for j in every] for i in range(pipeline)]
