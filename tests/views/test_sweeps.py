"""Heat maps and tables of query rows."""

from __future__ import annotations

from typing import Any

import pytest

from tradespace.errors import InputError
from tradespace.views.sweeps import heat_map, rows_table

ROWS = [
    {"bandwidth": 450e9, "label": "b", "s": 2.0, "strategy": "TP8"},
    {"bandwidth": 25e9, "label": "a", "s": 1.0, "strategy": "TP1"},
    {"bandwidth": 25e9, "label": "b", "s": None, "strategy": None},
]


def test_sides_keep_their_order_and_cells_without_a_number_stay_empty() -> None:
    chart: dict[str, Any] = heat_map(ROWS).to_dict()
    cells = chart["layer"][0]
    values = chart.get("data", cells.get("data"))["values"]
    assert [(row["x"], row["y"], row["t"]) for row in values] == [("450 G", "b", "TP8"), ("25 G", "a", "TP1")]
    assert cells["encoding"]["x"]["sort"] == ["25 G", "450 G"]
    assert cells["encoding"]["y"]["sort"] == ["a", "b"]  # words as they come, from below


def test_three_columns_show_the_number() -> None:
    chart = heat_map([{"x": 1, "y": 2, "s": 0.12345}]).to_dict()
    values = chart.get("data", chart["layer"][0].get("data"))["values"]
    assert values == [{"x": "1", "y": "2", "v": 0.12345, "t": "0.1235"}]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "three columns"),
        ([{"a": 1, "b": 2}], "three columns"),
        ([{"a": 1, "b": 2, "c": "x"}], "no number to colour"),
        ([{"a": i, "b": i, "c": i} for i in range(10_001)], "too many cells"),
    ],
)
def test_rows_that_make_no_map(rows: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        heat_map(rows)


def test_tables() -> None:
    assert rows_table([]) == "no rows"
    wide = rows_table([{f"c{i}": float(i) for i in range(12)}])
    assert wide.splitlines()[11].split() == ["c11", "11"]
    table = rows_table([{"n": i} for i in range(150)])
    assert table.row_count == 100
    assert "100 of 150" in table.caption
