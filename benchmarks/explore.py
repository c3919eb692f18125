"""How fast a fixed joint space is explored: `python benchmarks/explore.py --space FILE --candidates N [--json]`.

Counts every candidate of the product (feasible or not) with the full operator list, and keeps the best strategy of
each cluster (`cells`); `legal` and `fitting` say how many candidates could run. Memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from speed import FIXED, cut
from tradespace.explore.exploration import explore
from tradespace.explore.space import Space
from tradespace.explore.studies import read_space


def resized(space: Space, candidates: int) -> Space:
    """The space cut to about `candidates`, or grown to them by more values of its first axis of rates."""
    if space.size >= candidates:
        return cut(space, candidates)
    for i, axis in enumerate(space.axes):
        if axis.paths[0].endswith((".peak", ".bandwidth")) and axis.size > 1:
            count = axis.size * candidates // space.size
            values = np.geomspace(axis.values[0][0], axis.values[0][-1], count)
            finer = replace(axis, values=(tuple(float(value) for value in values),))
            return replace(space, axes=(*space.axes[:i], finer, *space.axes[i + 1 :]))
    return space


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--space", type=Path, default=FIXED, help="a study in TOML")
    parser.add_argument("--candidates", type=float, help="cut or grow the space to about so many (default: as it is)")
    arguments = parser.parse_args()
    space = read_space(arguments.space)
    if arguments.candidates is not None:
        space = resized(space, int(arguments.candidates))
    cells = [axis.name for axis in space.axes if not axis.paths[0].startswith("strategy.")]
    found = explore(space, best_per=cells, top=5, progress=_progress if sys.stderr.isatty() else None)
    best = found.table("best") if cells else found.table("top")
    counts = found.counts
    result = {
        "candidates": counts.total,
        "legal": counts.legal,
        "fitting": counts.fitting,
        "seconds": found.seconds,
        "candidates_per_s": counts.total / found.seconds,
        "cells": len(best["fits"]),
        "cells_that_fit": int(best["fits"].sum()),
        "best_step_s": float(found.step(0).step_time) if counts.fitting else None,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        print(f"{name:18s} {value:,.4g}" if isinstance(value, float) else f"{name:18s} {value:,}")


def _progress(done: int, total: int) -> None:
    print(f"\r{done / total:4.0%} of {total:,} candidates", end="", file=sys.stderr)


if __name__ == "__main__":
    main()
