"""Sweeps as real processes: killed and resumed, on local workers of which one is killed, on a scheduler."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

import tradespace as ts
from tradespace.cli import run
from tradespace.explore import distribute, store, stored
from tradespace.explore.query import query
from tradespace.explore.stored import run_study

LARGE = """
model = "gpt3-175b"
cluster = "dgx-a100"
seq = 2048
global_batch = 3072
[axes]
tensor = [1, 2, 4, 8, 16, 32]
pipeline = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 96]
virtual_stages = [1, 2, 4]
micro_batch = [1, 2, 4, 8]
recompute = ["none", "selective", "full"]
zero = [0, 1, 2, 3]
sequence_parallel = [0, 1]
devices = [512, 1024, 2048]
"device.peak" = {from = "150 TFLOP/s", to = "2 PFLOP/s", steps = 16}
"device.memory.hbm.capacity" = ["40 GB", "80 GB", "141 GB", "192 GB", "288 GB"]
"network.fabric.bandwidth" = {from = "12.5 GB/s", to = "100 GB/s", steps = 24}
"""
CELLS = 3 * 16 * 5 * 24


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("large") / "study.toml"
    found.write_text(LARGE)
    return found


@pytest.fixture(scope="module")
def whole(path: Path) -> dict[str, bytes]:
    """The files of an uninterrupted run in one process."""
    run_study(ts.study(path), path.parent / "whole")
    return content(path.parent / "whole")


def content(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*.parquet")}


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "from tradespace.cli import main; main()", *arguments])


def wait_for(directory: Path, parts: float, process: subprocess.Popen[bytes]) -> None:
    finished = directory / store.PARTS
    while (len(list(finished.glob("*.npz"))) if finished.is_dir() else 0) < parts and process.poll() is None:
        time.sleep(0.005)


def test_kill_9_and_resume(path: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    """Killed as soon as so many parts are finished, three times, then resumed to the end."""
    directory = tmp_path / "killed"
    for parts in (0, 1, 3):
        process = start("sweep", str(path), "--out", str(directory), "--resume")
        wait_for(directory, parts, process)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "ended before it was killed"
    kept = {int(file.stem): file.stat().st_mtime_ns for file in (directory / store.PARTS).glob("*.npz")}
    assert len(kept) >= 3
    seen: list[tuple[int, int]] = []
    study = ts.study(path)
    run_study(study, directory, resume=True, progress=lambda done, total: seen.append((done, total)))
    sizes = [int(np.prod([cut.stop - cut.start for cut in part])) for part in stored.parts_of(study)]
    left = sum(size for number, size in enumerate(sizes) if number not in kept)
    assert seen[-1] == (left, left)  # nothing that was finished is predicted again
    assert content(directory) == whole
    assert query(directory, "SELECT count(*) AS n FROM results") == [{"n": CELLS}]


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """Worker processes below a sweep: those that Python spawned, without its resource tracker."""
    return [child for child in process.children(recursive=True) if "spawn_main" in " ".join(child.cmdline())]


@pytest.mark.parametrize("count", [1, 2])
def test_a_killed_worker_changes_nothing(count: int, path: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    directory = tmp_path / "workers"
    process = start("sweep", str(path), "--out", str(directory), "--workers", str(count))
    wait_for(directory, 1, process)
    workers = workers_of(psutil.Process(process.pid))
    assert len(workers) == count
    os.kill(workers[0].pid, signal.SIGKILL)
    assert process.wait() == 0
    assert content(directory) == whole


def test_a_part_that_ends_every_worker_is_one_sentence() -> None:
    def work(_: int, part: int) -> int:
        return os._exit(1) if part == 3 else part

    with pytest.raises(ts.InputError, match="ended every worker"), distribute.client(1, None) as client:
        list(distribute.on_dask(client, work, 0, {part: part for part in range(5)}))


@pytest.fixture
def scheduler() -> Iterator[str]:
    """A Dask scheduler with one worker, each a process of its own."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, scheduler_port=0) as cluster:
        yield cluster.scheduler_address


def test_a_scheduler(path: Path, whole: dict[str, bytes], tmp_path: Path, scheduler: str) -> None:
    assert run(["sweep", str(path), "--out", str(tmp_path / "out"), "--scheduler", scheduler]) == 0
    assert content(tmp_path / "out") == whole


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--workers", "0"], "between 1 and 1024"),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "give one of them"),
        (["--scheduler", "tcp://127.0.0.1:1"], "no Dask scheduler answers"),
        (["--scheduler", "nonsense://x"], "no Dask scheduler answers"),
    ],
)
def test_workers_that_are_not_there(
    arguments: list[str],
    says: str,
    path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(distribute, "PATIENCE", "1s")
    assert run(["sweep", str(path), "--out", str(tmp_path / "out"), *arguments]) == 2
    assert says in capsys.readouterr().err
