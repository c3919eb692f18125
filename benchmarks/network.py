"""Speed of the ASTRA-sim replay: a 256-device iteration, and collectives on 1,024 devices.

Two kinds of ratio. Against ASTRA-sim: the wall times measured for it (0.1 s for the 16-device iteration, 26.4 s for one
of 256 devices), so only as good as the machine is alike. In one run: one rank per class against every rank, and phases
in a job shop against every message.

    python benchmarks/network.py [--json]
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tradespace.astra import AstraWarning, Collective, Compute, Iteration, Machine, write_iteration
from tradespace.astra.chakra import COMP
from tradespace.astra.collective import Collective as Timed
from tradespace.astra.events import Run
from tradespace.astra.iteration import Operation
from tradespace.astra.ranks import Communicators, Ranks
from tradespace.astra.replay import Replay
from tradespace.astra.run import replay_traces
from tradespace.astra.side_files import read_groups
from tradespace.astra.traces import Trace, read_traces
from tradespace.network.astra import COLLECTIVES, Dim, Network, System

ARCHIVE = Path(__file__).parents[1] / "tests" / "data" / "astra" / "gpt16.tar.xz"
ASTRA_SIM_S = {16: 0.1, 256: 26.4}
MIB = 1 << 20


def best(call: Callable[[], Any], repeats: int = 5) -> float:
    """Shortest wall time (s) of several calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def machine(dims: int) -> Machine:
    """System of the measured iterations."""
    return Machine(
        System(dict.fromkeys(COLLECTIVES, ("ring",) * dims), 10, 1935, optimization="localBWAware"), True, 312e12
    )


def scaled(trace: Trace, data: int, tensor: int) -> Iteration:
    """The iteration of one rank of gpt16 on data x tensor ranks: data groups contiguous, tensor groups strided."""
    tensor_name = trace.comms[0][0]
    ranks = []
    for rank in range(data * tensor):
        groups = {
            True: tuple(range(rank % data, data * tensor, data)),
            False: tuple(range(rank // data * data, (rank // data + 1) * data)),
        }
        steps: list[Operation] = []
        for node in trace.program.nodes:
            if node.kind == COMP:
                steps.append(Compute(node.id, node.name, node.deps, node.ops, node.size))
            else:
                group = groups[trace.comms[node.ref][0] == tensor_name]
                steps.append(Collective(node.id, node.name, node.comm, node.size, group, node.deps))
        ranks.append(tuple(steps))
    return Iteration(tuple(ranks))


def iteration(folder: Path, name: str, net: Network) -> dict[str, float]:
    """Wall times of one iteration: reading the files, replaying, and replaying every rank."""
    size, config = net.size, machine(len(net.dims))
    groups = read_groups(folder / f"{name}.json", size)
    traces = read_traces(folder, size)
    communicators = Communicators(net, config.system, groups)
    result = replay_traces(traces, net, config, groups, None)
    full = Replay(Ranks(communicators, traces), config, None, [trace.program for trace in traces]).run()
    assert list(result["ranks"].values()) == full
    read = best(lambda: read_traces(folder, size))
    short = best(lambda: replay_traces(traces, net, config, groups, None))
    every = best(
        lambda: Replay(
            Ranks(Communicators(net, config.system, groups), traces), config, None, [trace.program for trace in traces]
        ).run(),
        2,
    )
    return {
        "total_ns": result["total_ns"],
        "read_s": read,
        "replay_s": short,
        "every_rank_s": every,
        "every_rank_over_replay": every / short,
        "astra_sim_over_replay": ASTRA_SIM_S[size] / short,
        "astra_sim_over_read_and_replay": ASTRA_SIM_S[size] / (read + short),
    }


def collective(kind: str, chunks: int) -> dict[str, float]:
    """Wall time of one collective on 1,024 devices, and of every message of it."""
    net = Network((Dim("Ring", 8, 300, 100), Dim("Switch", 128, 50, 1000)))
    system = System(
        dict.fromkeys(COLLECTIVES, ("ring", "halvingDoubling")), 10, 1600, chunks, optimization="localBWAware"
    )

    def timed() -> Timed:
        return Timed(net, system, kind, 256 * MIB, (0, 1))

    short = best(lambda: timed().together)
    one = timed()
    start = time.perf_counter()
    ends = Run(net, system, one.chunks, one.servers).times(range(net.size), [0] * net.size)
    messages = time.perf_counter() - start
    assert set(ends) == {one.together}
    return {
        "time_ns": one.together,
        "job_shop_s": short,
        "every_message_s": messages,
        "every_message_over_job_shop": messages / short,
    }


def main() -> None:
    """Print all numbers, as text or as one JSON document."""
    warnings.simplefilter("ignore", AstraWarning)
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder, filter="data")
        small = Network((Dim("Ring", 4, 300, 100), Dim("Ring", 4, 50, 1000)))
        results["iteration of 16 devices"] = iteration(folder / "gpt16", "workload", small)
        large = Network((Dim("Switch", 32, 50, 1000), Dim("Switch", 8, 300, 100)))
        grown = scaled(read_traces(folder / "gpt16", 16)[0], 32, 8)
        write_iteration(grown, folder / "gpt256", large, machine(2))
        results["iteration of 256 devices"] = iteration(folder / "gpt256", "step", large)
    for kind, chunks in (("all_reduce", 1), ("all_reduce", 16), ("all_gather", 4)):
        results[f"{kind} of 1,024 devices, {chunks} chunks"] = collective(kind, chunks)
    if "--json" in sys.argv:
        print(json.dumps(results, indent=1))
        return
    for title, numbers in results.items():
        print(title)
        for key, value in numbers.items():
            print(f"  {key:32} {value:14.6g}")


if __name__ == "__main__":
    main()
