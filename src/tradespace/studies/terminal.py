"""A study's claims as tables: for the terminal, and as flat rows for CSV and Markdown."""

from __future__ import annotations

from typing import Any

NO_LIMIT = 1e9
"""The upper end of an interval without one."""


def number(value: float | None) -> str:
    """A number in at most four digits; "none" where nothing fits.

    >>> number(3.0439), number(256.0), number(None)
    ('3.044', '256', 'none')
    """
    return "none" if value is None else f"{value:.4g}"


def interval(row: dict[str, Any]) -> str:
    """The interval that a claim must reach; empty where the paper leaves it open."""
    if row["low"] is None:
        return ""
    if row["high"] >= NO_LIMIT:
        return f"at least {number(row['low'])}"
    return number(row["low"]) if row["low"] == row["high"] else f"{number(row['low'])} to {number(row['high'])}"


def ranges(row: dict[str, Any]) -> str:
    """How far each assumption moves the value."""
    return "; ".join(f"{key} {number(low)} to {number(high)}" for key, (low, high) in row["range"].items())


def flat(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with texts in place of lists."""
    return [{**row, "assumptions": "; ".join(row["assumptions"]), "range": ranges(row)} for row in rows]


def claims(rows: list[dict[str, Any]]) -> Any:
    """The claims with expected and found values and verdicts."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("", "claim", "paper", "here", "interval", "verdict"):
        table.add_column(name, justify="right" if name in ("", "paper", "here") else "left")
    for row in rows:
        value, paper = number(row["value"]), number(row["expected"])
        table.add_row(str(row["id"]), row["claim"], paper, value, interval(row), row["verdict"])
    return table


def details(rows: list[dict[str, Any]]) -> Any:
    """What each claim rests on, and how far each assumption moves its value."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title="what the verdicts rest on", title_justify="left")
    for name in ("", "rests on", "moves over what is assumed"):
        table.add_column(name, ratio=None if not name else 1)
    for row in rows:
        table.add_row(str(row["id"]), "; ".join(row["assumptions"]), ranges(row))
    return table


def listing(found: list[dict[str, str]]) -> Any:
    """The studies with their titles and sources."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("name", "title", "source"):
        table.add_column(name)
    for row in found:
        table.add_row(row["name"], row["title"], row["source"])
    return table
