"""Layers over stages."""

from __future__ import annotations

import numpy as np
import pytest

from tradespace.workload.partition import partition


@pytest.mark.parametrize("layers", [1.0, 5.0, 24.0, 61.0, 96.0, 126.0])
def test_every_layer_is_placed_once(layers: float) -> None:
    for stages in range(1, int(layers) + 1):
        classes = partition(layers, float(stages), 0.0)
        assert sum(float(c.count) for c in classes) == stages
        assert sum(float(c.count) * float(c.layers) for c in classes) == layers
        assert sum(float(c.count) * float(c.embedding) for c in classes) == 1.0
        assert sum(float(c.count) * float(c.head) for c in classes) == 1.0


def test_405b_on_16_stages() -> None:
    """Llama 3 405B: first and last stage hold one layer less (Grattafiori et al. 2024, section 3.3.2)."""
    first, heavy, lighter, last = partition(126.0, 16.0, 0.0)
    assert (first.layers, heavy.count, heavy.layers, lighter.count, last.layers) == (7.0, 14.0, 8.0, 0.0, 7.0)


def test_array_equals_scalars() -> None:
    stages = np.arange(1.0, 97.0)
    together = partition(96.0, stages, 0.0)
    for i, count in enumerate(stages):
        for one, many in zip(partition(96.0, float(count), 0.0), together, strict=True):
            assert np.broadcast_to(many.layers, 96)[i] == one.layers


def test_balanced_split_gives_the_head_its_layers() -> None:
    """A head that costs three layers leaves the last stage with three layers less; the layers still add up."""
    classes = partition(32.0, 4.0, 3.0)
    assert sum(float(c.count) * float(c.layers) for c in classes) == 32.0
    assert classes[3].layers < classes[0].layers
