"""Documents, table and figure of what resources are worth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tradespace.cli import run

WANTED = ("whatif", "llama-3.1-8b", "dgx-h100", "tp=2", "--devices", "16", "--global-batch", "64")


def test_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WANTED, "--format", "json", "--curve", "network.fabric.bandwidth=0.5,1,2"]) == 0
    found = json.loads(capsys.readouterr().out)
    keys = {"resource", "unit", "elasticity_time", "elasticity_cost", "elasticity_energy", "reoptimized", "break_even"}
    assert all(keys <= set(row) for row in found)
    by_name = {row["resource"]: row for row in found}
    assert by_name["network.fabric.bandwidth"]["value"] == 50e9
    assert [point["value"] for point in by_name["network.fabric.bandwidth"]["break_even"]] == [25e9, 50e9, 100e9]
    peak = by_name["device.peak"]
    assert peak["worth"]["share"] == pytest.approx(peak["step_time_s"] / peak["up"]["step_time_s"] - 1.0)
    assert peak["worth"]["usd_per_device_hour"] == pytest.approx(6.88 * peak["worth"]["share"])


def test_table_and_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run([*WANTED, "--out", str(tmp_path / "t.json")]) == 0
    assert "device.peak" in capsys.readouterr().out
    chart = json.loads((tmp_path / "t.json").read_text())
    assert "matters most" in chart["title"]["text"]
    assert len(chart["vconcat"]) == 3
    assert run([*WANTED, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("resource,unit,value,elasticity_time")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--curve", "network.nvlink.bandwith=1"), "did you mean 'network.nvlink.bandwidth'"),
        (("--curve", "devices=0"), "below"),
        (("--set", "device.peak=0"), "peak"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], more: tuple[str, ...], message: str) -> None:
    assert run([*WANTED, *more]) == 2
    assert message in capsys.readouterr().err
