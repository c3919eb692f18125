"""A sweep into a directory: parts are predicted anywhere, written here, and merged at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tradespace.errors import InputError
from tradespace.explore import distribute, parquet, store
from tradespace.explore.exploration import Explored, explore_part
from tradespace.explore.reduce import Histogram
from tradespace.explore.space import Index
from tradespace.explore.studies import Study
from tradespace.explore.sweep import Counts, Progress

PART, MOST_PARTS = 1 << 24, 4096
"""Candidates of one part where only the best are kept (a fraction of a second), and parts of the largest sweeps."""
PART_OF_ROWS = 1 << 19
"""Candidates of one part where every one is a row."""

Done = tuple[bytes, bytes | None]


def part_size(study: Study) -> int:
    """Candidates of one part: small enough to lose little, large enough for few files."""
    return PART_OF_ROWS if study.every else max(PART, -(-study.space.size // MOST_PARTS))


def parts_of(study: Study) -> list[Index]:
    """The slices of the space that are the parts."""
    return list(study.space.blocks(part_size(study)))


def work(shared: tuple[Study, str], part: Index) -> Done:
    """One part: the state of what is kept and, where every candidate is, its rows as Parquet."""
    study, code = shared
    if store.code_hash() != code:
        raise InputError("sweep: a worker has another version of tradespace; install the same one everywhere")
    state = store.packed(*explore_part(study.space, study.keep, part))
    if not study.every:
        return state, None
    return state, parquet.as_bytes(study.space, parquet.every_candidate(study.space, part), study.columns)


def run_study(
    study: Study,
    directory: Path | str,
    *,
    resume: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Sweep a study into a directory and return its manifest.

    `resume` goes on with an unfinished sweep of the same study; finished parts are not predicted again. `workers`
    starts so many local processes, `scheduler` uses a Dask cluster. `progress(done, total)` counts the candidates that
    are left to predict. In a script, call it under `if __name__ == "__main__":` when it starts workers.
    """
    folder = Path(directory)
    parquet.duckdb()
    with store.locked(folder):
        try:
            return _run(study, folder, resume, (workers, scheduler), progress)
        except OSError as fault:
            reason = fault.strerror or str(fault)
            kept = "what is finished is kept: make room and continue with --resume"
            raise InputError(f"{folder}: {fault.filename or 'a file'} could not be written: {reason}; {kept}") from None


def _run(
    study: Study, folder: Path, resume: bool, where: tuple[int | None, str | None], progress: Progress | None
) -> dict[str, Any]:
    """The sweep in its locked directory."""
    started = time.perf_counter()
    parts = parts_of(study)
    manifest = store.prepare(folder, store.new_manifest(study, len(parts), part_size(study)), resume)
    if manifest["finished"]:
        return manifest
    left = {n: part for n, part in enumerate(parts) if not _finished(study, folder, n)}
    sizes = {n: int(np.prod([cut.stop - cut.start for cut in part])) for n, part in left.items()}
    done, total = 0, sum(sizes.values())
    for number, result in _results(study, left, *where):
        _write(folder, number, result)
        done += sizes[number]
        if progress is not None:
            progress(done, total)
    return _conclude(study, folder, manifest, started)


def _results(
    study: Study, parts: dict[int, Index], workers: int | None, scheduler: str | None
) -> Iterator[tuple[int, Done]]:
    shared = (study, store.code_hash())
    with distribute.client(workers if parts else None, scheduler if parts else None) as client:
        if client is None:
            yield from distribute.here(work, shared, parts)
        else:
            yield from distribute.on_dask(client, work, shared, parts)


def _write(folder: Path, number: int, result: Done) -> None:
    """Rows first: a part is finished when its state is there."""
    state, rows = result
    if rows is not None:
        store.write(store.rows_file(folder, number), rows)
    store.write(store.part_file(folder, number), state)


def _finished(study: Study, folder: Path, number: int) -> bool:
    """Whether a part's files are there and whole; what the disk has lost is predicted again."""
    if study.every and not store.rows_file(folder, number).is_file():
        return False
    try:
        store.unpacked(store.part_file(folder, number).read_bytes(), study.keep.reducers(study.space))
    except (OSError, ValueError, KeyError, BadZipFile):
        return False
    return True


def merged(study: Study, folder: Path, parts: int) -> Explored:
    """All parts together."""
    total, reducers = Counts(), study.keep.reducers(study.space)
    for number in range(parts):
        found = study.keep.reducers(study.space)
        total.merge(store.unpacked(store.part_file(folder, number).read_bytes(), found))
        for name, reducer in reducers.items():
            reducer.merge(found[name])
    return Explored(study.space, study.keep, total, 0.0, reducers)


def _conclude(study: Study, folder: Path, manifest: dict[str, Any], started: float) -> dict[str, Any]:
    """The result files from the parts, then the finished manifest."""
    found = merged(study, folder, manifest["parts"])
    tables = [name for name in found.reducers if not isinstance(found.reducers[name], Histogram)]
    for name in tables:
        for number, table in enumerate(found.chunks(name)):
            content = parquet.as_bytes(study.space, table, study.columns)
            store.write(store.rows_file(folder, number, name), content)
            if name == "top" and not study.every and "best" not in tables:
                store.write(store.rows_file(folder, number), content)
    histograms = parquet.histograms_as_bytes(found)
    if histograms is not None:
        store.write(store.rows_file(folder, 0, "histograms"), histograms)
    return store.finish(folder, manifest, found.counts, time.perf_counter() - started)
