"""1F1B and its interleaved form (Narayanan et al. 2021, arXiv 2104.04473, section 2.2; Megatron-LM)."""

from __future__ import annotations

from tradespace.errors import InputError
from tradespace.num import Num, maximum, minimum
from tradespace.schedule.passes import Order, Pass, alternate
from tradespace.schedule.stage_times import StageTimes, transfer_per_pass

EXACT = (
    "even stages; or a last stage with the longest forward and the longest backward (interleaved: other stages at least "
    "half as long, forward and backward within a factor 4 of one another); or, not interleaved and m >= p, "
    "no stage's forward + backward shorter than the longest single pass; interleaved: m a multiple of p"
)
SOURCES = ("Narayanan et al. 2021, arXiv 2104.04473, section 2.2", "Megatron-LM, pipeline_parallel/schedules.py")


def makespan(times: StageTimes) -> Num:
    """Seconds from the first forward's start to the last backward's end; `virtual_stages` may hold 1 and more.

    With c = f + b of a stage: max over stages k of (m c_k + (sum of all c - q_k) / v). Stage k works for m c_k; the
    rest is what it waits: for the stages before it twice (fill and drain), and behind it once more than its own work
    hides there. With p - 1 - k stages behind, which take S together, it waits 2 S - (p - 1 - k) c_k for them, at least 0
    and at most S, so q_k = c_k + clip((p - 1 - k) c_k - S, 0, S). These are lengths of paths through the schedule when
    v = 1 and m >= p, so the form is then never above the timeline. Even stages give (m + (p - 1) / v) c (Narayanan et
    al. 2021, section 2.2). Where it is exact: `EXACT`; elsewhere tests/schedule states bounds. Within a class the last
    stage is the one that waits longest, and the heavier middle stages, if any, outweigh the lighter ones.

    The expression for uneven stages is derived here, not published; the timeline checks it. When interleaved, with m
    no multiple of p, it is an extrapolation: Megatron-LM refuses that and `order` does too.

    >>> makespan(StageTimes((1.0, 2.0, 0.0, 1.0), (1.0, 1.0, 0.0, 1.0), (2.0, 2.0, 0.0, 2.0), 0.0, 4.0, 1.0, 8.0))
    33.0
    >>> makespan(StageTimes((1.0, 2.0, 0.0, 1.0), (1.0, 1.0, 0.0, 1.0), (2.0, 2.0, 0.0, 2.0), 0.0, 4.0, 3.0, 8.0))
    27.0
    """
    chunks, microbatches = times.virtual_stages, times.microbatches
    first, heavy, light, last = (f + b for f, b in zip(times.forward, times.backward, strict=True))
    one, num_heavy, num_light, num_last = times.counts
    middle = maximum(heavy, light)
    # Where no heavier stages exist, the first lighter one stands for its class: its like behind it cancel in q.
    after_middle = num_light * light + num_last * last
    after_first = num_heavy * heavy + after_middle
    total = one * first + after_first
    slowest = maximum(
        microbatches * first - _unhidden(first, times.pipeline - 1.0, after_first) / chunks,
        microbatches * middle - _unhidden(middle, num_light + num_last, after_middle) / chunks,
    )
    slowest = maximum(slowest, microbatches * last - last / chunks)
    transfers = (2.0 * transfer_per_pass(times)) * (microbatches * chunks + (times.pipeline - 1.0))
    return slowest + total / chunks + transfers


def _unhidden(own: Num, behind: Num, after: Num) -> Num:
    """q_k of a stage of `own` seconds with `behind` stages behind it, which take `after` seconds together."""
    return own + maximum(minimum(behind * own - after, after), 0.0)


def order(pipeline: int, virtual_stages: int, microbatches: int) -> Order:
    """The passes of each stage as Megatron-LM runs them.

    One chunk per stage: min(p - 1 - i, m) forwards to warm up. Interleaved: microbatches in groups of p, each group
    through all chunks of the stage before the next; 2 (p - 1 - i) + (v - 1) p forwards to warm up. (Versions before
    2023 warm up with all forwards when m = p.) Raises `InputError` when interleaved and m is no multiple of p.

    >>> "".join(f"{p.kind[0]}{p.chunk}.{p.microbatch} " for p in order(2, 2, 2)[1])
    'f1.0 f1.1 f3.0 b3.0 f3.1 b3.1 b1.0 b1.1 '
    """
    p, v, m = pipeline, virtual_stages, microbatches
    if v > 1 and m % p:
        raise InputError(f"interleaved: microbatches = {m}, but groups of {p} (the pipeline degree) must fill up")
    size = p if v > 1 else m
    ids = [(chunk, j) for start in range(0, m, size) for chunk in range(v) for j in range(start, start + size)]
    stages: Order = []
    for i in range(p):
        forwards = [Pass("forward", chunk * p + i, j) for chunk, j in ids]
        backwards = [Pass("backward", (v - 1 - chunk) * p + i, j) for chunk, j in ids]
        warmup = 2 * (p - 1 - i) + (v - 1) * p if v > 1 else p - 1 - i
        stages.append(alternate(forwards, backwards, min(warmup, m * v)))
    return stages
