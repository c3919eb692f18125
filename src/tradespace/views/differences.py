"""The report on where the network models differ, as lines for a terminal."""

from __future__ import annotations

import textwrap
from typing import Any

from tradespace.views.terminal import WIDTH

CLOSE = 0.1


def lines(document: dict[str, Any]) -> str:
    """Both times of the step, then a paragraph for every collective whose times differ by more than a tenth."""
    head = (
        f"Step: {document['step_time_s']:.4g} s predicted, {document['astra_step_time_s']:.4g} s as ASTRA-sim "
        "replays it (one exchange at a time on a rank, none of them hidden by a share)."
    )
    found = [textwrap.fill(head, WIDTH)]
    rows = document["collectives"]
    for row in rows:
        if abs(row["ratio"] - 1.0) > CLOSE:
            found += ["", _title(row)]
            found += [textwrap.fill(f"  - {why}", WIDTH, subsequent_indent="    ") for why in row["reasons"]]
    alike = sum(abs(row["ratio"] - 1.0) <= CLOSE for row in rows)
    if alike:
        found += ["", f"{alike} of {len(rows)} collectives and messages agree within {CLOSE:.0%}."]
    return "\n".join(found)


def _title(row: dict[str, Any]) -> str:
    what = f"{row['collective']}, {row['group']}, {row['ranks']} ranks, {row['bytes'] / 1e6:,.4g} MB, {row['times']} x"
    predicted, astra = (f"{row[key] * 1e3:.3g} ms" for key in ("physical_s", "astra_s"))
    return textwrap.fill(f"{what}: predicted {predicted}, ASTRA-sim {astra} (ratio {row['ratio']:.2f})", WIDTH)


def flat(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows for CSV and Markdown."""
    joined = {"reasons": "; ", "operators": " "}
    return [
        {key: joined[key].join(value) if key in joined else value for key, value in row.items()}
        for row in document["collectives"]
    ]
