"""SQL over the results of a finished sweep: reads the result files and nothing else, writes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tradespace.errors import InputError
from tradespace.explore.parquet import duckdb
from tradespace.explore.store import read_manifest

MOST_ROWS = 1_000_000
Row = dict[str, Any]


def query(directory: Path | str, sql: str) -> list[Row]:
    """The rows of one SELECT over a sweep's directory; tables: results, top, and pareto and histograms if kept.

    The SQL is DuckDB's. Columns with dots are quoted: SELECT "network.nvlink.size" FROM results. Without ORDER BY rows
    come in the order of the space: outer axes first.
    """
    folder = Path(directory)
    tables = _tables(folder)
    module = duckdb()
    with module.connect() as connection:
        for name, files in tables.items():
            listed = ", ".join(_text(file) for file in files)
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}])")
        allowed = ", ".join(_text(file) for files in tables.values() for file in files)
        connection.execute(f"SET temp_directory = ''; SET allowed_paths = [{allowed}]")
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        try:
            statements = connection.extract_statements(sql)
            kinds = [statement.type.name for statement in statements]
            if kinds != ["SELECT"]:  # EXPLAIN ANALYZE would run what it explains
                wanted = "one SELECT is needed, such as SELECT * FROM results LIMIT 5"
                raise InputError(f"query: {wanted}, not {_said(kinds)}")
            found = connection.execute(statements[0])
            names = _distinct([column[0] for column in found.description])
            return [dict(zip(names, row, strict=True)) for row in _rows(found)]
        except module.Error as fault:
            raise InputError(f"query: {_sentence(str(fault))}") from None


def _tables(folder: Path) -> dict[str, list[str]]:
    """Result files by table."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder}: no sweep is there; make one with tradespace sweep STUDY.toml --out {folder}")
    if not manifest["finished"]:
        raise InputError(f"{folder}: the sweep is not finished; continue it with tradespace sweep --resume")
    found: dict[str, list[str]] = {}
    for name, entry in sorted(manifest.get("files", {}).items()):
        path = folder / name
        if not path.is_file() or path.stat().st_size != entry["bytes"]:
            raise InputError(f"{path}: is missing or is not what the sweep wrote; sweep again into a new directory")
        found.setdefault(path.parent.name, []).append(str(path.resolve()))
    return found


def _rows(found: Any) -> Iterator[tuple[Any, ...]]:
    count = 0
    while batch := found.fetchmany(10_000):
        count += len(batch)
        if count > MOST_ROWS:
            raise InputError(f"query: more than {MOST_ROWS:,} rows; aggregate, add a LIMIT, or read the Parquet files")
        for row in batch:
            yield tuple(_plain(value) for value in row)


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return float(value) if hasattr(value, "as_tuple") else str(value)


def _distinct(names: list[str]) -> list[str]:
    """Column names, a number behind those that come again."""
    return [name if name not in names[:i] else f"{name}_{names[:i].count(name) + 1}" for i, name in enumerate(names)]


def _text(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


def _said(kinds: list[str]) -> str:
    return " and ".join(kind.lower() for kind in kinds) or "nothing"


def _sentence(message: str) -> str:
    """DuckDB's message without its picture of the place."""
    hint = '; names with dots are quoted: "network.nvlink.size"' if "Referenced table" in message else ""
    return " ".join(message.split("LINE 1:")[0].split()) + hint
