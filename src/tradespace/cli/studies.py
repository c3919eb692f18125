"""Published studies evaluated again: reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tradespace.cli.app import Shown, app, command, write_out
from tradespace.views.terminal import emit, note


@app.command
def reproduce(
    name: Annotated[str, Parameter(help="A study; none lists them.")] = "",
    *,
    list_: Annotated[bool, Parameter(name="--list", negative="", help="List the studies.")] = False,
    out: Annotated[
        Path | None, Parameter(help="Folder for figures, data, claims and report, or FILE.html for the report alone.")
    ] = None,
    format: Shown = "table",
) -> int:
    """Evaluate a published study's claims again: our value, the interval to reach, the verdict, what it rests on."""
    from tradespace import studies
    from tradespace.studies import terminal
    from tradespace.views.report import is_report

    if list_ or not name:
        found = studies.names()
        emit(format, found, lambda: found, [terminal.listing(found)])
        return 0
    page = out if is_report(out) else None
    rows = studies.reproduce(name, None if page else out)
    if page is not None:
        write_out(page, lambda: studies.report(name, rows, command()))
    elif out is not None:
        note(f"wrote {out / 'report.html'} and the figures beside it")
    emit(format, rows, lambda: terminal.flat(rows), [terminal.claims(rows), terminal.details(rows)])
    return 0
