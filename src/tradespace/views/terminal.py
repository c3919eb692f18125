"""stdout carries the result only; progress, notes and errors go to stderr."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

WIDTH = 80
QUIET_SECONDS = 1.0
T = TypeVar("T")


def note(text: str) -> None:
    """A line for the person, on stderr."""
    print(text, file=sys.stderr)


def noting(work: Callable[[], T]) -> T:
    """Run and print the warnings on stderr, each once."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = work()
    for text in dict.fromkeys(str(warning.message) for warning in found):
        note(f"warning: {text}")
    return result


def emit(form: str, document: Any, rows: Callable[[], list[dict[str, Any]]], parts: Sequence[Any]) -> None:
    """Print a result as a table (the parts), JSON (the document), CSV or Markdown (the rows)."""
    if form == "json" or (form == "table" and not parts):
        print(json.dumps(document, indent=2, allow_nan=False))
    elif form in ("csv", "markdown"):
        from tradespace.views.tables import as_csv, as_markdown

        print((as_csv if form == "csv" else as_markdown)(rows()), end="")
    else:
        from rich.console import Console

        console = Console(width=WIDTH if not sys.stdout.isatty() else None, highlight=False, soft_wrap=False)
        for part in parts:
            console.print(part)


@contextmanager
def progress_bar(label: str, what: str = "candidates") -> Iterator[Callable[[int, int], None]]:
    """A progress line on stderr for work that takes more than a second; nothing when stderr is no terminal."""
    started = time.monotonic()
    shown = False

    def update(done: int, total: int) -> None:
        nonlocal shown
        elapsed = time.monotonic() - started
        if elapsed < QUIET_SECONDS or not sys.stderr.isatty():
            return
        left = elapsed * (total - done) / max(done, 1)
        sys.stderr.write(f"\r{label}: {done / total:4.0%} of {total:,} {what}, {left:.0f} s left ")
        sys.stderr.flush()
        shown = True

    yield update
    if shown:
        sys.stderr.write("\r" + " " * WIDTH + "\r")
