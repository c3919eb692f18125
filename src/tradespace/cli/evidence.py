"""Predictions beside measurements: validate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tradespace.cli.app import Shown, app, command, save, write_out
from tradespace.views.terminal import emit, note

Folder = Annotated[
    Path | None, Parameter(help="Folder for the page memory.md and its picture, or FILE.html for a report.")
]


@app.command
def validate(*, data: Path | None = None, out: Folder = None, format: Shown = "table") -> int:
    """Predict published measured runs and print predicted beside measured; worst first."""
    from tradespace.evidence import report
    from tradespace.views.report import is_report

    document = report.validation(data)
    if is_report(out):
        write_out(out, lambda: report.validation_report(document, command()))
    elif out is not None:
        _memory_page(data, out)
    emit(format, document, lambda: report.rows(document), [report.table(document)])
    return 0


def _memory_page(data: Path | None, out: Path) -> None:
    """Write the page on memory and its picture."""
    from tradespace.evidence.memory import memory_report
    from tradespace.views.memory_page import page, scatter

    document = memory_report(data)
    (out / "images").mkdir(parents=True, exist_ok=True)
    (out / "memory.md").write_text(page(document), encoding="utf-8")
    save(scatter(document["rows"]), out / "images" / "memory.png")
    note(f"wrote {out / 'memory.md'}")
