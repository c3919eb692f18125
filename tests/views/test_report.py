"""One report builder for every verb: self-contained pages with question, answer, sources and command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tradespace.cli import run
from tradespace.views.report import Report, assumed, page, table

LLAMA = "report llama-3.1-8b dgx-h100 --devices 16 --global-batch 64 --out x.html"
STUDY = """model = "llama-3.1-8b"
cluster = "dgx-h100"
devices = 16
global_batch = 64
[axes]
"network.fabric.bandwidth" = ["25 GB/s", "50 GB/s"]
"device.memory.hbm.capacity" = ["40 GB", "80 GB"]
tensor = [1, 2, 4, 8]
zero = [1, 3]
[keep]
best_per = ["network.fabric.bandwidth", "device.memory.hbm.capacity"]
pareto = ["step_time_s", "device.memory.hbm.capacity"]
"""
CASES = {
    "plan": (LLAMA, 0, "Which strategy trains", "Ranked strategies"),
    "step": (LLAMA.replace("dgx-h100", "dgx-h100 tp=2"), 0, "does it fit?", "From ideal to predicted"),
    "no fit": (
        "report llama-3.1-70b dgx-h100 tp=8,global_batch=64 --devices 8 --out x.html",
        3,
        "does not fit: 170.7 of 85.5 GB",
        "needs 170.7 GB",
    ),
    "nothing fits": (
        "report llama-3.1-405b dgx-h100 --devices 8 --global-batch 8 --out x.html",
        3,
        "Nothing fits",
        "What would make it fit",
    ),
    "whatif": (
        "whatif llama-3.1-8b dgx-h100 tp=1 --devices 16 --global-batch 64 --out x.html",
        0,
        "What should 16 x H100-SXM5-80GB have more of",
        "Effect and worth",
    ),
    "size": (
        "size llama-3.1-8b tp=1 --tokens 1e12 --days 30 --device h100-sxm --out x.html",
        0,
        "How many devices train",
        "Answers",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_report_opens_offline_and_says_what_it_rests_on(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line, code, question, section = CASES[name]
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(line)) == code
    text = Path("x.html").read_text(encoding="utf-8")
    for part in (question, section, "What is assumed", "Sources", "What is not modelled", f"tradespace {line}"):
        assert part in text, part
    assert not re.findall(r"(?:src|srcset|href)=\"(?!data:)", text)
    assert "<script" not in text
    assert "@import" not in text
    assert text.count("data:image/svg+xml") >= 2  # light and dark
    assert "wrote x.html" in capsys.readouterr().err


def test_the_command_in_a_report_makes_the_same_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    run(shlex.split(LLAMA.replace("dgx-h100", "dgx-h100 tp=2")))
    first = Path("x.html").read_text(encoding="utf-8")
    command = re.findall(r"<pre><code>tradespace (.*?)</code>", first)[0]
    Path("x.html").unlink()
    run(shlex.split(command))
    assert Path("x.html").read_text(encoding="utf-8") == first


def test_a_sweep_has_a_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(STUDY)
    assert run(["sweep", "s.toml", "--out", "d"]) == 0
    assert run(["report", "d", "--out", "x.html"]) == 0
    text = Path("x.html").read_text(encoding="utf-8")
    assert "Which of 32 candidates is best" in text
    assert "Pareto front" in text
    assert "Least step_time_s and its strategy" in text


def test_measured_runs_have_a_report(tmp_path: Path) -> None:
    assert run(["validate", "--out", str(tmp_path / "x.html"), "--format", "csv"]) == 0
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "How far are predicted step times from measured ones?" in text
    assert "Runs, worst first" in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("report llama-3.1-8b dgx-h100 --global-batch 64 --out x.pdf", "ends in .html"),
        ("report nowhere --out x.html", "directory of a finished sweep"),
        ("report llama-3.1-8b dgx-h100 --out x.html", "--global-batch is missing"),
    ],
)
def test_bad_input_is_one_sentence(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(line)) == 2
    assert said in capsys.readouterr().err


def test_text_is_escaped_and_columns_are_those_of_all_rows() -> None:
    text = page(Report("<b>", "a & b", "x", tables={"t": [{"a": 1}, {"b": "<i>"}]}))
    assert "<b>" not in text.replace("<b><", "")
    assert "a &amp; b" in text
    assert "&lt;i&gt;" in text
    assert table([{"a": 1}, {"b": 2}]).count("<th>") == 2


def test_what_is_assumed_comes_from_the_catalog() -> None:
    assert assumed("devices/no-such-device") == []
    assert any("no usable measurement" in line for line in assumed("clusters/tpu-v4"))
