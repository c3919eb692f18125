"""Input that no one would write on purpose: one sentence and exit code 2 each, or a right answer; never a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradespace.cli import run

CASE = ["predict", "llama-3.1-8b", "dgx-h100", "tp=8,global_batch=8"]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("network.fabric.kind=zz", "unknown kind 'zz'"),
        ("network.nvlink.size=0", "only the outermost dim may be 0"),
        ("network.nvlink.size=1e9", "above the largest possible value"),
        ("network.fabric.name=nvlink", "used twice"),
    ],
)
def test_set_checks_the_network_as_a_file_is_checked(
    setting: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*CASE, "--set", setting]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_figure_may_have_a_suffix_in_capitals(tmp_path: Path) -> None:
    assert run([*CASE, "--out", str(tmp_path / "PLAN.PNG")]) == 0
    assert (tmp_path / "PLAN.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_missing_argument_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(CASE[:3]) == 2
    assert ".;" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("congestion_ranks = [1]", "each with its congestion_share"),
        ("congestion_ranks = [4, 2]\ncongestion_share = [1, 0.5]", "ascending numbers of ranks"),
        ("size = 1000000000", "above the largest possible value"),
        ("curves.all_reduce = {sizes = [1e9], latency = [0], fraction = [1], root = [0]}", "above the largest"),
    ],
)
def test_a_network_that_cannot_be(extra: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Curves that do not match their sizes, and sizes whose tables would fill the memory."""
    size = "" if extra.startswith("size") else "size = 8\n"
    text = f'key = "c"\nname = "c"\ndevice = "h100-sxm"\n[[network]]\nname = "a"\nkind = "switch"\n{size}{extra}\n'
    path = tmp_path / "c.toml"
    path.write_text(text + 'bandwidth = "450 GB/s"\n', encoding="utf-8")
    assert run([*CASE[:2], str(path), CASE[3]]) == 2
    assert words in capsys.readouterr().err


RUN = {
    "run": "r", "layers": "4", "hidden": "4096", "heads": "32", "seq_len": "4096", "device": "h100-sxm",
    "n_devices": "8", "global_batch": "8", "step_s": "1.0", "framework": "megatron-core", "mlp_matrices": "3",
    "vocab": "32000", "ffn_hidden": "11008", "kv_heads": "32", "head_dim": "128", "tp": "1", "pp": "1", "cp": "1",
    "ep": "1", "micro_batch_device": "1", "recompute_kind": "none", "virtual_stages": "1", "year": "2024",
    "domain_size": "8", "window": "0", "window_every": "1", "inter_gbps_bytes": "50",
}  # fmt: skip
NUMBERS = [name for name in RUN if name not in ("run", "device", "framework", "recompute_kind")]


def _validated(path: Path, rows: list[dict[str, str]]) -> int:
    lines = [",".join(RUN), *(",".join(row.values()) for row in rows), *["short,4"] * len(rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return run(["validate", "--data", str(path)])


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e300", "1.5", "x", "9" * 400])
def test_nonsense_in_a_cell_skips_its_row(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The good row is shown, each other skipped with its reason or predicted; no cell ends the command."""
    rows = [RUN, *({**RUN, "run": name, name: value} for name in NUMBERS)]
    assert _validated(tmp_path / "runs.csv", rows) == 0
    printed = capsys.readouterr()
    assert "\nr " in printed.out
    assert " nan" not in printed.out.split("skipped")[0]


def test_a_table_without_runs_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _validated(tmp_path / "runs.csv", []) == 2
    assert "no runs" in capsys.readouterr().err


def test_stdout_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's stdout is None where the shell closed it (>&-)."""
    monkeypatch.setattr("sys.stdout", None)
    assert run(CASE) == 0
