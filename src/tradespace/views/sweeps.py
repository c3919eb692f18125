"""Sweeps and queries for people: a summary, tables of rows, and heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from tradespace.errors import InputError
from tradespace.explore.studies import Study
from tradespace.views.theme import styled

SHOWN_ROWS = 100
MOST_CELLS = 10_000
LETTER = 6.5
"""Width of a letter in the cells of a heat map, in pixels."""
Row = Mapping[str, Any]


def what_is_kept(study: Study) -> str:
    """Half a sentence on what the table `results` will hold."""
    if study.every:
        return "every one of them"
    cells = study.keep.best_per
    best = f"the best by {study.keep.by}"
    return f"{best} for each {', '.join(cells)}" if cells else f"{best}, {study.keep.top} of them"


def sweep_document(directory: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a finished sweep."""
    keys = ("candidates", "legal", "fitting", "excluded", "rows", "seconds", "parts")
    files = list(manifest["files"])
    return {"schema": 1, "directory": str(directory), **{key: manifest[key] for key in keys}, "files": files}


def sweep_table(document: Mapping[str, Any]) -> str:
    """The same as sentences."""
    lines = [
        f"{document['candidates']:,} candidates, {document['legal']:,} legal, {document['fitting']:,} fit, "
        f"{document['seconds']:.1f} s",
        *(f"{number:,} break the constraint {name}" for name, number in document["excluded"].items()),
        f'Look at them with: tradespace query {document["directory"]} "SELECT * FROM results LIMIT 5"',
    ]
    return "\n".join(lines)


def rows_table(rows: Sequence[Row]) -> Any:
    """Rows for a terminal: a table, or one line per value where they are too wide for one."""
    if not rows:
        return "no rows"
    if len(rows) <= 3 and len(rows[0]) > 8:
        return "\n\n".join("\n".join(f"{name:28s} {_shown(value)}" for name, value in row.items()) for row in rows)
    table = Table(box=None, pad_edge=False)
    for name, value in rows[0].items():
        table.add_column(name, justify="right" if isinstance(value, (int, float)) else "left", overflow="fold")
    for row in rows[:SHOWN_ROWS]:
        table.add_row(*(_shown(value) for value in row.values()))
    if len(rows) > SHOWN_ROWS:
        table.caption = f"{SHOWN_ROWS} of {len(rows):,} rows; --format csv prints all"
    return table


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def heat_map(rows: Sequence[Row], *, dark: bool = False) -> Any:
    """A heat map of rows: the first two columns are the sides, the third the colour, the fourth the text of a cell.

    Numbers on a side keep their order; a cell without a number stays empty.
    """
    names = list(rows[0]) if rows else []
    if len(names) not in (3, 4):
        raise InputError("query: a heat map needs three columns (two sides, a colour) or a fourth for the cells' text")
    if len(rows) > MOST_CELLS:
        raise InputError(f"query: {len(rows):,} rows are too many cells for a picture; group them to {MOST_CELLS:,}")
    across, down, colour = names[:3]
    known = [row for row in rows if isinstance(row[colour], (int, float))]
    if not known:
        raise InputError(f"query: column {colour} has no number to colour cells by")
    try:
        import altair
    except ImportError:
        raise InputError("figures need altair; install it with: pip install 'tradespace[plot]'") from None
    alt: Any = altair
    values = [{"x": row[across], "y": row[down], "v": row[colour], "t": _cell(row, names)} for row in known]
    sides = {key: _order([row[key] for row in values]) for key in ("x", "y")}
    for row in values:
        row["x"], row["y"] = _side(row["x"]), _side(row["y"])
    known_values = [row["v"] for row in values]
    middle = (min(known_values) + max(known_values)) / 2.0
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("x:O", title=across, sort=sides["x"], axis=alt.Axis(labelAngle=0)),
        y=alt.Y("y:O", title=down, sort=sides["y"][::-1]),
    )
    scale = alt.Scale(scheme="viridis", reverse=True)
    cells = base.mark_rect().encode(color=alt.Color("v:Q", title=colour, scale=scale))
    pale = alt.condition(alt.datum.v > middle, alt.value("white"), alt.value("#222222"))
    text = base.mark_text(fontSize=11).encode(text="t:N", color=pale)
    cell = max(90, 16 + max(LETTER * len(row["t"]) for row in values))
    width = max(260, cell * len(sides["x"]))
    return styled((cells + text).properties(width=width, height=max(140, 46 * len(sides["y"]))), dark=dark)


def _cell(row: Row, names: Sequence[str]) -> str:
    """The text of a cell: the fourth column, else the number."""
    return _shown(row[names[3]] if len(names) == 4 else row[names[2]])


def _order(values: Sequence[Any]) -> list[str]:
    """Distinct values of a side: numbers ascending, words as they come."""
    distinct = list(dict.fromkeys(values))
    numbers = all(isinstance(value, (int, float)) for value in distinct)
    return [_side(value) for value in (sorted(distinct) if numbers else distinct)]


def _side(value: Any) -> str:
    """A value on a side; large numbers with a prefix (450 G)."""
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= 1e6):
        for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
            if abs(value) >= size:
                return f"{value / size:g} {letter}"
    return f"{value:g}" if isinstance(value, float) else str(value)
