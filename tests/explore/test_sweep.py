"""Sweeps against plain loops, whatever the block."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from tradespace.errors import InputError
from tradespace.explore.space import Axis, Space
from tradespace.explore.studies import read_space
from tradespace.explore.sweep import memory_total, sweep
from tradespace.inputs import load
from tradespace.predict import predict

CLUSTER = load.cluster("dgx-a100", devices=512)
AXES = (
    Axis.of("network.fabric.bandwidth", [12.5e9, 25e9, 50e9]),
    Axis.of("device.memory.hbm.capacity", [40e9, 80e9]),
    Axis.linked("degrees", {"strategy.tensor": [1, 4, 8, 8], "strategy.pipeline": [8, 4, 4, 16]}),
    Axis.of("strategy.micro_batch", [1, 2, 3]),
    Axis.of("strategy.recompute", [0, 1, 2]),
)
SPACE = Space(load.model("gpt3-175b"), CLUSTER, load.strategy("global_batch=768", cluster=CLUSTER), AXES)


@pytest.fixture(scope="module")
def loop() -> list[tuple[float, int]]:
    """The same space, one scalar prediction after the other: (step time, position) of those that are legal and fit."""
    found = []
    for flat, position in enumerate(itertools.product(*(range(n) for n in SPACE.shape))):
        step = predict(*SPACE.candidate(position))
        if bool(step.legal) and bool(step.fits):
            found.append((float(step.step_time), flat))
    return sorted(found)


@pytest.mark.parametrize("block", [1, 7, 50, 1 << 20])
def test_best_of_any_block_size_equal_a_plain_loop(loop: list[tuple[float, int]], block: int) -> None:
    found = sweep(SPACE, keep=9, block=block)
    assert found.total == SPACE.size
    assert found.fitting == len(loop)
    assert [(float(v), int(p)) for v, p in zip(found.values, found.positions, strict=True)] == loop[:9]


@pytest.mark.parametrize("limit", [1, 5, 36, 10**6])
def test_blocks_cover_the_space_once(limit: int) -> None:
    seen = np.zeros(SPACE.shape, dtype=int)
    for index in SPACE.blocks(limit):
        seen[index] += 1
        assert np.prod([cut.stop - cut.start for cut in index]) <= max(limit, 1)
    assert (seen == 1).all()


def test_filter_and_objective() -> None:
    found = sweep(SPACE, keep=1, objective=memory_total, allowed=lambda step: step.strategy.micro_batch == 2.0)
    step = found.step(0)
    assert step.strategy.micro_batch == 2.0
    every = sweep(SPACE, keep=SPACE.size, objective=memory_total)
    of_two = [float(v) for r, v in enumerate(every.values) if every.step(r).strategy.micro_batch == 2.0]
    assert float(found.values[0]) == min(of_two)


def test_progress_reaches_the_end() -> None:
    calls: list[tuple[int, int]] = []
    sweep(SPACE, block=30, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (SPACE.size, SPACE.size)


def write(folder: Path, text: str) -> Path:
    path = folder / "space.toml"
    path.write_text(text)
    return path


def test_space_file(tmp_path: Path) -> None:
    text = """
    model = "gpt3-175b"
    cluster = "dgx-a100"
    global_batch = 64
    [axes]
    tp = [1, 2]
    recompute = ["none", "full"]
    "network.fabric.bandwidth" = ["25 GB/s", "50 GB/s"]
    devices = [64]
    """
    space = read_space(write(tmp_path, text))
    assert [axis.name for axis in space.axes][:2] == ["network.fabric.bandwidth", "devices"]
    assert space.axes[0].values == ((25e9, 50e9),)
    assert space.size == 8


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("tensr = [1]", "tensr"),
        ("pipeline = []", "list of 1"),
        ('tensor = ["x"]', "tensor"),
        ('"network.fabic.bandwidth" = ["25 GB/s"]', "fabric"),
        ('"network.fabric.bandwidth" = ["25 GB"]', "GB"),
    ],
)
def test_bad_axes_are_one_sentence(tmp_path: Path, line: str, says: str) -> None:
    text = f'model = "gpt3-175b"\ncluster = "dgx-a100"\nglobal_batch = 64\n[axes]\n{line}\n'
    with pytest.raises(InputError, match=says):
        read_space(write(tmp_path, text))
