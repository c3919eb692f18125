"""Predictions beside measurements: validate."""

from __future__ import annotations

from pathlib import Path

from tradespace.cli.app import Shown, app
from tradespace.views.terminal import emit


@app.command
def validate(*, data: Path | None = None, format: Shown = "table") -> int:
    """Predict published measured runs and print predicted beside measured; worst first."""
    from tradespace.evidence import report

    document = report.validation(data)
    emit(format, document, lambda: report.rows(document), [report.table(document)])
    return 0
