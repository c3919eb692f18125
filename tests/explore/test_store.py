"""Sweeps into a directory: killed at any moment, resumed, refused, on a full disk; and queries over them."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import tradespace as ts
from tradespace.cli import run
from tradespace.explore import store, stored
from tradespace.explore.query import query
from tradespace.explore.stored import run_study

SMALL = """
model = "gpt3-175b"
cluster = "dgx-a100"
seq = 2048
global_batch = 64
devices = 64
[axes]
tensor = [1, 2, 4, 8]
pipeline = [1, 2, 4, 8]
recompute = ["none", "full"]
"network.fabric.bandwidth" = ["25 GB/s", "50 GB/s", "100 GB/s"]
"device.memory.hbm.capacity" = ["40 GB", "80 GB", "192 GB"]
"""
BEST = f"""{SMALL}
[keep]
best_per = ["network.fabric.bandwidth", "device.memory.hbm.capacity"]
pareto = ["step_time_s", "memory_total"]
histograms = ["step_time_s"]
"""


@pytest.fixture
def study(tmp_path: Path) -> Callable[[str], ts.Study]:
    def make(text: str = SMALL) -> ts.Study:
        return ts.study(write(tmp_path, text))

    return make


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "PART", 70)
    monkeypatch.setattr(stored, "PART_OF_ROWS", 70)


def write(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


def content(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*.parquet")}


class Killed(BaseException):
    """Stands for kill -9: nothing of ours catches it."""


@pytest.mark.parametrize("text", [SMALL, BEST])
@pytest.mark.usefixtures("small_parts")
def test_ended_at_any_write_and_resumed_equals_an_uninterrupted_run(
    text: str, study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, original, work = study(text), os.fsync, stored.work
    run_study(wanted, tmp_path / "whole")
    whole = content(tmp_path / "whole")
    state: dict[str, Any] = {}

    def dies(file: int) -> None:
        state["calls"] += 1
        if state["calls"] == state["fatal"]:
            raise Killed
        original(file)

    def counted(shared: Any, part: Any) -> Any:
        state["predicted"].append(stored.parts_of(wanted).index(part))
        return work(shared, part)

    monkeypatch.setattr(store.os, "fsync", dies)
    monkeypatch.setattr(stored, "work", counted)
    for fatal in range(1, 100):
        directory = tmp_path / f"killed-{fatal}"
        state |= {"calls": 0, "fatal": fatal, "predicted": []}
        try:
            run_study(wanted, directory)
        except Killed:
            finished = {int(path.stem) for path in directory.rglob("*.npz")}
            state |= {"fatal": -1, "predicted": []}
            run_study(wanted, directory, resume=True)
            assert not finished & set(state["predicted"])
            assert content(directory) == whole
            assert not list(directory.rglob(f"*{store.HALF_WRITTEN}"))
        else:
            assert fatal > 2 * 6  # each of at least six files is flushed, then its folder
            return
    pytest.fail("the sweep never ended")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from tradespace.cli import main; main()", *arguments]


def test_a_second_process_is_refused(study: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, SMALL)
    with store.locked(tmp_path / "out"):
        assert run(["sweep", str(path), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "a sweep is writing here already (process" in error
    run_study(study(), tmp_path / "out")  # the lock is free again
    holder = (
        "from tradespace.explore import store; import pathlib, sys, time\n"
        "with store.locked(pathlib.Path(sys.argv[1])): print(1, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", holder, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(ts.InputError, match=f"process {process.pid}"), store.locked(tmp_path):
        pass
    process.kill()
    process.wait()
    with store.locked(tmp_path):  # a killed process leaves no lock
        pass
    process.stdout.close()


@pytest.mark.usefixtures("small_parts")
def test_a_full_disk_is_one_sentence_and_loses_nothing(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = study(BEST)
    run_study(wanted, tmp_path / "whole")
    original = os.fsync
    for full in (1, 2, 3, 4, 8, 15, 17):
        calls, directory = 0, tmp_path / f"full-{full}"

        def fills(file: int, full: int = full) -> None:
            nonlocal calls
            calls += 1
            if calls >= full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            original(file)

        monkeypatch.setattr(store.os, "fsync", fills)
        with pytest.raises(ts.InputError, match=r"No space left on device.*--resume"):
            run_study(wanted, directory)
        monkeypatch.setattr(store.os, "fsync", original)
        assert not list(directory.rglob(f"*{store.HALF_WRITTEN}"))
        run_study(wanted, directory, resume=True)
        assert content(directory) == content(tmp_path / "whole")


@pytest.mark.parametrize("text", [BEST, SMALL])
def test_a_limit_of_the_system_on_files(text: str, tmp_path: Path) -> None:
    """The manifest fits under the limit, result files do not: what DuckDB and we write fails alike."""
    path = write(tmp_path, text.replace("[keep]", "[keep]\ntop = 288"))
    limit = 5000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    out = tmp_path / "out"
    found = subprocess.run(
        command("sweep", str(path), "--out", str(out)), preexec_fn=limited, capture_output=True, text=True, check=False
    )
    assert found.returncode == 2, found.stderr
    assert re.search(r"error: .*could not be written: .*continue with --resume", found.stderr)
    assert "internal fault" not in found.stderr
    run_study(ts.study(path), out, resume=True)
    assert query(out, "SELECT count(*) AS n FROM results")[0]["n"] > 0


def test_directories_that_are_refused(study: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_study(study(), out)
    with pytest.raises(ts.InputError, match="a finished sweep"):
        run_study(study(), out)
    with pytest.raises(ts.InputError, match=r"another study .axes changed."):
        run_study(study(SMALL.replace("[1, 2, 4, 8]", "[1, 2, 4]")), out, resume=True)
    with pytest.raises(ts.InputError, match=r"another study .keep changed."):
        run_study(study(BEST), out, resume=True)
    assert run_study(study(), out, resume=True)["finished"]  # nothing to do
    manifest = json.loads((out / store.MANIFEST).read_text())
    manifest["program"]["sha256"] = "0"
    (out / store.MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ts.InputError, match="another version of tradespace"):
        run_study(study(), out, resume=True)
    (out / store.MANIFEST).write_text("{")
    with pytest.raises(ts.InputError, match="not the manifest"):
        run_study(study(), out, resume=True)
    with pytest.raises(ts.InputError, match="holds other files"):
        run_study(study(), tmp_path)


@pytest.mark.usefixtures("small_parts")
def test_every_candidate_is_a_row_in_the_order_of_the_space(study: Any, tmp_path: Path) -> None:
    wanted = study()
    run_study(wanted, tmp_path / "out")
    rows = query(tmp_path / "out", "SELECT * FROM results")
    assert len(rows) == wanted.space.size
    shape = wanted.space.shape
    for flat in range(0, len(rows), 7):
        step = ts.predict(*wanted.space.candidate(tuple(int(i) for i in np.unravel_index(flat, shape))))
        row = rows[flat]
        assert row["tensor"] == step.strategy.tensor
        assert row["recompute"] == {0.0: "none", 2.0: "full"}[step.strategy.recompute]
        assert row["network.fabric.bandwidth"] == step.cluster.network[1].bandwidth
        assert row["memory_total"] == step.memory_total
        assert row["step_time_s"] == (step.step_time if step.legal else None)
        assert (row["legal"], row["fits"]) == (bool(step.legal), bool(step.legal and step.fits))
    assert list(rows[0])[:5] == list(wanted.columns)


def test_constraints_leave_rows_out(study: Any, tmp_path: Path) -> None:
    ruled = SMALL + '[constraints]\nsmall = "tensor * pipeline <= 8"\n'
    run_study(study(ruled), tmp_path / "out")
    found = query(tmp_path / "out", "SELECT count(*) AS n, max(tensor * pipeline) AS most FROM results")
    assert found == [{"n": 10 * 2 * 9, "most": 8}]


def test_other_programs_read_the_results(study: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_study(study(BEST), out)
    ours = query(out, "SELECT * FROM results")
    files = str(out / "results" / "*.parquet")
    assert polars.read_parquet(files).to_dicts() == ours
    frame = pandas.read_parquet(out / "results")
    assert [None if np.isnan(s) else s for s in frame["step_time_s"]] == [row["step_time_s"] for row in ours]
    assert list(frame.columns) == list(ours[0])
    histogram = query(out, "SELECT sum(count) AS n, min(\"from\") AS low FROM histograms WHERE name = 'step_time_s'")
    assert histogram[0]["n"] == json.loads((out / "manifest.json").read_text())["fitting"]
    assert len(query(out, "SELECT * FROM top")) == 10
    front = query(out, "SELECT step_time_s, memory_total FROM pareto")
    assert front == sorted(front, key=lambda row: -row["memory_total"])


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    run_study(ts.study(write(folder, SMALL)), folder / "out")
    return folder / "out"


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT step FROM results", 'Referenced column "step" not found.*step_time_s'),
        ("SELEC 1", "syntax error"),
        ("", "one SELECT is needed.*not nothing"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("SELECT * FROM nowhere", "nowhere does not exist"),
        ("COPY results TO '/tmp/stolen.csv'", "one SELECT is needed.*not copy"),
        ("EXPLAIN ANALYZE COPY results TO '/tmp/stolen.csv'", "not explain"),
        ("CREATE TABLE a (i INT)", "not create"),
        ("DROP VIEW results", "not drop"),
        ("SET threads = 1", "not set"),
        ("ATTACH '/tmp/other.db'", "not attach"),
        ("INSTALL httpfs", "one SELECT"),
        ("PRAGMA database_list", "one SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled by configuration"),
        ("SELECT * FROM read_text('/etc/passwd')", "disabled by configuration"),
        ("SELECT * FROM '/etc/passwd'", "does not exist|disabled"),
        ("SELECT * FROM glob('/etc/*')", "disabled by configuration"),
        ("SELECT * FROM range(2000000)", "more than 1,000,000 rows"),
    ],
)
def test_queries_that_are_refused(swept: Path, sql: str, says: str) -> None:
    with pytest.raises(ts.InputError, match=says) as fault:
        query(swept, sql)
    assert "\n" not in str(fault.value)


def test_queries_need_a_finished_sweep(swept: Path, tmp_path: Path) -> None:
    with pytest.raises(ts.InputError, match="no sweep is there"):
        query(tmp_path, "SELECT 1")
    manifest = json.loads((swept / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "finished": False}))
    with pytest.raises(ts.InputError, match="not finished"):
        query(tmp_path, "SELECT 1")
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ts.InputError, match="is missing"):
        query(tmp_path, "SELECT 1")


def test_command_line(swept: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sql = 'SELECT "network.fabric.bandwidth", tensor, min(step_time_s) AS s FROM results GROUP BY ALL ORDER BY ALL'
    assert run(["query", str(swept), sql, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 12
    assert run(["query", str(swept), sql, "--format", "csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 13
    assert run(["query", str(swept), sql, "--out", str(tmp_path / "map.svg")]) == 0
    assert "<svg" in (tmp_path / "map.svg").read_text()
    capsys.readouterr()
    assert run(["query", str(swept), "SELECT 1", "--out", str(tmp_path / "map.svg")]) == 2
    assert "three columns" in capsys.readouterr().err
    assert run(["sweep", str(tmp_path / "none.toml"), "--out", str(tmp_path / "out")]) == 2
    assert "no such file" in capsys.readouterr().err
    path = write(tmp_path, BEST)
    assert run(["sweep", str(path), "--out", str(tmp_path / "out"), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["candidates"], document["rows"]) == (1, 288, "best")
