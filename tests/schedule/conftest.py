"""Random pipelines that several tests of schedules draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest

from tradespace.schedule.stage_times import StageTimes

Pair = tuple[float, float]


@pytest.fixture(scope="session")
def pipeline_of() -> Callable[..., StageTimes]:
    """StageTimes of `stages` stages, `heavy` of them in the heavier middle class, from (forward, backward) pairs of
    the four classes; what does not exist has count and times 0."""

    def make(
        stages: int, heavy: int, pairs: Sequence[Pair], microbatches: int, virtual_stages: int = 1, p2p: float = 0.0
    ) -> StageTimes:
        middle = max(stages - 2, 0)
        heavy = min(heavy, middle)
        counts = (1.0, float(heavy), float(middle - heavy), 1.0 if stages > 1 else 0.0)
        kept = [pair if count else (0.0, 0.0) for count, pair in zip(counts, pairs, strict=True)]
        return StageTimes(
            counts=counts,
            forward=tuple(f for f, _ in kept),
            backward=tuple(b for _, b in kept),
            p2p=p2p,
            pipeline=float(stages),
            virtual_stages=float(virtual_stages),
            microbatches=float(microbatches),
        )

    return make


@pytest.fixture(scope="session")
def uneven(pipeline_of: Callable[..., StageTimes]) -> Callable[..., StageTimes]:
    """A random pipeline of 2-9 stages whose stage times (forward + backward) differ by up to a factor, with a forward
    share between 1/4 (full recomputation) and 1/2, one for all stages unless `free`. `groups` bounds m / p; with
    virtual stages m is a multiple of p."""

    def make(
        draw: Random, factor: float, groups: tuple[float, float], virtual_stages: int = 1, free: bool = False
    ) -> StageTimes:
        stages = draw.randint(2, 9)
        share = draw.uniform(0.25, 0.5)
        times = [draw.uniform(1.0, factor) for _ in range(4)]
        times[1:3] = sorted(times[1:3], reverse=True)
        pairs = []
        for time in times:
            forward = (draw.uniform(0.25, 0.5) if free else share) * time
            pairs.append((forward, time - forward))
        low, high = groups
        if virtual_stages > 1:
            microbatches = stages * draw.randint(int(low), int(high))
        else:
            microbatches = draw.randint(max(1, int(low * stages)), max(1, int(high * stages)))
        p2p = draw.choice([0.0, 0.02])
        return pipeline_of(stages, draw.randint(0, 7), pairs, microbatches, virtual_stages, p2p)

    return make
