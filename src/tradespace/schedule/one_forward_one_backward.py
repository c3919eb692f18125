"""1F1B and its interleaved form (Narayanan et al. 2021, arXiv 2104.04473, section 2.2; Megatron-LM)."""

from __future__ import annotations

from tradespace.errors import InputError
from tradespace.num import Num, at_least, maximum, minimum
from tradespace.schedule.passes import Order, Pass, alternate
from tradespace.schedule.stage_times import StageTimes, transfer_per_pass

EXACT = (
    "even stages; or a last stage with the longest forward and the longest backward (interleaved: others at least half "
    "as long, forward and backward within a factor 4 of one another); or, not interleaved and m >= p, no stage's "
    "forward + backward shorter than the longest single pass; always: m a multiple of p where interleaved"
)
SOURCES = ("Narayanan et al. 2021, arXiv 2104.04473, section 2.2", "Megatron-LM, pipeline_parallel/schedules.py")


def makespan(times: StageTimes) -> Num:
    """Seconds from the first forward's start to the last backward's end; `virtual_stages` may hold 1 and more.

    The largest over stages k of m c_k + w_k / v, with c = f + b of a stage: stage k works for m c_k and waits for the
    others. The stages before it (B seconds of one microbatch together) fill and drain; of those behind it (n stages,
    A seconds), fill and drain twice but its own work hides one pass for each of them:
    w_k = B + clip(2 A - n c_k, 0, A). When v = 1 and m >= p, m c_k + B + 2 A - n c_k is the length of a path through
    the passes, so the timeline is never shorter. Even stages give (m + (p - 1) / v) c (Narayanan et al. 2021, section
    2.2); the expression for uneven stages is derived here, not published, and the timeline checks it. Where it is
    exact: `EXACT`. Elsewhere, stages within a factor 2 of one another: v = 1 and m >= p at most 15 % short (0.2 % on
    average), m < p within 12 % (0.3 %), v > 1 within 16 % (3.5 %), found by random search in tests/schedule.

    Within a class the last stage waits longest; the heavier middle class outweighs the lighter one where it exists.
    Transfers lengthen every c by 2 v p2p, which makes 2 p2p (m v + p - 1) together. Interleaved with m no multiple of
    p no schedule exists (`order` raises, `workload.legality` marks it); the value is the same expression.

    >>> makespan(StageTimes((1.0, 2.0, 0.0, 1.0), (1.0, 1.0, 0.0, 1.0), (2.0, 2.0, 0.0, 2.0), 0.0, 4.0, 1.0, 8.0))
    33.0
    >>> makespan(StageTimes((1.0, 2.0, 0.0, 1.0), (1.0, 1.0, 0.0, 1.0), (2.0, 2.0, 0.0, 2.0), 0.0, 4.0, 2.0, 8.0))
    28.5
    """
    microbatches, one_chunk = times.microbatches, 1.0 / times.virtual_stages
    first, heavy, light, last = (f + b for f, b in zip(times.forward, times.backward, strict=True))
    _, num_heavy, num_light, num_last = times.counts
    middle = maximum(heavy, light)
    after_lighter = num_last * last
    lighter = num_light * light
    both_kinds = at_least(num_heavy, 1.0)  # else the slowest middle stage is the last lighter one
    after_middle = both_kinds * lighter + after_lighter
    after_first = num_heavy * heavy + lighter + after_lighter
    total = first + after_first
    behind = both_kinds * num_light + num_last
    wait_first = _clip(2.0 * after_first - (times.pipeline - 1.0) * first, after_first)
    wait_middle = total - middle - after_middle + _clip(2.0 * after_middle - behind * middle, after_middle)
    longest = maximum(
        maximum(microbatches * first + wait_first * one_chunk, microbatches * middle + wait_middle * one_chunk),
        microbatches * last + (total - last) * one_chunk,
    )
    return longest + (2.0 * transfer_per_pass(times)) * (microbatches * times.virtual_stages + (times.pipeline - 1.0))


def _clip(wait: Num, most: Num) -> Num:
    """`wait`, but at least 0 and at most `most`."""
    return minimum(maximum(wait, 0.0), most)


def order(pipeline: int, virtual_stages: int, microbatches: int) -> Order:
    """The passes of each stage as Megatron-LM runs them.

    One chunk per stage: min(p - 1 - i, m) forwards to warm up. Interleaved: microbatches in groups of p, each group
    through all chunks of the stage before the next; 2 (p - 1 - i) + (v - 1) p forwards to warm up. (Older
    versions run all forwards first when m = p.) Raises `InputError` when interleaved and m is no multiple of p.

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
