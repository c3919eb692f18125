"""The one exception for bad input: the command line turns it into one sentence and exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """What the user gave is wrong; the message says what, where, and what would be right.

    >>> raise InputError("strategy: tensor = 0, but a degree is at least 1")
    Traceback (most recent call last):
        ...
    tradespace.errors.InputError: strategy: tensor = 0, but a degree is at least 1
    """

    def __init__(self, message: str) -> None:
        # Names from files may hold line breaks; the sentence stays on one line.
        super().__init__(" ".join(message.split()))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that ends an error about an unknown name: the nearest known one, or all of a few.

    >>> nearest("h100", ["a100-sxm-80gb", "h100-sxm"])
    "; did you mean 'h100-sxm'?"
    """
    names = sorted(known)
    inside = [known_name for known_name in names if name and name.lower() in known_name.lower()]
    close = inside[:1] or difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"; did you mean '{close[0]}'?"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"; known: {shown}"
