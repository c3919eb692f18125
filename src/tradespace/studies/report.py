"""A study's folder: figures as PNG, SVG and CSV, claims as JSON and CSV, and one HTML page that opens offline."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tradespace.studies.presets import preset
from tradespace.studies.terminal import flat, interval, number, ranges

Rows = list[dict[str, Any]]
STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%;font-size:14px}td,th{text-align:left;padding:.4rem .6rem;vertical-align:top;
border-bottom:1px solid #ddd}svg{max-width:100%;height:auto}code{background:#f2f2f2;padding:.1rem .3rem}
@media(prefers-color-scheme:dark){body{background:#16181d;color:#eee}td,th{border-color:#333}code{background:#26282d}
figure{background:#fff}}figure{margin:2rem 0}"""


def write(name: str, claims: Rows, figures: Mapping[str, Callable[[], tuple[Any, Rows]]], out: Path) -> list[Path]:
    """Write everything of a study into the folder `out`, and say which files."""
    from tradespace.views.figures import save

    out.mkdir(parents=True, exist_ok=True)
    written, pictures = [], []
    for key, figure in figures.items():
        chart, rows = figure()
        for suffix in (".png", ".svg"):
            save(chart, out / f"{key}{suffix}")
        _csv(out / f"{key}.csv", rows)
        pictures.append((key, (out / f"{key}.svg").read_text()))
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


def page(name: str, claims: Rows, pictures: Sequence[tuple[str, str]]) -> str:
    """One self-contained HTML page: answer, claims, figures, assumptions, sources, the command that makes it."""
    study = preset(name)
    met = sum(row["verdict"] != "not reproducible" for row in claims)
    answer = f"{met} of {len(claims)} claims hold within the intervals stated here; what each rests on is in the table."
    parts = [
        f"<h1>{escape(study['title'])}</h1><p>{escape(study['source'])}</p><p><strong>{answer}</strong></p>",
        "<h2>Claims</h2>" + _claims(claims),
        "<h2>Figures</h2>",
        *(
            f"<figure>{svg}<figcaption>Data: <code>{escape(key)}.csv</code></figcaption></figure>"
            for key, svg in pictures
        ),
        "<h2>What is assumed</h2>" + _assumptions(study),
        "<h2>Sources</h2>" + _sources(study),
        f"<h2>Make it again</h2><p><code>tradespace reproduce {escape(name)} --out DIR</code></p>",
    ]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(study["title"])}</title>'
    return f"{head}<style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"


def _claims(claims: Rows) -> str:
    heads = ("", "claim", "paper", "here", "interval", "verdict", "rests on", "moves over what is assumed")
    lines = ["<table><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"]
    for row in claims:
        cells = [str(row["id"]), row["claim"], number(row["expected"]), number(row["value"]), interval(row)]
        cells += [row["verdict"], "; ".join(row["assumptions"]), ranges(row)]
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return "".join([*lines, "</table>"])


def _assumptions(study: Mapping[str, Any]) -> str:
    """Every assumption with the values that it is varied over."""
    lines = [
        f"<tr><td>{escape(one['key'])}</td><td>{escape(one['label'])}</td>"
        f"<td>{escape(', '.join(str(value) for value in one['range']))}</td></tr>"
        for one in study["assumptions"]
    ]
    return f"<table><tr><th>name</th><th>assumed</th><th>also tried</th></tr>{''.join(lines)}</table>"


def _sources(study: Mapping[str, Any]) -> str:
    lines = [
        f"<li>{escape(one['label'])}: {escape(one['device']['source'])} ({escape(one['device']['confidence'])})</li>"
        for one in study["clusters"].values()
    ]
    return f"<ul>{''.join(lines)}</ul>"
