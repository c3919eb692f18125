"""Measured runs beside predictions: what the report promises, and the accuracy that it must keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradespace.errors import InputError
from tradespace.evidence.report import validation


def test_korthikanti_eight() -> None:
    """Eight Megatron-LM runs from 22B to 1T (Korthikanti et al. 2022, table 5); no constant was fitted to them."""
    found = validation()["summary"]["source"]["korth"]
    assert found["n"] == 8
    assert found["mean_abs_error"] < 0.025


def test_sc21_ten() -> None:
    """Ten runs of Narayanan et al. 2021, table 1, a software generation older: the report shows -4 % of bias."""
    found = validation()["summary"]["source"]["sc21"]
    assert found["n"] == 10
    assert found["mean_abs_error"] < 0.06


def test_rows_are_complete_and_worst_first() -> None:
    rows = validation()["rows"]
    errors = [abs(row["error"]) for row in rows if not row["skipped"]]
    assert errors == sorted(errors, reverse=True)
    for row in rows:
        assert row["low"] < row["predicted_step_s"] < row["high"]
        assert row["error"] == pytest.approx(row["predicted_step_s"] / row["measured_step_s"] - 1)


def test_bad_files_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        validation(tmp_path / "nothing.csv")
    path = tmp_path / "runs.csv"
    path.write_text("id,layers\n1,2\n")
    with pytest.raises(InputError, match="columns missing"):
        validation(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError):
        validation(path)
