"""The validation report: predicted beside measured, worst first, summed up by device, framework and source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from tradespace.evidence.published import PACKAGED, Compared, compare, rows_of, summary, usable
from tradespace.views.documents import memory_document, step_document
from tradespace.views.report import Report


def validation(data: Path | None = None) -> dict[str, Any]:
    """Rows and summary of a file of measured runs (default: the packaged Megatron-LM runs)."""
    compared = [compare(row) for row in rows_of(data or PACKAGED) if usable(row)]
    groups: dict[str, Callable[[Compared], str]] = {
        "device": lambda row: row.device,
        "framework": lambda row: row.framework,
        "source": lambda row: row.source,
    }
    found: dict[str, Any] = {"all": summary(compared)}
    for name, key in groups.items():
        labels = sorted({key(row) for row in compared if row.step is not None})
        found[name] = {label: summary([row for row in compared if key(row) == label]) for label in labels}
    by_source = list(found["source"].values())
    if by_source:
        found["mean_over_sources"] = {
            name: mean(group[name] for group in by_source) for name in ("median_abs_error", "mean_abs_error")
        }
    ordered = sorted(compared, key=lambda row: -abs(row.error) if row.step is not None else 1.0)
    return {"schema": 1, "rows": [_row(row) for row in ordered], "summary": found}


def _row(row: Compared) -> dict[str, Any]:
    common = {"id": row.id, "source": row.source, "framework": row.framework, "device": row.device}
    measured = {"measured_step_s": row.measured, "measured_memory_bytes": row.measured_memory}
    if row.step is None:
        nothing = dict.fromkeys(("predicted_step_s", "error", "low", "high", "predicted_memory_bytes", "verdict"))
        return {**common, **measured, **nothing, "skipped": row.skipped}
    document = step_document(row.step)
    return {
        **common,
        **measured,
        "predicted_step_s": document["step_time_s"],
        "error": row.error,
        "low": document["low"],
        "high": document["high"],
        "predicted_memory_bytes": memory_document(row.step)["total"],
        "verdict": document["verdict"],
        "skipped": "",
    }


def rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the report."""
    return list(document["rows"])


def table(document: dict[str, Any]) -> Any:
    """Tables for a terminal: a row per run (the first 60), then the summary."""
    from rich.console import Group
    from rich.table import Table

    runs = Table(box=None, pad_edge=False, title="predicted beside measured step time", title_justify="left")
    for name in ("run", "device", "measured s", "predicted s", "error %", "in 80 % band"):
        runs.add_column(name, justify="left" if name in ("run", "device") else "right")
    predicted = [row for row in document["rows"] if not row["skipped"]]
    for row in predicted[:60]:
        inside = "yes" if row["low"] <= row["measured_step_s"] <= row["high"] else "no"
        numbers = (f"{row['measured_step_s']:.4g}", f"{row['predicted_step_s']:.4g}", f"{100 * row['error']:+.1f}")
        runs.add_row(row["id"], row["device"], *numbers, inside)
    sums = Table(box=None, pad_edge=False, title="|error| of the step time", title_justify="left")
    for name in ("group", "runs", "median %", "mean %", "bias %"):
        sums.add_column(name, justify="left" if name == "group" else "right")
    groups = [("all", document["summary"]["all"]), *document["summary"]["source"].items()]
    for name, group in groups:
        if group:
            cells = (100 * group["median_abs_error"], 100 * group["mean_abs_error"], 100 * group["bias"])
            sums.add_row(name, str(group["n"]), f"{cells[0]:.1f}", f"{cells[1]:.1f}", f"{cells[2]:+.1f}")
    left = len(document["rows"]) - len(predicted)
    reasons = sorted({row["skipped"] for row in document["rows"] if row["skipped"]})
    notes = [f"{left} rows skipped: " + "; ".join(reasons)] if left else []
    if len(predicted) > 60:
        notes.append(f"{len(predicted) - 60} rows with smaller errors are left out here; --format json has all.")
    return Group(runs, "", sums, *notes)


def validation_report(document: dict[str, Any], command: str) -> Report:
    """The report as one page: errors by group, then every run, worst first."""
    found = document["summary"]
    total, parts = found["all"], {name: found[name] for name in ("source", "device", "framework")}
    tables = {
        f"|error| by {name}": [{name: label, **_percent(group)} for label, group in groups.items() if group]
        for name, groups in parts.items()
    }
    left = [row for row in document["rows"] if not row["skipped"]]
    skipped = [{"run": row["id"], "why": row["skipped"]} for row in document["rows"] if row["skipped"]]
    runs = [{**row, "error": f"{row['error']:+.1%}"} for row in left]
    return Report(
        question="How far are predicted step times from measured ones?",
        answer=f"Over {total['n']} runs the median error is {total['median_abs_error']:.1%}, the mean "
        f"{total['mean_abs_error']:.1%}, the bias {total['bias']:+.1%}."
        if total
        else "No run could be predicted; the reasons are below.",
        command=command,
        numbers=[(name, value) for name, value in _percent(total).items()] if total else [],
        tables={**tables, "Runs, worst first": runs, **({"Runs without a prediction": skipped} if skipped else {})},
        assumptions=["no constant was fitted to a single run; low and high bound the 80 % band of each prediction"],
        sources=list(parts["source"]),
    )


def _percent(group: dict[str, Any]) -> dict[str, str]:
    """The summary of a group in words."""
    return {
        "runs": str(group["n"]),
        "median": f"{group['median_abs_error']:.1%}",
        "mean": f"{group['mean_abs_error']:.1%}",
        "bias": f"{group['bias']:+.1%}",
    }
