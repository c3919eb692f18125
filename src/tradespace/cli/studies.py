"""Published studies evaluated again: reproduce."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tradespace.cli.app import Shown, app
from tradespace.views.terminal import emit


@app.command
def reproduce(
    name: Annotated[str, Parameter(help="A study; none lists them.")] = "",
    *,
    list_: Annotated[bool, Parameter(name="--list", negative="", help="List the studies.")] = False,
    format: Shown = "table",
) -> int:
    """Evaluate a published study's claims again: our value, the interval to reach, the verdict, what it rests on."""
    from tradespace import studies
    from tradespace.studies import terminal

    if list_ or not name:
        found = studies.names()
        emit(format, found, lambda: found, [terminal.listing(found)])
        return 0
    rows = studies.reproduce(name)
    emit(format, rows, lambda: terminal.flat(rows), [terminal.claims(rows)])
    return 0
