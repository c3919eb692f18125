"""The joint design space: sweep, query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tradespace.cli.app import INTERRUPTED, Out, Shown, app, save
from tradespace.views.terminal import emit, note, progress_bar


@app.command
def sweep(
    study: Path,
    *,
    out: Annotated[Path, Parameter(help="Directory for the results (new or empty, or with --resume its own).")],
    resume: Annotated[bool, Parameter(negative="", help="Go on with an unfinished sweep of the same study.")] = False,
    workers: Annotated[int | None, Parameter(help="Local worker processes (default: this one).")] = None,
    scheduler: Annotated[str | None, Parameter(help="A Dask scheduler, such as tcp://HOST:8786.")] = None,
    format: Shown = "table",
) -> int:
    """Predict every candidate of a study and write what it keeps as Parquet into a directory."""
    from tradespace.explore.stored import run_study
    from tradespace.explore.studies import study as read
    from tradespace.views import sweeps

    loaded = read(study)
    note(f"{loaded.space.size:,} candidates; the result is {sweeps.what_is_kept(loaded)}")
    try:
        with progress_bar("sweeping") as progress:
            manifest = run_study(loaded, out, resume=resume, workers=workers, scheduler=scheduler, progress=progress)
    except KeyboardInterrupt:
        note("interrupted; what is finished is kept: continue with --resume")
        return INTERRUPTED
    document = sweeps.sweep_document(out, manifest)
    emit(format, document, lambda: [document], [sweeps.sweep_table(document)])
    return 0


@app.command
def query(
    directory: Path,
    sql: Annotated[str, Parameter(help="Such as: SELECT tensor, min(step_time_s) FROM results GROUP BY ALL.")],
    *,
    out: Out = None,
    format: Shown = "table",
) -> int:
    """Run one SELECT over the results of a sweep (tables results, top, pareto, histograms).

    With --out the rows are drawn as a heat map: the first two columns are its sides, the third its colour, the fourth,
    if there is one, the text in each cell.
    """
    from tradespace.explore.query import query as run
    from tradespace.views import sweeps

    rows = run(directory, sql)
    if out is not None:
        save(sweeps.heat_map(rows), out)
        note(f"wrote {out}")
    parts: list[Any] = [sweeps.rows_table(rows)]
    emit(format, rows, lambda: rows, parts)
    return 0
