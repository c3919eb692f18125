"""Tables of candidates as Parquet files, written by DuckDB (the extra `store`)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradespace.errors import InputError
from tradespace.explore.columns import FLAGS
from tradespace.explore.exploration import Explored, Table, axis_columns, results, words
from tradespace.explore.reduce import Histogram
from tradespace.explore.space import Index, Space
from tradespace.explore.studies import RULES
from tradespace.inputs.cluster import Cluster, Dim
from tradespace.inputs.fields import quantities
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.predict import predict

WHOLE = {name for cls in (Model, Cluster, Dim, Strategy) for name, entry in quantities(cls).items() if entry.whole}
"""Fields that count; their columns are whole numbers."""


def duckdb() -> Any:
    """The DuckDB module, or one sentence on how to get it."""
    try:
        import duckdb as module
    except ImportError:
        raise InputError("sweep: DuckDB is missing; install it with: pip install 'tradespace[store]'") from None
    return module


def every_candidate(space: Space, index: Index) -> Table:
    """The table of all candidates of a slice that meet the constraints, in the order of the space."""
    step = predict(*space.at(index))
    shape = tuple(cut.stop - cut.start for cut in index)
    opened = tuple(size for size in shape if size > 1)
    places = np.meshgrid(*(np.arange(cut.start, cut.stop) for cut in index), indexing="ij", sparse=True)
    table = {
        name: np.broadcast_to(column, shape).reshape(-1)
        for name, column in axis_columns(space, [place.astype(np.int64) for place in places]).items()
    }
    table |= {name: np.broadcast_to(column, opened).reshape(-1) for name, column in results(space, step).items()}
    met = np.ones(opened, dtype=bool)
    for condition in space.constraints.values():
        met = met & np.asarray(condition.value(space.lookup(step)), dtype=bool)
    return table if met.all() else {name: column[met.reshape(-1)] for name, column in table.items()}


def whole_columns(space: Space) -> set[str]:
    """Columns that are whole numbers; what a person derives may be none."""
    shown = [item for axis in space.axes for item in zip(axis.columns, axis.paths, strict=True)]
    found = {name for name, path in shown if path.rpartition(".")[2] in WHOLE}
    own = {name for name, rule in RULES.items() if name in space.derived and space.derived[name].text == rule}
    return found | own | {"data", "microbatches"}


def as_bytes(space: Space, table: Table, order: tuple[str, ...]) -> bytes:
    """A table as the content of a Parquet file; columns of `order` first, numbers that are not there as nulls."""
    names = [*(name for name in order if name in table), *(name for name in table if name not in order)]
    labels, counted = words(space), whole_columns(space)
    selected = ", ".join(_column(name, labels, counted) for name in names)
    renamed = ", ".join(f'c{i} AS "{_quoted(name)}"' for i, name in enumerate(names))
    columns = {f"c{i}": np.ascontiguousarray(table[name]) for i, name in enumerate(names)}
    return _written(f"SELECT {selected} FROM (SELECT {renamed} FROM columns)", columns)


def histograms_as_bytes(found: Explored) -> bytes | None:
    """All histograms in one table (name, from, to, count); None without any."""
    kept = {name: one for name, one in found.reducers.items() if isinstance(one, Histogram)}
    if not kept:
        return None
    bins = [one.bins() for one in kept.values()]
    names = [name.removeprefix("histogram.") for name in kept]
    listed = ", ".join(_text(name) for name in names)
    columns = {
        "number": np.repeat(np.arange(1, len(bins) + 1), [len(low) for low, _ in bins]),
        "low": np.concatenate([low for low, _ in bins]),
        "high": np.concatenate([Histogram.upper(low) for low, _ in bins]),
        "candidates": np.concatenate([count for _, count in bins]),
    }
    picked = f'[{listed}][number] AS name, low AS "from", high AS "to", candidates AS count'
    return _written(f"SELECT {picked} FROM columns", columns)


def _written(query: str, columns: Mapping[str, NDArray[Any]]) -> bytes:
    """The result of a query over `columns` as the content of a Parquet file."""
    module = duckdb()
    with tempfile.TemporaryDirectory(prefix="tradespace-") as folder, module.connect() as connection:
        path = Path(folder) / "table.parquet"
        connection.execute("SET threads = 1")
        try:
            connection.register("columns", columns)
            connection.execute(f"COPY ({query}) TO {_text(str(path))} (FORMAT parquet, COMPRESSION zstd)")
        except module.Error as fault:
            raise OSError(None, str(fault).splitlines()[0], folder) from None
        return path.read_bytes()


def _column(name: str, labels: Mapping[str, tuple[str, ...]], counted: set[str]) -> str:
    """The SQL of one column: positions become words, whole numbers whole, what is no number null."""
    quoted = f'"{_quoted(name)}"'
    if name in labels:
        listed = ", ".join(_text(label) for label in labels[name])
        return f"[{listed}][{quoted} + 1] AS {quoted}"
    if name in FLAGS:
        return quoted
    value = f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END"
    return f"CAST({value} AS BIGINT) AS {quoted}" if name in counted else f"{value} AS {quoted}"


def _quoted(name: str) -> str:
    return name.replace('"', '""')


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
