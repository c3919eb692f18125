"""How many microbatches are in flight on a stage, and the share of time that an even pipeline idles."""

from __future__ import annotations

from tradespace.num import Num, at_least, minimum


def in_flight_1f1b(stage: Num, pipeline: Num, virtual_stages: Num, microbatches: Num) -> Num:
    """Microbatches whose activations stage `stage` (from 0) holds at its peak, through all layers of the stage.

    One chunk per stage: min(p - i, m) (Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1). Interleaved, in groups
    of p microbatches: (v - 1) p + 2 (p - 1 - i) warm-up passes and one more (Megatron-LM, `get_pp_rank_microbatches`),
    each of 1/v of the stage, at most m v. On the first stage that is p (1 + (p - 1) / (p v)), the factor of Korthikanti
    et al. 2022 (arXiv 2205.05198, section 4.2.3), where m >= p + (p - 1) / v; with fewer microbatches it is m.

    >>> in_flight_1f1b(0.0, 8.0, 1.0, 64.0), in_flight_1f1b(7.0, 8.0, 1.0, 64.0)
    (8.0, 1.0)
    >>> in_flight_1f1b(0.0, 8.0, 2.0, 64.0), in_flight_1f1b(0.0, 8.0, 2.0, 8.0)
    (11.5, 8.0)
    """
    behind = pipeline - stage
    interleaved = ((virtual_stages - 1.0) * pipeline + (2.0 * behind - 1.0)) / virtual_stages
    held = behind + at_least(virtual_stages, 2.0) * (interleaved - behind)
    return minimum(held, microbatches)


def in_flight_gpipe(stage: Num, pipeline: Num, virtual_stages: Num, microbatches: Num) -> Num:  # noqa: ARG001
    """Microbatches in flight when all forwards come before all backwards: m on every stage.

    Huang et al. 2019 (arXiv 1811.06965, section 2.3). The arguments are those of every schedule.

    >>> in_flight_gpipe(0.0, 4.0, 1.0, 64.0)
    64.0
    """
    return microbatches


def bubble_fraction(pipeline: Num, virtual_stages: Num, microbatches: Num) -> Num:
    """Idle time of a stage over its busy time, for even stages without transfers: (p - 1) / (v m).

    Narayanan et al. 2021 (arXiv 2104.04473), sections 2.2.1 (GPipe and 1F1B, v = 1) and 2.2.2 (interleaved).

    >>> bubble_fraction(8.0, 1.0, 64.0), bubble_fraction(8.0, 2.0, 64.0)
    (0.109375, 0.0546875)
    """
    return (pipeline - 1.0) / (virtual_stages * microbatches)
