"""The table of studies: a study is a catalog entry, functions for its claims, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.studies import comet
from tradespace.studies.claims import Value, evaluate
from tradespace.studies.comet_figures import FIGURES
from tradespace.studies.presets import preset
from tradespace.studies.report import Rows, study_report, write
from tradespace.views.report import Report


@dataclass(frozen=True)
class Study:
    """A named study: the value of each claim, and its figures, each a function to a chart and the rows behind it."""

    values: Mapping[int, Value]
    figures: Mapping[str, Callable[[], tuple[Any, Rows]]]


STUDIES: Mapping[str, Study] = {"comet": Study(comet.VALUES, FIGURES)}


def names() -> list[dict[str, str]]:
    """The studies: name, title, source.

    >>> [row["name"] for row in names()]
    ['comet']
    """
    return [{key: str(preset(name)[key]) for key in ("name", "title", "source")} for name in STUDIES]


def reproduce(name: str, out: Path | None = None) -> list[dict[str, Any]]:
    """Evaluate a study's claims: rows {id, claim, expected, value, low, high, verdict, assumptions, range}.

    With a folder `out`, write figures (PNG, SVG, data as CSV), the claims and one HTML report into it. Raises
    `InputError` for an unknown name.
    """
    if name not in STUDIES:
        raise InputError(f"no study '{name}'{nearest(name, STUDIES)}")
    rows = evaluate(name, STUDIES[name].values)
    if out is not None:
        write(name, rows, STUDIES[name].figures, out)
    return rows


def report(name: str, rows: list[dict[str, Any]], command: str) -> Report:
    """The report on the evaluated claims of a study, with its figures drawn anew."""
    pictures = [(key, *figure()) for key, figure in STUDIES[name].figures.items()]
    return study_report(name, rows, pictures, command)
