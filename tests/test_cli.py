"""The command line as scripts see it: streams, exit codes, JSON keys, one sentence per fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tradespace.cli import run

CASE = ["llama-3.1-8b", "dgx-h100", "cp=2,precision=bf16-grads,global_batch=128"]
PREDICT = ["predict", *CASE, "--devices", "8", "--seq", "8192"]
TIME = {
    "forward",
    "input_grad",
    "weight_grad",
    "recompute",
    "optimizer",
    "exposed_tensor",
    "exposed_context",
    "exposed_expert",
    "exposed_data",
    "exposed_pipeline",
    "bubble",
    "offload",
    "other",
}
MEMORY = {"weights", "gradients", "optimizer", "master", "activations", "logits", "buffers", "overhead", "total"}


def document(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict:
    assert run([*arguments, "--format", "json"]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_predict_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *PREDICT)
    assert found["schema"] == 1
    assert set(found["time"]) == TIME
    assert set(found["memory"]) == MEMORY
    assert sum(found["time"].values()) == pytest.approx(found["step_time_s"])
    assert found["low"] < found["step_time_s"] < found["high"]
    assert found["parameters"]["total"] == 8030261248
    assert found["verdict"] == "fits"
    assert found["strategy"]["dp"] == 4


def test_published_throughput(capsys: pytest.CaptureFixture[str]) -> None:
    """Llama 3.1 8B, 8 H100, bf16, NeMo 24.12: 12.78 s per step (NVIDIA DGX Cloud recipes, v25.02)."""
    found = document(capsys, *PREDICT, "--measured-step", "12.78s")
    assert found["gap"]["ratio"] == pytest.approx(1.0, abs=0.05)
    assert found["gap"]["ladder"][-1]["total"] == pytest.approx(12.78)


def test_does_not_fit_is_exit_3_with_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["predict", "llama-3.1-405b", "dgx-h100", "tp=8,global_batch=8", "--devices", "8"]
    found = document(capsys, *arguments, code=3)
    assert found["verdict"] == "does not fit"
    assert any("GB" in reason for reason in found["reasons"])


def test_illegal_is_exit_3_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "predict", "llama-3.1-8b", "dgx-h100", "tp=1,pp=2,vp=20,global_batch=8", code=3)
    assert any("not legal" in reason for reason in found["reasons"])


def test_plan_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(
        capsys, "plan", "llama-3.1-8b", "dgx-h100", "--devices", "16", "--global-batch", "64", "--top", "3"
    )
    assert found["strategies_total"] >= found["strategies_legal"] >= found["strategies_fitting"] > 0
    assert len(found["top"]) == 3
    assert found["best"]["step_time_s"] == found["top"][0]["step_time_s"]


def test_plan_that_cannot_fit(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "plan", "gpt3-175b", "dgx-a100", "--devices", "8", "--global-batch", "64", code=3)
    assert found["best"] is None
    assert found["nearest"]["fixes"]


def test_params_show_list_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "params", "llama-3.1-70b")["total"] == 70553706496
    assert "dgx-h100" in document(capsys, "list", "clusters")["clusters"]
    assert document(capsys, "show", "h100-sxm")["peak"] == "989.4 TFLOP/s"
    assert run(["schema", "cluster"]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "object"


def test_validate(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "validate")
    assert found["summary"]["all"]["n"] == 18


def test_settings_change_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    plain = document(capsys, *PREDICT)
    faster = document(capsys, *PREDICT, "--set", "device.memory.hbm.bandwidth=4.8TB/s")
    assert faster["step_time_s"] < plain["step_time_s"]


@pytest.mark.parametrize("form", ["table", "csv", "markdown"])
def test_other_formats(capsys: pytest.CaptureFixture[str], form: str) -> None:
    assert run([*PREDICT, "--format", form]) == 0
    out = capsys.readouterr().out
    assert out.strip()
    if form == "table":
        assert max(len(line) for line in out.splitlines()) <= 80


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html", ".csv", ".json"])
def test_figures(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"step{suffix}"
    assert run([*PREDICT, "--format", "json", "--out", str(path)]) == 0
    assert path.stat().st_size > 200


BAD = [
    (["predict", "llama-9b", "dgx-h100", "global_batch=8"], "llama"),
    (["predict", "llama-3.1-8b", "dgx-h10", "global_batch=8"], "dgx-h100"),
    (["predict", "llama-3.1-8b", "dgx-h100", "tp=8"], "global_batch"),
    (["predict", "llama-3.1-8b", "dgx-h100", "tpp=8,global_batch=8"], "tpp"),
    (["predict", "llama-3.1-8b", "dgx-h100", "tp=0,global_batch=8"], "tensor"),
    (["predict", "llama-3.1-8b", "dgx-h100", "tp=1e99,global_batch=8"], "tensor"),
    (["predict", "llama-3.1-8b", "dgx-h100", "tp=2.5,global_batch=8"], "2.5"),
    (["predict", "llama-3.1-8b", "dgx-h100", "tp=nan,global_batch=8"], "nan"),
    (["predict", "llama-3.1-8b", "dgx-h100", "dp=3,global_batch=8", "--devices", "8"], "devices"),
    (["predict", "llama-3.1-8b", "dgx-h100", "global_batch=8", "--devices", "-4"], "devices"),
    (["predict", "llama-3.1-8b", "dgx-h100", "global_batch=8", "--seq", "0"], "seq"),
    (["predict", "llama-3.1-8b", "dgx-h100", "global_batch=8", "--set", "device.peak=1979TFLOP/s"], "sparsity"),
    (["predict", "llama-3.1-8b", "dgx-h100", "global_batch=8", "--set", "network.nvlink.bandwidth=5 GB"], "GB"),
    (["predict", "llama-3.1-8b", "dgx-h100", "global_batch=8", "--measured-step", "12 GB"], "measured-step"),
    (["predict", "llama-3.1-8b", "dgx-h100", "global_batch=8", "--out", "x.xyz"], "xyz"),
    (["predict", "llama-3.1-8b"], "help"),
    (["plan", "llama-3.1-8b", "dgx-h100"], "global-batch"),
    (["plan", "llama-3.1-8b", "dgx-h100", "--global-batch", "8", "--objective", "luck"], "objective"),
    (["plan", "llama-3.1-8b", "dgx-h100", "--global-batch", "8", "--top", "0"], "top"),
    (["show", "h100-sx"], "h100-sxm"),
    (["list", "modls"], "models"),
    (["schema", "modl"], "model"),
    (["validate", "--data", "missing.csv"], "no such file"),
    (["frobnicate"], "frobnicate"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[" ".join(a)[:60] for a, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert says.lower() in captured.err.lower()
    assert "Traceback" not in captured.err


FILES = {
    "empty.json": b"",
    "list.json": b"[1, 2]",
    "broken.json": b'{"model_type": "llama", ',
    "binary.json": b"\xff\xfe\x00\x01",
    "unknown.json": b'{"model_type": "nonsense", "hidden_size": 4}',
    "missing.json": b'{"model_type": "llama", "hidden_size": 4096}',
    "negative.json": b'{"model_type": "llama", "hidden_size": -4096, "num_hidden_layers": 2, "num_attention_heads": 2,'
    b' "intermediate_size": 8, "vocab_size": 8}',
    "broken.toml": b"layers = = 3",
    "odd.toml": b'name = "x"\nlayres = 3\n',
}


@pytest.mark.parametrize("name", FILES)
def test_bad_model_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name])
    assert run(["params", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1


def test_process_exit_codes_and_streams() -> None:
    """As a process: stdout empty on errors, quiet without a terminal, a closed pipe is no fault."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent / "src")}
    command = [sys.executable, "-c", "from tradespace.cli import main; main()"]
    bad = subprocess.run([*command, "show", "nothing"], capture_output=True, text=True, env=environment, check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    good = subprocess.run(
        [*command, "params", "gpt3-175b"], capture_output=True, text=True, env=environment, check=False
    )
    assert (good.returncode, good.stderr) == (0, "")
