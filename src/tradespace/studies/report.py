"""A study's folder: figures as PNG, SVG and CSV, claims as JSON and CSV, and one HTML page that opens offline."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tradespace.studies.presets import preset
from tradespace.studies.terminal import flat, interval, number, ranges
from tradespace.views import report

Rows = list[dict[str, Any]]


def write(name: str, claims: Rows, figures: Mapping[str, Callable[[], tuple[Any, Rows]]], out: Path) -> list[Path]:
    """Write everything of a study into the folder `out`, and say which files."""
    from tradespace.views.figures import save

    out.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    pictures: list[tuple[str, Any, Rows]] = []
    for key, figure in figures.items():
        chart, rows = figure()
        for suffix in (".png", ".svg"):
            save(chart, out / f"{key}{suffix}")
        _csv(out / f"{key}.csv", rows)
        pictures.append((key, chart, rows))
        written += [out / f"{key}{suffix}" for suffix in (".png", ".svg", ".csv")]
    (out / "claims.json").write_text(json.dumps(claims, indent=1) + "\n")
    _csv(out / "claims.csv", flat(claims))
    (out / "report.html").write_text(page(name, claims, pictures))
    return [*written, out / "claims.json", out / "claims.csv", out / "report.html"]


def _csv(path: Path, rows: Rows) -> None:
    """Rows with the union of their columns, in order of appearance."""
    columns = dict.fromkeys(column for row in rows for column in row)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        writer.writerows(rows)


def page(name: str, claims: Rows, pictures: Sequence[tuple[str, Any, Rows]]) -> str:
    """One self-contained HTML page: answer, claims, figures, assumptions, sources, the command that makes it."""
    return report.page(study_report(name, claims, pictures, f"tradespace reproduce {name} --out DIR"))


def study_report(name: str, claims: Rows, pictures: Sequence[tuple[str, Any, Rows]], command: str) -> report.Report:
    """The report on a study: its claims with verdicts, its figures, what is assumed and tried instead."""
    study = preset(name)
    met = sum(row["verdict"] != "not reproducible" for row in claims)
    return report.Report(
        question=f"Do the claims hold? {study['title']}",
        answer=f"{met} of {len(claims)} claims hold within the intervals stated here; the table says why.",
        command=command,
        setting=study["source"],
        pictures=[report.Picture(f"Data: {key}.csv", partial(_drawn, chart), rows) for key, chart, rows in pictures],
        tables={"Claims": [_claim(row) for row in claims], "What is assumed": _assumptions(study)},
        sources=[
            f"{one['label']}: {one['device']['source']} ({one['device']['confidence']})"
            for one in study["clusters"].values()
        ],
    )


def _drawn(chart: Any, _dark: bool) -> Any:
    """A chart that is already drawn, in its one look."""
    return chart


def _claim(row: dict[str, Any]) -> dict[str, str]:
    """A claim with what the paper says, what comes out here, and what it rests on."""
    return {
        "": str(row["id"]),
        "claim": row["claim"],
        "paper": number(row["expected"]),
        "here": number(row["value"]),
        "interval": interval(row),
        "verdict": row["verdict"],
        "rests on": "; ".join(row["assumptions"]),
        "moves over what is assumed": ranges(row),
    }


def _assumptions(study: Mapping[str, Any]) -> Rows:
    """Every assumption with the values that it is varied over."""
    return [
        {"name": one["key"], "assumed": one["label"], "also tried": ", ".join(str(value) for value in one["range"])}
        for one in study["assumptions"]
    ]
