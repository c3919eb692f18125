"""Curves from nccl-tests logs, and clusters that state curves of their own."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradespace.cli import run
from tradespace.evidence.curve_fit import fit, read_log
from tradespace.inputs import load
from tradespace.network.bus_bandwidth import nccl_tests

EXAMPLES = Path(__file__).parents[2] / "examples" / "network"
LOG = EXAMPLES / "a100-8.log"


@given(st.floats(1e-6, 1e-3), st.floats(1e-13, 1e-9), st.sampled_from([0.0, 1e-9, 1e-7]))
def test_exact_times_give_their_coefficients(latency: float, slope: float, root: float) -> None:
    sizes = [float(2**k) for k in range(10, 34)]
    found = fit(sizes, [latency + slope * size + root * size**0.5 for size in sizes])
    for value, expected in zip(found, (latency, slope, root), strict=True):
        assert value == pytest.approx(expected, rel=1e-5, abs=1e-13)


def test_published_log(capsys: pytest.CaptureFixture[str]) -> None:
    """The A100 node of stas00/ml-engineering: 234.9 GB/s of bus bandwidth at 16 GiB; the fitted curve reaches it."""
    log = read_log(LOG)
    assert (log.collective, log.ranks, len(log.sizes)) == ("all_reduce", 8.0, 20)
    assert run(["fit-curve", "dgx-a100", str(LOG)]) == 0
    table = tomllib.loads("[[network]]\n" + capsys.readouterr().out)["network"][0]["curves"]["all_reduce"]
    example = tomllib.loads((EXAMPLES / "mine.toml").read_text())["network"][0]["curves"]["all_reduce"]
    assert table == example
    row = nccl_tests("all_reduce", load.cluster(str(EXAMPLES / "mine.toml")), 0.0, [2.0**34])[0]
    assert row.busbw / 1e9 == pytest.approx(234.9, rel=0.05)


def test_other_collectives_keep_the_base() -> None:
    mine, known = load.cluster(str(EXAMPLES / "mine.toml")).network[0], load.cluster("dgx-a100").network[0]
    assert mine.curves["all_gather"].fraction == known.curves["all_gather"].fraction
    assert mine.curves["all_reduce"].fraction == (0.8155,)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit-curve", "dgx-a100", str(LOG), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sizes"] == [8.0]
    assert found["median_error"][0] < 0.06


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dgx-a100"], "at least one log"),
        (["dgx-a100", "nowhere.log"], "no such file"),
        (["dgx-a100", str(EXAMPLES / "mine.toml")], "at least 4 sizes"),
        (["dgx-a100", str(LOG), "--dim", "nvlnk"], "did you mean 'nvlink'"),
        (["dgx-a100", str(LOG), str(LOG)], "one log for each group size"),
        (["dgx-a100", str(LOG), "--ranks", "1"], "at least 2"),
        (["dgx-a100", str(LOG), "--collective", "gather"], "did you mean 'all_gather'"),
    ],
)
def test_faults(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit-curve", *arguments]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("ranks", ["[2, 16]", "[2, 64, 16]", "[]"])
def test_congestion_needs_a_share_for_each_number_of_ranks(
    ranks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        (EXAMPLES / "mine.toml").read_text().replace("congestion_ranks = [2, 16, 64]", f"congestion_ranks = {ranks}")
    )
    assert run(["bus-bandwidth", str(file), "--devices", "512"]) == 2
    assert "each with its congestion_share" in capsys.readouterr().err


def test_an_unknown_base_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text((EXAMPLES / "mine.toml").read_text().replace('base = "nvlink-a100"', 'base = "nvlink-a10"'))
    assert run(["bus-bandwidth", str(file)]) == 2
    assert "nvlink-a10" in capsys.readouterr().err
