"""Candidates per second: open grid, flat list, plain loop, scalar call, plan and the peer's search, in one run.

Run `python benchmarks/speed.py [--json]`. Rates are per core-second (process time); a grid counts all candidates of
the product, feasible or not, each with the full operator list. `loop_ratio` is grid rate over the rate of a plain
Python loop over scalar predictions of the same space.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tradespace.explore.plan import plan
from tradespace.explore.space import Space
from tradespace.explore.studies import read_space
from tradespace.explore.sweep import keep_heap, sweep
from tradespace.inputs import load
from tradespace.predict import predict
from tradespace.workload.families import blocks_of

FIXED = Path(__file__).parent / "spaces" / "gpt3-joint.toml"
PEER = {"samples_per_s": 346.34, "strategy": "TP4 PP16 DP64, 6 virtual stages", "strategies_per_core_s": 153.0}


def cut(space: Space, candidates: int) -> Space:
    """The space with its outer axes shortened until it holds at most about `candidates`."""
    axes = list(space.axes)
    for i, axis in enumerate(axes):
        while space.size > candidates and axes[i].size > 1:
            keep = max(1, min(axes[i].size - 1, axes[i].size * candidates // space.size))
            axes[i] = replace(axis, values=tuple(column[:keep] for column in axis.values))
            space = replace(space, axes=tuple(axes))
    return space


def grid(space: Space, candidates: int) -> dict[str, Any]:
    """Rate of an exhaustive sweep over the fixed space, its outer axes cut to about `candidates`."""
    space = cut(space, candidates)
    started = time.process_time()
    found = sweep(space, keep=10)
    seconds = time.process_time() - started
    return {"rate": found.total / seconds, "size": found.total, "axes": len(space.axes), "legal": found.legal}


def flat_list(space: Space, count: int = 8192, repeats: int = 25) -> float:
    """Rate on a flat list of random candidates of the space: every field a column."""
    rng = np.random.default_rng(0)
    rows = {
        path: np.asarray(column)[rng.integers(axis.size, size=count)]
        for axis in space.axes
        for path, column in zip(axis.paths, axis.values, strict=True)
    }
    inputs = space.replaced(rows)
    predict(*inputs)
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        step = predict(*inputs)
        _ = step.legal, step.fits, step.step_time
        best = min(best, time.process_time() - started)
    return count / best


def scalar(space: Space, repeats: int = 300) -> float:
    """Seconds of one scalar prediction (median of several)."""
    inputs = space.candidate((0,) * len(space.axes))
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        predict(*inputs)
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def loop_rate(space: Space, count: int = 400) -> float:
    """Rate of a plain Python loop: one candidate of the space after the other."""
    rng = np.random.default_rng(1)
    positions = [tuple(int(rng.integers(axis.size)) for axis in space.axes) for _ in range(count)]
    started = time.process_time()
    for position in positions:
        step = predict(*space.candidate(position))
        _ = step.legal, step.fits, step.step_time
    return count / (time.process_time() - started)


def import_seconds() -> float:
    """Seconds that `import tradespace` takes in a fresh interpreter (best of five)."""
    code = "import time; t = time.perf_counter(); import tradespace; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    return min(float(run.stdout) for run in runs)


def plan_seconds() -> float:
    """Seconds of the README's search: Llama 3.1 405B on 1,024 H100s."""
    cluster = load.cluster("dgx-h100", devices=1024)
    found = plan(load.model("llama-3.1-405b", 8192), cluster, load.strategy("global_batch=512", cluster=cluster))
    return found.seconds


def peer_case() -> dict[str, Any]:
    """GPT-3 175B on 4,096 A100-80G, batch 4,096: the search that the fastest peer publishes, on the same axes."""
    cluster = load.cluster("dgx-a100", devices=4096)
    base = load.strategy("global_batch=4096,profile=megatron-2021,flash=0,precision=fp16", cluster=cluster)
    found = plan(load.model("gpt3-175b"), cluster, base, {"context": 1.0})
    assert found.best is not None
    best = found.best.to_dict()
    return {"seconds": found.seconds, "samples_per_s": 4096 / best["step_time_s"], "strategy": best["strategy"]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--candidates", type=float, default=1e8, help="size of the grid")
    arguments = parser.parse_args()
    keep_heap()
    space = read_space(FIXED)
    swept = grid(space, int(arguments.candidates))
    loop = loop_rate(space)
    peer = peer_case()
    operators = sum(len(block.operators) for block in blocks_of(space.model, space.strategy).values())
    result = {
        "grid_candidates_per_core_s": swept["rate"],
        "list_candidates_per_core_s": flat_list(space),
        "operators": operators,
        "loop_ratio": swept["rate"] / loop,
        "loop_candidates_per_core_s": loop,
        "scalar_predict_s": scalar(space),
        "import_s": import_seconds(),
        "plan_s": plan_seconds(),
        "peer_case_s": peer["seconds"],
        "peer_case_best": {k: peer[k] for k in ("samples_per_s", "strategy")},
        "peer": PEER,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "grid_size": swept["size"],
        "grid_axes": swept["axes"],
        "grid_legal": swept["legal"],
    }
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        print(f"{name:30s} {value:,.4g}" if isinstance(value, float) else f"{name:30s} {value}")


if __name__ == "__main__":
    main()
