"""How fast a fixed joint space is explored: `python benchmarks/explore.py --space FILE --candidates N [--json]`.

Counts every candidate of the product (feasible or not) with the full operator list; `legal` and `fitting` say how many
of them could run. Memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

from speed import FIXED, cut
from tradespace.explore.studies import read_space
from tradespace.explore.sweep import sweep


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--space", type=Path, default=FIXED, help="a space in TOML")
    parser.add_argument("--candidates", type=float, default=1e12, help="cut the outer axes down to about so many")
    arguments = parser.parse_args()
    space = cut(read_space(arguments.space), int(arguments.candidates))
    started = time.perf_counter()
    found = sweep(space, keep=5, progress=_progress if sys.stderr.isatty() else None)
    seconds = time.perf_counter() - started
    result = {
        "candidates": found.total,
        "legal": found.legal,
        "fitting": found.fitting,
        "seconds": seconds,
        "candidates_per_s": found.total / seconds,
        "best_step_s": float(found.values[0]) if len(found.values) else None,
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
