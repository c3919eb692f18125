"""Tables: 80 columns, escaped names, rows that other tools read."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from rich.console import Console

import tradespace as ts
from tradespace.views.tables import (
    as_csv,
    as_markdown,
    ladder_table,
    plan_table,
    rows_of_plan,
    rows_of_step,
    step_html,
    step_table,
)

CLUSTER = ts.cluster("dgx-h100", devices=1024)
MODEL = ts.model("llama-3.1-405b", seq=8192)
PLAN = ts.plan(MODEL, CLUSTER, ts.strategy("global_batch=512", cluster=CLUSTER), top=5)
STEP = PLAN.top[0]


def printed(part: object) -> str:
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(part)
    return console.export_text()


@pytest.mark.parametrize("part", [step_table(STEP), ladder_table(STEP), plan_table(PLAN)])
def test_tables_fit_80_columns(part: object) -> None:
    text = printed(part)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text


def test_plan_table_names_every_strategy_and_loss() -> None:
    text = " ".join(printed(plan_table(PLAN)).split())
    assert f"{PLAN.total:,} strategies" in text
    assert all(loss.split(":")[0] in text for loss in PLAN.losses if loss)


def test_names_are_escaped_in_html() -> None:
    named = replace(STEP, model=replace(MODEL, name="<script>alert(1)</script>"))
    assert "<script>" not in step_html(named)
    assert "<script>" not in PLAN._repr_html_()


def test_csv_and_markdown_round_trip() -> None:
    rows = rows_of_plan(PLAN)
    back = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert [float(row["step_time_s"]) for row in back] == [float(step.step_time) for step in PLAN.top]
    assert as_markdown(rows_of_step(STEP)).count("\n") == 3
    assert as_csv([]) == ""
