"""StageTimes: the contract between costs, closed forms and the timeline."""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.num import Num


@dataclass(frozen=True, eq=False)
class StageTimes:
    """What one microbatch costs on each class of stage, in seconds; every entry may be an open-axis array.

    Stage classes in order along the pipeline: first, heavier middle, lighter middle, last. `counts` says how many
    stages each class stands for (they sum to `pipeline`; a class may be empty). `forward` and `backward` are for one
    microbatch through all model chunks of the stage; backward holds input gradient, weight gradient and recompute. Both contain what the
    stage waits for inside (exposed tensor and context exchanges). `p2p` is the exposed time of one transfer over one
    stage boundary in one direction; sender and receiver are busy for it, once per chunk.
    """

    counts: tuple[Num, ...]
    forward: tuple[Num, ...]
    backward: tuple[Num, ...]
    p2p: Num
    pipeline: Num
    virtual_stages: Num
    microbatches: Num
