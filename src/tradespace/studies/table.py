"""The table of studies: a study is a catalog entry, functions for its claims, and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.studies import comet
from tradespace.studies.claims import Value, evaluate
from tradespace.studies.presets import preset


@dataclass(frozen=True)
class Study:
    """A named study: values of its claims."""

    values: Mapping[int, Value]


STUDIES: Mapping[str, Study] = {"comet": Study(comet.VALUES)}


def names() -> list[dict[str, str]]:
    """The studies: name, title, source.

    >>> [row["name"] for row in names()]
    ['comet']
    """
    return [{key: str(preset(name)[key]) for key in ("name", "title", "source")} for name in STUDIES]


def reproduce(name: str) -> list[dict[str, Any]]:
    """Evaluate a study's claims: rows {id, claim, expected, value, low, high, verdict, assumptions, range}.

    Raises `InputError` for an unknown name.
    """
    if name not in STUDIES:
        raise InputError(f"no study '{name}'{nearest(name, STUDIES)}")
    return evaluate(name, STUDIES[name].values)
