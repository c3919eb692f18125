"""The report on a finished sweep: its best candidates, a map of the best strategies, the Pareto front."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tradespace.errors import InputError
from tradespace.explore.query import query
from tradespace.explore.store import read_manifest
from tradespace.views.catalog import flat
from tradespace.views.front import front_figure
from tradespace.views.report import Picture, Report, assumed
from tradespace.views.sweeps import heat_map, sweep_document

SHOWN = 20
STRATEGY = {"tensor": "TP", "context": "CP", "expert": "EP", "pipeline": "PP", "virtual_stages": "VP", "data": "DP"}


def sweep_report(directory: Path, command: str) -> Report:
    """What a sweep found; an InputError where none has finished."""
    manifest = read_manifest(directory)
    if manifest is None or not manifest["finished"]:
        raise InputError(
            f"{directory}: no finished sweep is there; make one with tradespace sweep STUDY.toml --out DIR"
        )
    study, counts = manifest["study"], sweep_document(directory, manifest)
    kept = study.get("keep", {})
    by = kept.get("by", "step_time_s")
    best = query(directory, f'SELECT * FROM results WHERE fits ORDER BY "{by}" LIMIT {SHOWN}')
    name, cluster = study.get("model", "the model"), study.get("cluster", "the clusters")
    cells = list(kept.get("best_per", ()))
    found = f"{_words(best[0])}: {_amount(best[0][by])} ({by})" if best else "nothing fits"
    pictures = [_map(directory, cells, by)] if len(cells) > 1 else []
    pictures += [_front(directory, kept["pareto"])] if len(kept.get("pareto", ())) > 1 else []
    return Report(
        question=f"Which of {counts['candidates']:,} candidates is best for {_text(name)} on {_text(cluster)}?",
        answer=f"Best: {found}. {counts['legal']:,} candidates are legal, {counts['fitting']:,} fit.",
        command=f"tradespace sweep STUDY.toml --out {directory}\n{command}",
        numbers=[(key, f"{counts[key]:,}") for key in ("candidates", "legal", "fitting")],
        pictures=pictures,
        tables={
            f"The best {len(best)} rows": best,
            "The study": [{"field": field, "value": value} for field, value in flat(study)],
            "Columns": [{"column": column, **about} for column, about in _columns(manifest).items()],
        },
        assumptions=assumed(f"clusters/{cluster}") if isinstance(cluster, str) else [],
        sources=[f"tradespace {manifest['program']['tradespace']}, inputs {manifest['inputs_sha256'][:16]}"],
    )


def _columns(manifest: Any) -> dict[str, dict[str, str]]:
    found = manifest["columns"]
    return dict(json.loads(found) if isinstance(found, str) else found)


def _map(directory: Path, cells: list[str], by: str) -> Picture:
    """The best value and strategy over the two axes of the cells with the most values."""
    counts = query(directory, "SELECT " + ", ".join(f'count(DISTINCT "{cell}")' for cell in cells) + " FROM results")
    sizes = dict(zip(cells, counts[0].values(), strict=True))
    across, down = sorted(cells, key=lambda cell: -sizes[cell])[:2]
    rows = query(directory, f'SELECT * FROM results WHERE fits ORDER BY "{by}"')
    seen: dict[tuple[Any, Any], dict[str, Any]] = {}
    for row in rows:
        key = (row[across], row[down])
        seen.setdefault(key, {across: row[across], down: row[down], by: row[by], "best": _words(row)})
    shown = list(seen.values())
    caption = f"Least {by} and its strategy over {across} and {down}"
    return Picture(caption, lambda dark: heat_map(shown, dark=dark), shown)


def _front(directory: Path, measures: list[str]) -> Picture:
    """The front over the first two measures."""
    rows = query(directory, "SELECT * FROM pareto")
    x, y = measures[1], measures[0]
    return Picture(f"Pareto front of {x} and {y}", lambda dark: front_figure(rows, x, y, dark=dark), rows[:200])


def _words(row: dict[str, Any]) -> str:
    """The strategy of a row, as on a slide."""
    shown = [f"{short}{row[name]:g}" for name, short in STRATEGY.items() if isinstance(row.get(name), (int, float))]
    return " ".join(word for word in shown if not word.endswith(tuple(f"{s}1" for s in STRATEGY.values()))) or "data"


def _amount(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "several"
