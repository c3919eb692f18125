"""Measured memory beside predictions, and the page that is made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradespace.cli import run
from tradespace.errors import InputError
from tradespace.evidence.memory import memory_report
from tradespace.views.memory_page import page, scatter

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def report() -> dict:
    return memory_report()


def test_the_page_is_current(report: dict) -> None:
    assert (DOCS / "memory.md").read_text(encoding="utf-8") == page(report), "run `make memory`"


def test_worst_rows_come_first_and_none_is_dropped(report: dict) -> None:
    errors = [abs(row["error"] or 0.0) for row in report["rows"]]
    assert errors == sorted(errors, reverse=True)
    assert all((row["error"] is None) == bool(row["skipped"]) for row in report["rows"])


@pytest.mark.parametrize(("source", "limit"), [("simumax", 0.02), ("mlperf", 0.08), ("titan", 0.10), ("bloom", 0.12)])
def test_mean_errors(report: dict, source: str, limit: float) -> None:
    assert report["summary"]["source"][source]["mean_abs_error"] < limit


def test_runs_that_ran_are_not_ruled_out(report: dict) -> None:
    """All packaged runs ran: at least 95 % of the verdicts have to be `fits`, and next to none `does not fit`."""
    found = report["verdicts"]["ok"]
    assert found["fits"] > 0.94 * sum(found.values())
    assert found["does not fit"] <= 3


def test_the_picture_shows_every_predicted_run(report: dict) -> None:
    points = [row for row in report["rows"] if row["error"] is not None]
    assert f"{len(points)} runs" in str(scatter(report["rows"]).to_dict()["title"])


def test_a_file_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (DOCS.parent / "src/tradespace/catalog/published/memory.csv").read_text(encoding="utf-8").splitlines()
    chosen = [lines[0], *(line for line in lines if line.startswith("simumax"))][:4]
    file = tmp_path / "runs.csv"
    file.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    assert run(["validate", "--data", str(file), "--out", str(tmp_path / "page")]) == 0
    capsys.readouterr()
    assert "simumax" in (tmp_path / "page" / "memory.md").read_text(encoding="utf-8")
    assert (tmp_path / "page" / "images" / "memory.png").stat().st_size > 10_000


def test_a_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("id,step_s\na,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="columns missing"):
        memory_report(file)
