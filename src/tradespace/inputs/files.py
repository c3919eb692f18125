"""Reading the catalog and the user's files: every fault is one InputError sentence."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tradespace.errors import InputError, nearest

CATALOG = Path(__file__).resolve().parents[1] / "catalog"
LARGEST_FILE = 10_000_000
Source = str | Path | Mapping[str, Any]
SUFFIXES = (".toml", ".json")


def entries(kind: str) -> list[str]:
    """The keys of one kind of catalog entry ("models", "devices", "clusters", "profiles", ...), sorted.

    >>> "h100-sxm" in entries("devices")
    True
    """
    folder = CATALOG / kind
    if not folder.is_dir():
        known = [item.name for item in CATALOG.iterdir() if item.is_dir() and not item.name.startswith("_")]
        raise InputError(f"catalog: no kind of entry '{kind}'{nearest(kind, known)}")
    return sorted(item.stem for item in folder.iterdir() if item.suffix in SUFFIXES)


def catalog_entry(kind: str, key: str) -> dict[str, Any]:
    """One catalog entry as its file states it.

    >>> catalog_entry("devices", "h100-sxm")["peak"]
    '989.4 TFLOP/s'
    """
    return read(entry_path(kind, key))


def entry_path(kind: str, key: str) -> Path:
    """The file of a catalog entry: TOML, or a model's public config.json as it is.

    >>> entry_path("devices", "h100-sxm").name
    'h100-sxm.toml'
    """
    if key in entries(kind):
        return next(p for suffix in SUFFIXES if (p := CATALOG / kind / f"{key}{suffix}").is_file())
    raise InputError(f"no {kind.removesuffix('s')} '{key}' in the catalog{nearest(key, entries(kind))}")


def is_path(source: str | Path) -> bool:
    """Whether a text names a file and not a catalog key (keys may hold dots: llama-3.1-8b)."""
    return (
        isinstance(source, Path)
        or "/" in source
        or "\\" in source
        or source.lower().endswith((".toml", ".json", ".csv"))
    )


def read(source: str | Path) -> dict[str, Any]:
    """The table in a TOML or JSON file of at most 10 MB."""
    path = Path(source)
    text = _text(path)
    try:
        found = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as fault:
        what = "JSON" if path.suffix.lower() == ".json" else "TOML"
        reason = "nested too deeply" if isinstance(fault, RecursionError) else str(fault)
        raise InputError(f"{path}: not valid {what}: {reason}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: an object with named fields is needed, not a {type(found).__name__}")
    return found


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory, but a TOML or JSON file is needed")
        if path.suffix.lower() not in (".toml", ".json"):
            raise InputError(f"{path}: a file named .toml or .json is needed")
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise InputError(f"{path}: {size / 1e6:.0f} MB is more than the 10 MB that an input file may have")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None
    except (OSError, ValueError) as fault:
        if isinstance(fault, InputError):
            raise
        reason = "no such file" if isinstance(fault, FileNotFoundError) else (getattr(fault, "strerror", None) or fault)
        raise InputError(f"{path}: {reason}") from None


def resolve(kind: str, source: Source) -> tuple[dict[str, Any], str, bool]:
    """The table behind a catalog key, a path or a table; its place for errors; whether a person wrote it.

    A file without `key` gets its own name as key; an entry without `name` gets its key.
    """
    if isinstance(source, Mapping):
        table, where, typed = dict(source), kind.removesuffix("s"), True
    elif is_path(source):
        table, where, typed = read(source), str(source), True
        table.setdefault("key", Path(source).stem)
    else:
        table, where, typed = catalog_entry(kind, str(source)), f"{kind}/{source}", False
        table.setdefault("key", str(source))
    if "key" in table:
        table.setdefault("name", table["key"])
    return table, where, typed
