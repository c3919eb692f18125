"""What a run costs, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tradespace.cli import run


def document(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, object]:
    assert run([*arguments, "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_predict_names_its_price(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(
        capsys, "predict", "llama-3.1-8b", "dgx-h100", "tp=2,global_batch=64", "--devices", "64", "--tokens", "1e12"
    )
    cost, whole = found["cost"], found["run"]
    assert isinstance(cost, dict)
    assert isinstance(whole, dict)
    assert cost["terms"] == "rented"
    assert "2026-09" in cost["basis"]["rent"]
    assert cost["usd_per_million_tokens"] == pytest.approx(
        cost["usd_per_device_hour"] / 3600 / float(str(found["tokens_per_s_per_device"])) * 1e6
    )
    assert whole["usd"] == pytest.approx(cost["usd_per_million_tokens"] * 1e6 / cost["goodput"], rel=1e-5)
    assert whole["mwh"] == pytest.approx(whole["days"] * 24 * cost["megawatts"])


def test_an_owned_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a rent the cost is that of owning: 28,750 USD a device and the network over five years, and power."""
    setting = ("--set", "cluster.economics.rent=0")
    found = document(capsys, "predict", "llama-3.1-8b", "dgx-h100", "tp=2,global_batch=64", *setting)
    cost = found["cost"]
    assert isinstance(cost, dict)
    assert cost["terms"] == "owned"
    hourly = (28750 + 562.5 + 1280) / (5 * 8760) + 8.415 / 8 * 0.0826
    assert cost["usd_per_device_hour"] == pytest.approx(hourly, rel=1e-6)


def test_plan_for_money(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ("plan", "llama-3.1-8b", "dgx-h100", "--global-batch", "64", "--objective", "cost", "--top", "3")
    found = document(capsys, *wanted)
    costs = [step["cost"]["usd_per_step"] for step in found["top"]]  # type: ignore[attr-defined]
    assert costs == sorted(costs)
    assert run(list(wanted)) == 0
    assert "USD/M tok" in capsys.readouterr().out


def test_size_prints_one_row_per_device(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ("size", "llama-3.1-8b", "--tokens", "1e12", "--days", "30", "--device", "h100-sxm", "--device", "mi300x")
    assert run([*wanted, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["device"] for row in found] == ["h100-sxm", "mi300x"]
    assert set(found[0]) >= {"device", "devices", "days", "usd", "mwh", "strategy"}
    assert found[0]["days"] <= 30
    assert found[1]["terms"] == "owned"
    assert run(list(wanted)) == 0
    assert "AWS" in capsys.readouterr().out


def test_size_without_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "llama-3.1-8b", "--tokens", "1e12", "--budget", "10", "--device", "h100-sxm"]) == 3
    assert "at best" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("size", "llama-3.1-8b", "--tokens", "1e12"), "0 limits are given"),
        (("size", "llama-3.1-8b", "--tokens", "1e12", "--days", "3", "--power", "2"), "2 limits are given"),
        (("size", "llama-3.1-8b", "--tokens", "1e12", "--days", "0"), "--days: 0"),
        (("size", "llama-3.1-8b", "--tokens", "1e12", "--days", "3", "--device", "h10"), "no cluster of 'h10'"),
        (("plan", "llama-3.1-8b", "dojo", "--global-batch", "64", "--objective", "cost"), "no price of Dojo-Tile"),
        (("predict", "llama-3.1-8b", "dgx-h100", "global_batch=64", "--tokens", "-1"), "--tokens: -1"),
        (
            ("predict", "llama-3.1-8b", "dgx-h100", "global_batch=64", "--set", "cluster.economics.rent=2USD"),
            "a rent such as",
        ),
        (("predict", "llama-3.1-8b", "dgx-h100", "global_batch=64", "--set", "cluster.economics.pue=0.5"), "below"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert run(list(arguments)) == 2
    assert message in capsys.readouterr().err


def test_a_cluster_file_may_state_its_own_prices(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dims = "".join(
        f'[[network]]\nname = "{name}"\nkind = "switch"\nsize = {size}\nbandwidth = "{rate}"\n'
        for name, size, rate in (("nvlink", 8, "450 GB/s"), ("fabric", 0, "50 GB/s"))
    )
    file = tmp_path / "mine.toml"
    file.write_text(f'device = "h100-sxm"\ndevices = 16\n[economics]\nrent = "2 USD/h"\n{dims}')
    cost = document(capsys, "predict", "llama-3.1-8b", str(file), "tp=2,global_batch=64")["cost"]
    assert isinstance(cost, dict)
    assert (round(cost["usd_per_device_hour"], 9), cost["basis"]["rent"]) == (2.0, "given")
    assert cost["basis"]["power"].startswith("1275 W")
    file.write_text(file.read_text().replace("rent =", "rnt ="))
    assert run(["predict", "llama-3.1-8b", str(file), "tp=2,global_batch=64"]) == 2
    assert "unknown key 'rnt'; did you mean 'rent'" in capsys.readouterr().err
