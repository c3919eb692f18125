"""The directory of a sweep: a lock, a manifest, finished parts, and the results as Parquet.

A part is finished when its state file is there under its own name. Every file is written beside its name, flushed to
the disk and then renamed, so that a process killed at any moment leaves a whole file or none.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tradespace.errors import InputError
from tradespace.explore.columns import COLUMNS
from tradespace.explore.reduce import Reducer
from tradespace.explore.studies import Study
from tradespace.explore.sweep import Counts

LOCK, MANIFEST, PARTS, RESULTS = "lock", "manifest.json", "parts", "results"
HALF_WRITTEN = ".writing"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """The directory for this process alone; the operating system frees the lock when the process ends, however."""
    import fcntl

    directory.mkdir(parents=True, exist_ok=True)
    with (directory / LOCK).open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read(20).strip() or "another process"
            raise InputError(f"{directory}: a sweep is writing here already (process {owner}); wait for it") from None
        with suppress(OSError):  # the number is a help for people; on a full disk the lock holds without it
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), str(os.getpid()).encode())
        yield


def write(path: Path, content: bytes) -> None:
    """A file that is there as a whole or not at all, whatever happens while it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(path.name + HALF_WRITTEN)
    try:
        with half.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    except OSError as fault:
        half.unlink(missing_ok=True)
        raise OSError(fault.errno, fault.strerror, str(path)) from None
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def packed(counts: Counts, reducers: Mapping[str, Reducer]) -> bytes:
    """Counts and reducers as the content of an .npz file."""
    arrays: dict[str, Any] = {f"{name}/{key}": v for name, one in reducers.items() for key, v in one.state().items()}
    arrays["counts"] = np.frombuffer(json.dumps(asdict(counts)).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def unpacked(content: bytes, reducers: Mapping[str, Reducer]) -> Counts:
    """The counts of `packed`; the empty reducers become what they were."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        for name, one in reducers.items():
            keys = [key for key in arrays.files if key.startswith(f"{name}/")]
            one.restore({key.removeprefix(f"{name}/"): arrays[key] for key in keys})
        return Counts(**json.loads(arrays["counts"].tobytes()))


@cache
def code_hash() -> str:
    """A hash of the program's source: two that differ may predict different times."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()


def new_manifest(study: Study, parts: int, part_size: int) -> dict[str, Any]:
    """What a directory says about itself: the study, hashes of all inputs and of the program, versions, columns."""
    from tradespace import __version__

    resolved = repr((study.space, study.keep, study.every, part_size))
    return {
        "schema": 1,
        "finished": False,
        "study": json.loads(json.dumps(study.table, default=str)),
        "inputs_sha256": hashlib.sha256(resolved.encode()).hexdigest(),
        "program": {"tradespace": __version__, "sha256": code_hash()},
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "rows": "all" if study.every else "best",
        "candidates": study.space.size,
        "parts": parts,
        "part_candidates": part_size,
        "columns": {name: {"unit": column.unit, "meaning": column.doc} for name, column in COLUMNS.items()},
    }


def read_manifest(directory: Path) -> dict[str, Any] | None:
    """The manifest of a directory; None without one."""
    try:
        found = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, OSError):
        found = None
    if not isinstance(found, dict) or "finished" not in found:
        raise InputError(f"{directory / MANIFEST}: not the manifest of a sweep")
    return found


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest."""
    write(directory / MANIFEST, json.dumps(manifest, indent=1).encode())


def prepare(directory: Path, manifest: dict[str, Any], resume: bool) -> dict[str, Any]:
    """The manifest to go on with: a new one in an empty directory, or that of the same study when resuming."""
    known = read_manifest(directory)
    if known is None:
        others = [item.name for item in directory.iterdir() if item.name not in (LOCK, MANIFEST + HALF_WRITTEN)]
        if others:
            raise InputError(f"{directory}: holds other files ({sorted(others)[0]}, ...); choose an empty directory")
        write_manifest(directory, manifest)
        return manifest
    if not resume:
        state = "a finished sweep;" if known["finished"] else "an unfinished sweep; continue it with --resume or"
        raise InputError(f"{directory}: holds {state} choose another directory")
    _same(known, manifest, directory)
    for half in directory.rglob(f"*{HALF_WRITTEN}"):
        half.unlink(missing_ok=True)
    return known


def _same(known: Mapping[str, Any], wanted: Mapping[str, Any], directory: Path) -> None:
    """Refuse to mix two studies or two programs."""
    if known.get("program") != wanted["program"]:
        raise InputError(f"{directory}: was written by another version of tradespace; start again in a new directory")
    if known.get("inputs_sha256") == wanted["inputs_sha256"]:
        return
    old, new = known.get("study", {}), wanted["study"]
    changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    what = f"{', '.join(changed)} changed" if changed else "a file or a catalog entry that it names changed"
    raise InputError(f"{directory}: holds another study ({what}); resume with the same one or use a new directory")


def part_file(directory: Path, number: int) -> Path:
    """Where the state of a part is."""
    return directory / PARTS / f"{number:06d}.npz"


def rows_file(directory: Path, number: int, table: str = RESULTS) -> Path:
    """Where rows of a table are; the best candidates are the result."""
    return directory / (RESULTS if table == "best" else table) / f"{number:06d}.parquet"


def finish(directory: Path, manifest: dict[str, Any], counts: Counts, seconds: float) -> dict[str, Any]:
    """The manifest of a finished sweep, with every result file's size and hash; the parts' states go."""
    files = {}
    for path in sorted(directory.rglob("*.parquet")):
        content = path.read_bytes()
        entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        files[str(path.relative_to(directory))] = entry
    done = {**manifest, "finished": True, **asdict(counts), "seconds": seconds, "files": files}
    write_manifest(directory, done)
    shutil.rmtree(directory / PARTS, ignore_errors=True)
    return done
