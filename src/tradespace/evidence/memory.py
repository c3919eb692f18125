"""Measured memory beside predictions: bytes allocated, reserved, or shown by the driver, and out-of-memory verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tradespace.evidence.published import (
    Row,
    SkipError,
    cluster_of,
    errors_summary,
    model_of,
    number,
    rows_of,
    strategy_of,
)
from tradespace.inputs.files import CATALOG, read
from tradespace.predict import predict
from tradespace.step import Step
from tradespace.views.documents import memory_document, scalar
from tradespace.views.figures import short_text

PACKAGED = CATALOG / "published" / "memory.csv"
KINDS = ("allocated", "reserved", "driver")
HOST = {"optimizer_offload": "optimizer on the host", "activation_offload_layers": "activations on the host"}


def memory_report(data: Path | None = None) -> dict[str, Any]:
    """Rows with a measured number of bytes or an out-of-memory outcome (default: the packaged ones), worst first, with
    errors per source and the verdicts."""
    chosen = [row for row in rows_of(data or PACKAGED) if _measured(row) or row.get("outcome") == "oom"]
    rows = [_compared(row) for row in chosen]
    rows.sort(key=lambda row: -abs(row["error"] or 0.0))
    predicted = [row for row in rows if row["error"] is not None]
    sources = {name: _summary([r for r in predicted if r["source"] == name]) for name in _names(predicted)}
    notes = read(CATALOG / "published" / "cases.toml")
    return {
        "schema": 1,
        "rows": rows,
        "summary": {"all": _summary(predicted), "source": sources},
        "verdicts": verdicts(rows),
        "why": notes["why"],
        "differs": notes["differs"],
    }


def _measured(row: Row) -> bool:
    return bool((row.get("measured_memory_bytes") or "").strip())


def _names(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted({str(row["source"]) for row in rows})


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    return errors_summary([float(row["error"]) for row in rows])


def verdicts(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """How many runs that went well and that ran out of memory got each verdict.

    >>> verdicts([{"outcome": "ok", "verdict": "fits"}, {"outcome": "oom", "verdict": "at risk"}])["oom"]["at risk"]
    1
    """
    words = ("fits", "at risk", "does not fit")
    return {
        outcome: {
            word: sum(row["outcome"] == outcome and row["verdict"] == word for row in rows if row["verdict"])
            for word in words
        }
        for outcome in ("ok", "oom")
    }


def _compared(row: Row) -> dict[str, Any]:
    """One run: measured and predicted bytes of the same kind, and the verdict."""
    name = str(next(iter(row.values()))).rsplit(":", 1)[-1]
    kind = (row.get("memory_kind") or "").strip()
    found: dict[str, Any] = {
        "id": name,
        "source": name.rsplit("-", 1)[0],
        "model": row.get("model", ""),
        "framework": row["framework"],
        "device": row["device"],
        "kind": kind if kind in KINDS else "driver",
        "measured_bytes": float(row["measured_memory_bytes"]) if _measured(row) else None,
        "outcome": row.get("outcome") or "ok",
    }
    nothing = dict.fromkeys(("predicted_bytes", "error", "verdict", "strategy", "share"))
    try:
        step = _predicted(row)
    except SkipError as reason:
        return {**found, **nothing, "skipped": str(reason)}
    predicted = bytes_of(step, found["kind"])
    measured = found["measured_bytes"]
    return {
        **found,
        "predicted_bytes": predicted,
        "error": None if measured is None else predicted / measured - 1.0,
        "verdict": _verdict(step),
        "strategy": short_text(step),
        "share": predicted / scalar(step.capacity),
        "skipped": "",
    }


def _predicted(row: Row) -> Step:
    """The prediction of a row; what it keeps on the host is not modelled."""
    for column, words in HOST.items():
        if number(row, column, 0.0):
            raise SkipError(f"{words}: the row does not say how much")
    return predict(model_of(row), cluster_of(row), strategy_of(row))


def _verdict(step: Step) -> str:
    """The verdict on memory alone."""
    if not bool(scalar(step.fits)):
        return "does not fit"
    return "fits" if bool(scalar(step.fits_surely)) else "at risk"


def bytes_of(step: Step, kind: str) -> float:
    """Predicted bytes on the worst stage as a tool shows them: allocated, reserved, or by the driver."""
    if kind == "allocated":
        return memory_document(step)["total"]
    return scalar(step.reserved if kind == "reserved" else step.driver)
