"""Bus bandwidths as documents and tables: the nccl-tests table of a cluster, and all published rows by system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tradespace.evidence.collectives import (
    Compared,
    Published,
    beside,
    compare,
    groups,
    median_error,
    published,
    sources,
)
from tradespace.inputs.cluster import Cluster
from tradespace.network.bus_bandwidth import host_time, nccl_tests

GB = 1e9


def document(cluster: Cluster, collective: str, one_thread: bool) -> list[dict[str, Any]]:
    """One row per size: bytes, time_s, algbw and busbw in GB/s of 1e9 as nccl-tests print them, algorithm, and the
    published rows of the same devices and links."""
    host = float(host_time(cluster)) if one_thread else 0.0
    measured = beside(cluster, collective)
    return [
        {
            "bytes": int(row.bytes),
            "time_s": row.time_s,
            "algbw": row.algbw / GB,
            "busbw": row.busbw / GB,
            "algorithm": row.algorithm,
            "measured": [_measured(found) for found in measured.get(row.bytes, ())],
        }
        for row in nccl_tests(collective, cluster, host)
    ]


def _measured(row: Published) -> dict[str, Any]:
    return {"id": row.id, "source": row.source, "busbw": row.busbw / GB}


def flat(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the published bus bandwidths in one cell."""
    return [{**row, "measured": _cell(row["measured"])} for row in rows]


def _cell(measured: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{found['busbw']:.4g} {found['source']}" for found in measured)


def table(cluster: Cluster, collective: str, rows: Sequence[dict[str, Any]]) -> Any:
    """The nccl-tests table for a terminal."""
    from rich.console import Group
    from rich.table import Table

    title = f"{collective} among {cluster.devices:g} devices of {cluster.name}"
    keys = sorted({found["source"] for row in rows for found in row["measured"]})
    marks = {key: chr(ord("a") + i) for i, key in enumerate(keys)}
    shown = Table(box=None, pad_edge=False, title=title, title_justify="left")
    for name in ("size (B)", "time (us)", "algbw", "busbw (GB/s)", "algorithm", "measured"):
        shown.add_column(name, justify="left" if name in ("algorithm", "measured") else "right")
    for row in rows:
        numbers = (f"{1e6 * row['time_s']:.2f}", f"{row['algbw']:.2f}", f"{row['busbw']:.2f}")
        cell = "  ".join(f"{found['busbw']:.4g} {marks[found['source']]}" for found in row["measured"])
        shown.add_row(str(row["bytes"]), *numbers, row["algorithm"], cell)
    return Group(shown, "", *(f"{mark}: {sources()[key]['source']}" for key, mark in marks.items()))


def comparison(system: str | None = None) -> dict[str, Any]:
    """All published rows (of one system) beside predictions, by system, collective and source, worst median first."""
    rows = [compare(row) for row in published() if system in (None, row.system)]
    parts = {
        "all": rows,
        "fitted": [row for row in rows if row.row.fitted],
        "held_out": [row for row in rows if not row.row.fitted],
    }
    summary = {name: {"n": len(part), "median_abs_error": median_error(part)} for name, part in parts.items() if part}
    return {"schema": 1, "summary": summary, "groups": [_group(key, found) for key, found in groups(rows)]}


def _group(key: tuple[str, str, str], found: Sequence[Compared]) -> dict[str, Any]:
    worst = max(found, key=lambda row: abs(row.error))
    return {
        "system": key[0],
        "collective": key[1],
        "source": key[2],
        "fitted": found[0].row.fitted,
        "n": len(found),
        "median_abs_error": median_error(found),
        "worst_error": worst.error,
        "rows": [_row(row) for row in sorted(found, key=lambda row: -abs(row.error))],
    }


def _row(row: Compared) -> dict[str, Any]:
    return {
        "id": row.row.id,
        "devices": int(row.row.devices),
        "bytes": int(row.row.bytes),
        "algorithm": row.row.algorithm,
        "measured": row.row.busbw / GB,
        "predicted": row.busbw / GB,
        "error": row.error,
    }


def comparison_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per published row."""
    names = ("system", "collective", "source", "fitted")
    return [{**{name: group[name] for name in names}, **row} for group in found["groups"] for row in group["rows"]]


def comparison_table(found: dict[str, Any]) -> Any:
    """Groups and summary for a terminal."""
    from rich.console import Group
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, title="|error| of the bus bandwidth, worst first", title_justify="left")
    for name in ("system", "collective", "source", "rows", "median %", "worst %"):
        shown.add_column(name, justify="left" if name in ("system", "collective", "source") else "right")
    for group in found["groups"]:
        source = group["source"] + (" *" if group["fitted"] else "")
        errors = (f"{100 * group['median_abs_error']:.1f}", f"{100 * group['worst_error']:+.0f}")
        shown.add_row(group["system"], group["collective"], source, str(group["n"]), *errors)
    words = {"all": "all rows", "fitted": "* of sources that curves were fitted to", "held_out": "held out"}
    sums = [
        f"{words[name]}: {part['n']}, median {100 * part['median_abs_error']:.1f} %"
        for name, part in found["summary"].items()
    ]
    return Group(shown, "", *sums)
