"""One report: a single HTML file that opens offline, with the question, the answer, figures, tables and sources.

Every verb that writes a report fills a `Report`; the page itself is made here and nowhere else.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from tradespace.errors import InputError
from tradespace.views.catalog import entry

Rows = Sequence[Mapping[str, Any]]

NOT_MODELLED = (
    "unlike devices in one job, stragglers and slow links",
    "congestion by other jobs on a shared fabric",
    "unbalanced routing of experts, unless imbalance is set",
    "sequences of different lengths packed together",
    "power caps and clocks that fall with temperature",
    "input pipelines, evaluation pauses and logging",
)
STYLE = """:root{--back:#fff;--text:#222;--quiet:#666;--line:#ddd;--soft:#f4f5f7}
@media(prefers-color-scheme:dark){:root{--back:#16181d;--text:#eee;--quiet:#aaa;--line:#33363d;--soft:#23262d}}
body{font:16px/1.5 system-ui,sans-serif;max-width:1060px;margin:0 auto;padding:1rem;color:var(--text);
background:var(--back)}h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.15rem;margin-top:2rem}
.answer{font-size:1.15rem;border-left:4px solid #4477AA;padding-left:.8rem}
.cards{display:flex;flex-wrap:wrap;gap:.6rem;padding:0;list-style:none}
.cards li{background:var(--soft);border-radius:6px;padding:.5rem .9rem}.cards b{display:block;font-size:1.2rem}
.cards span,figcaption,.quiet{color:var(--quiet);font-size:.9rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;width:100%}
td,th{text-align:left;padding:.3rem .6rem;vertical-align:top;border-bottom:1px solid var(--line)}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
figure{margin:1.5rem 0}figure img{max-width:100%;min-width:min(100%,560px);height:auto}
@media(max-width:600px){figure img{max-width:none;min-width:620px}}
code,pre{background:var(--soft);border-radius:4px;padding:.1rem .3rem;overflow-wrap:anywhere;white-space:pre-wrap}
li{overflow-wrap:anywhere}summary{cursor:pointer;color:var(--quiet)}"""


@dataclass(frozen=True)
class Picture:
    """A figure with its table: `draw(dark)` gives the Altair chart, in light or dark colours."""

    caption: str
    draw: Callable[[bool], Any]
    rows: Rows = ()


@dataclass(frozen=True)
class Report:
    """What a report says.

    `question` is the title, `answer` one sentence, `numbers` the figures that matter as (name, value with unit),
    `tables` rows by heading, `command` what makes the same report again.
    """

    question: str
    answer: str
    command: str
    setting: str = ""
    numbers: Sequence[tuple[str, str]] = ()
    pictures: Sequence[Picture] = ()
    tables: Mapping[str, Rows] = field(default_factory=dict)
    assumptions: Sequence[str] = ()
    sources: Sequence[str] = ()
    not_modelled: Sequence[str] = NOT_MODELLED


def page(report: Report) -> str:
    """The report as one self-contained HTML page: no script, no font and no picture comes from elsewhere.

    >>> text = page(Report("Does it fit?", "Yes <surely>.", "tradespace predict ..."))
    >>> "Yes &lt;surely&gt;." in text, "http" in text
    (True, False)
    """
    parts = [
        f"<h1>{escape(report.question)}</h1>",
        f'<p class="quiet">{escape(report.setting)}</p>' if report.setting else "",
        f'<p class="answer">{escape(report.answer)}</p>',
        _cards(report.numbers),
        *(_figure(picture) for picture in report.pictures),
        *(f"<h2>{escape(name)}</h2>{table(rows)}" for name, rows in report.tables.items()),
        _list("What is assumed", report.assumptions),
        _list("Sources", report.sources),
        _list("What is not modelled", report.not_modelled),
        f"<h2>Make it again</h2><pre><code>{escape(report.command)}</code></pre>",
    ]
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(report.question)}</title><style>{STYLE}</style></head>"
    )
    return f"{head}<body><main>{''.join(parts)}</main></body></html>\n"


def write(report: Report, path: Path | str) -> None:
    """Write the page; an InputError unless the name ends in .html."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{target}: a report is one HTML file, so its name ends in .html")
    target.write_text(page(report), encoding="utf-8")


def is_report(path: Path | None) -> bool:
    """Whether a name given as --out asks for a report."""
    return path is not None and path.suffix.lower() in (".html", ".htm")


def table(rows: Rows) -> str:
    """Rows as an HTML table, numbers in four digits; columns are those of all rows, in order of appearance.

    >>> table([{"part": "forward", "seconds": 1.23456}])[-71:]
    '<tr><td>forward</td><td class="n">1.235</td></tr></tbody></table></div>'
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    lines = ["<tr>" + "".join(_cell(row.get(name)) for name in names) + "</tr>" for row in rows]
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None or not isinstance(value, (int, float)):
        return f"<td>{escape('' if value is None else str(value))}</td>"
    return f'<td class="n">{_number(value)}</td>'


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _cards(numbers: Sequence[tuple[str, str]]) -> str:
    cards = "".join(f"<li><b>{escape(value)}</b><span>{escape(name)}</span></li>" for name, value in numbers)
    return f'<ul class="cards">{cards}</ul>' if numbers else ""


def _list(head: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in dict.fromkeys(lines) if line)
    return f"<h2>{escape(head)}</h2><ul>{items}</ul>" if items else ""


def _figure(picture: Picture) -> str:
    """The chart in light and dark as pictures inside the page, and its rows folded below."""
    light, dark = _svg(picture.draw(False)), _svg(picture.draw(True))
    other = f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">' if dark != light else ""
    data = f"<details><summary>Numbers</summary>{table(picture.rows)}</details>" if picture.rows else ""
    shown = f'<div class="wide"><picture>{other}<img alt="{escape(picture.caption)}" src="{light}"></picture></div>'
    return f"<figure>{shown}<figcaption>{escape(picture.caption)}</figcaption>{data}</figure>"


def _svg(chart: Any) -> str:
    """A chart as an address that holds the whole picture."""
    from io import StringIO

    out = StringIO()
    chart.save(out, format="svg")
    return "data:image/svg+xml;base64," + base64.b64encode(out.getvalue().encode()).decode()


def assumed(*names: str) -> list[str]:
    """What the catalog entries `names` (kind/key) rest on that is only assumed, a line per number or group.

    Clusters bring the curves of their network.
    """
    lines = []
    for name in names:
        try:
            found = entry(name)
        except InputError:
            continue  # the user's own file, not the catalog
        lines += [f"{name}{path}: {text}" for path, text in _assumed(found)]
        lines += assumed(*(f"curves/{dim['curves']}" for dim in found.get("network", ()) if "curves" in dim))
    return lines


def _assumed(node: Any, path: str = "") -> list[tuple[str, str]]:
    """Paths below which the confidence is "assumed", with the source text there."""
    if isinstance(node, list):
        named = [(str(item.get("name", i)), item) for i, item in enumerate(node) if isinstance(item, dict)]
        return [pair for key, item in named for pair in _assumed(item, f"{path}.{key}")]
    if not isinstance(node, dict):
        return []
    own = [(path, str(node.get("source", "assumed")))] if node.get("confidence") == "assumed" else []
    return own + [pair for key, item in node.items() for pair in _assumed(item, f"{path}.{key}")]
