"""StageTimes: the contract between costs, closed forms and the timeline."""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.num import Num, at_least


@dataclass(frozen=True, eq=False)
class StageTimes:
    """What one microbatch costs on each class of stage, in seconds; every entry may be an open-axis array.

    Stage classes in order along the pipeline: first, heavier middle, lighter middle, last. `counts` says how many
    stages each class stands for: they sum to `pipeline`, the first class has one, an empty class has zero times.
    `forward` and `backward` are for one microbatch through all model chunks of the stage; backward holds input
    gradient, weight gradient and recompute. Both contain what the stage waits for inside (exposed tensor and context
    exchanges). `p2p` is the exposed time of one transfer over one stage boundary in one direction. With more than one
    stage each pass of each chunk keeps its stage busy for one `p2p` beside its own time: 2 x `virtual_stages` x `p2p`
    per stage and microbatch (`transfer_per_pass`).
    """

    counts: tuple[Num, ...]
    forward: tuple[Num, ...]
    backward: tuple[Num, ...]
    p2p: Num
    pipeline: Num
    virtual_stages: Num
    microbatches: Num


def transfer_per_pass(times: StageTimes) -> Num:
    """Seconds that a transfer adds to each pass of one chunk: `p2p`, nothing with a single stage.

    Megatron-LM pairs the send of one pass with the receive of the next one in a single call, so a stage pays one
    transfer per pass, not two.

    >>> one = StageTimes((1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (2.0, 0.0, 0.0, 0.0), 0.1, 1.0, 1.0, 8.0)
    >>> transfer_per_pass(one)
    0.0
    """
    return at_least(times.pipeline, 2.0) * times.p2p
