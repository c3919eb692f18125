"""Figures: what they show equals the numbers, and files stand alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tradespace as ts
from tradespace.cost.memory import PARTS
from tradespace.errors import InputError
from tradespace.step import TIME_PARTS
from tradespace.views.figures import memory_rows, plan_figure, save, step_figure, time_rows
from tradespace.views.theme import MEMORY_COLORS, TIME_COLORS

CLUSTER = ts.cluster("dgx-h100", devices=16)
PLAN = ts.plan(ts.model("llama-3.1-8b"), CLUSTER, ts.strategy("global_batch=64", cluster=CLUSTER), top=4)


def test_bars_sum_to_the_step_time_and_the_memory() -> None:
    for rank, step in enumerate(PLAN.top, 1):
        seconds = sum(row["seconds"] for row in time_rows(PLAN.top) if row["rank"] == rank)
        assert seconds == pytest.approx(float(step.step_time))
        size = sum(row["GB"] for row in memory_rows(PLAN.top) if row["rank"] == rank)
        assert size == pytest.approx(float(step.memory_total) / 1e9)


def test_every_part_has_its_colour() -> None:
    assert list(TIME_COLORS) == list(TIME_PARTS)
    assert list(MEMORY_COLORS) == list(PARTS)
    assert len(set(TIME_COLORS.values())) == len(TIME_COLORS)


def test_html_stands_alone(tmp_path: Path) -> None:
    """No script, style or picture is loaded from anywhere else."""
    save(plan_figure(PLAN), tmp_path / "plan.html")
    text = (tmp_path / "plan.html").read_text()
    assert not re.findall(r"<(?:script|link)[^>]+(?:src|href)=", text)


@pytest.mark.parametrize("dark", [False, True])
def test_png_and_svg(tmp_path: Path, dark: bool) -> None:
    save(step_figure(PLAN.top[0], dark=dark), tmp_path / "step.png")
    assert (tmp_path / "step.png").read_bytes()[:4] == b"\x89PNG"
    save(plan_figure(PLAN, dark=dark), tmp_path / "plan.svg")
    assert "<svg" in (tmp_path / "plan.svg").read_text()


def test_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png"):
        save(step_figure(PLAN.top[0]), tmp_path / "step.gif")
