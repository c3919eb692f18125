"""A predicted step as traces: what is written, and that its replay is the prediction under ASTRA-sim's semantics."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tradespace.astra import replay
from tradespace.astra.chakra import COLLECTIVE, COMP, SEND, Node
from tradespace.astra.export import write_traces
from tradespace.astra.from_step import Exported, from_step
from tradespace.astra.grid import Grid
from tradespace.astra.hardware import network_of_cluster, spanned
from tradespace.astra.run import replay_traces
from tradespace.cli import run
from tradespace.errors import InputError
from tradespace.inputs import load
from tradespace.network.astra import Network
from tradespace.predict import predict
from tradespace.schedule.table import SCHEDULES
from tradespace.schedule.timeline import evaluate
from tradespace.step import Step

pytestmark = pytest.mark.filterwarnings("ignore::tradespace.astra.AstraWarning")
LLAMA, H100 = "llama-3.1-8b", "dgx-h100"
CASES = [
    (LLAMA, H100, "tp=8,zero=0,global_batch=16,recompute=full", 8),
    (LLAMA, H100, "tp=4,cp=2,global_batch=16,zero=3", 16),
    (LLAMA, H100, "tp=2,pp=2,global_batch=32,recompute=selective", 16),
    (LLAMA, H100, "pp=4,vp=2,sp=0,tp=2,global_batch=16", 16),
    (LLAMA, H100, "global_batch=32,zero=2,shard=8", 16),
    ("mixtral-8x7b", H100, "tp=2,pp=2,ep=4,etp=1,global_batch=32", 32),
    ("deepseek-v3", H100, "pp=4,ep=8,global_batch=32,tp=1", 32),
    (LLAMA, "tpu-v4", "tp=16,global_batch=64", 256),
    (LLAMA, "mi300x-8", "tp=8,global_batch=8", 16),
    ("transformer-1t", "dgx-a100", "MP8_DP8,schedule=comet-loop,zero=2,recompute=full,global_batch=64", 64),
    ("dlrm-dcnv2", "dgx-a100", "global_batch=65536", 64),
]


def predicted(model: str, cluster: str, strategy: str, devices: int, seq: int | None = None) -> Step:
    """A step without the jitter that scale adds, which no trace has."""
    placed = load.cluster(cluster, devices=devices)
    loaded = load.strategy(strategy, cluster=placed)
    loaded = replace(loaded, profile=replace(loaded.profile, jitter=0.0))
    return predict(load.model(model, seq), placed, loaded)


def replayed(found: Exported) -> list[dict[str, int]]:
    return list(replay_traces(found.traces, found.network, found.machine, found.groups)["ranks"].values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[2]}")
def test_compute_of_the_replay_is_the_step_s(case: tuple[str, str, str, int]) -> None:
    """Mean over the ranks, as in `Step.time`: within the rounding to whole microseconds, and 1 ns for a kernel of 0."""
    step = predicted(*case)
    found = from_step(step)
    ranks = replayed(found)
    parts = ("forward", "input_grad", "weight_grad", "recompute", "optimizer", "other")
    expected = sum(float(step.time[name]) for name in parts)
    mean = sum(rank["compute"] for rank in ranks) / len(ranks) / 1e9
    kernels = max(len(trace.program.nodes) for trace in found.traces)
    assert mean == pytest.approx(expected, abs=0.6e-6 + kernels * 1e-9, rel=0)


def alone(node: Node, ranks: int, found: Exported, dim: int) -> int:
    """ns of a ring collective of a group on one dim, from the published formulas: t = floor(hops lat + m/B)."""
    level, memory = found.network.dims[dim], found.machine.system.memory_bandwidth
    assert memory is not None

    def step(size: int) -> int:
        return int(2 * level.latency + size / (level.bandwidth * 2**30 / 1e9))

    def reduction(size: int) -> int:
        return 3 * int(size / (memory * 1e9) * 1e9)

    n, size, delay = ranks, node.size, 10
    if node.comm == "all_gather":
        return (n - 1) * step(size) + n * delay
    part = size // n
    if node.comm == "reduce_scatter":
        return (n - 1) * (step(part) + reduction(part)) + n * delay
    assert node.comm == "all_reduce"
    return 2 * (n - 1) * step(part) + (2 * n - 1) * delay + (n - 1) * reduction(part)


@pytest.mark.parametrize("strategy", ["tp=4,zero=0,global_batch=4", "tp=4,sp=0,zero=0,global_batch=4,recompute=full"])
def test_communication_of_the_replay_is_that_of_the_exchanges_one_by_one(strategy: str) -> None:
    """Tensor parallelism alone: nothing overlaps, so total = compute + communication, to the nanosecond."""
    found = from_step(predicted(LLAMA, H100, strategy, 4))
    nodes = [node for node in found.traces[0].program.nodes if node.kind == COLLECTIVE]
    # One dim of four: the configured halving-doubling runs on it; as rings they have the published closed form.
    ring = replace(found.machine.system, algorithms=dict.fromkeys(found.machine.system.algorithms, ("ring",)))
    found = replace(found, machine=replace(found.machine, system=ring))
    rank = replayed(found)[0]
    assert rank["communication"] == sum(alone(node, 4, found, 0) for node in nodes)
    assert rank["total"] == rank["compute"] + rank["communication"]


@pytest.mark.parametrize("strategy", ["pp=4", "pp=4,vp=2", "pp=4,schedule=gpipe"])
def test_a_pipeline_s_replay_is_the_schedule_s_timeline(strategy: str) -> None:
    """Pipeline stages alone: the timeline of the schedule with each message as latency, and the update."""
    step = predicted(LLAMA, H100, f"{strategy},global_batch=8", 4)
    found = from_step(step)
    stages, chunks, batches = 4, int(step.strategy.virtual_stages), int(step.microbatches)
    order = SCHEDULES[step.strategy.schedule].order(stages, chunks, batches)
    durations: dict[str, list[float]] = {"forward": [0.0] * stages * chunks, "backward": [0.0] * stages * chunks}
    for stage, trace in enumerate(found.traces):
        held = sorted({one.chunk for one in order[stage]})
        layers = 32 // (stages * chunks)
        for node in trace.program.nodes:
            if node.kind != COMP or "mb" not in node.name:
                continue
            kind = "forward" if ".forward" in node.name else "backward"
            unit = node.name.split()[1]
            chunk = {"embedding": held[0], "head": held[-1]}.get(unit)
            if chunk is None:
                chunk = held[(int(unit.removeprefix("layer")) - stage * layers * chunks) // layers]
            durations[kind][chunk] += node.duration / batches
    sent = next(node for node in found.traces[0].program.nodes if node.kind == SEND)
    level = found.network.dims[0]
    latency = int(2 * level.latency + sent.size / (level.bandwidth * 2**30 / 1e9))
    expected = evaluate(order, durations, latency).makespan + float(step.once["optimizer"] + step.once["other"]) * 1e9
    assert replayed(found)[0]["total"] == pytest.approx(expected, abs=2000 * batches * chunks)


def volumes(found: Exported, kind: str) -> float:
    """Bytes of the full tensors of all collectives of a kind, over all ranks and groups, per rank."""
    total = 0.0
    for trace in found.traces:
        for node in trace.program.nodes:
            if node.kind == COLLECTIVE and node.comm == kind and node.name.startswith(("parameters", "gradients")):
                name, flags = trace.comms[node.ref]
                dims = zip(found.network.dims, flags, strict=False)
                size = len(found.groups[name]) if name else 1
                for dim, flag in dims:
                    size *= dim.size if flag else 1
                total += node.size * (size if kind == "all_gather" else 1)
    return total / len(found.traces)


def test_what_full_sharding_and_zero_move() -> None:
    """ZeRO 3 gathers every parameter twice per microbatch and scatters every gradient; ZeRO 1 does each once per step;
    ZeRO 0 sums gradients (Rajbhandari et al. 2020, section 7)."""
    model = load.model(LLAMA)
    step = predicted(LLAMA, H100, "zero=3,global_batch=16", 8)
    held, batches = float(step.parameters["total"]) / 1.0, float(step.microbatches)
    full, once, summed = (from_step(predicted(LLAMA, H100, f"zero={zero},global_batch=16", 8)) for zero in (3, 1, 0))
    assert model.tied == 0.0
    precision = step.strategy.precision
    assert volumes(full, "all_gather") == pytest.approx(2 * batches * held * precision.value, rel=1e-3)
    assert volumes(full, "reduce_scatter") == pytest.approx(batches * held * precision.reduce, rel=1e-3)
    assert volumes(once, "all_gather") == pytest.approx(held * precision.value, rel=1e-3)
    assert volumes(once, "reduce_scatter") == pytest.approx(held * precision.reduce, rel=1e-3)
    assert volumes(summed, "all_reduce") == pytest.approx(held * precision.reduce, rel=1e-3)
    assert volumes(summed, "all_gather") == volumes(summed, "reduce_scatter") == 0.0


@pytest.mark.parametrize("case", [CASES[2], CASES[5], CASES[10]], ids=lambda case: f"{case[0]} {case[2]}")
def test_files_say_the_same(case: tuple[str, str, str, int], tmp_path: Path) -> None:
    """The replay of the files is that of the step in memory, rank by rank."""
    found = from_step(predicted(*case))
    files = write_traces(found.traces, found.groups, tmp_path, found.network, found.machine)
    assert len(files) == case[3] + 3
    again = replay(tmp_path, tmp_path / "network.yml", tmp_path / "system.json", comm_groups=tmp_path / "step.json")
    assert list(again["ranks"].values()) == replayed(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[2]}")
def test_communicators_partition_the_ranks_and_their_members_agree(case: tuple[str, str, str, int]) -> None:
    """Members of a group have the same sequence of collectives on it, and groups on network dims are said as dims."""
    found = from_step(predicted(*case))
    calls: dict[str, set[tuple[tuple[str, int], ...]]] = {}
    members: Counter[str] = Counter()
    for rank, trace in enumerate(found.traces):
        for slot, (name, flags) in enumerate(trace.comms):
            if name:
                assert rank in found.groups[name]
                assert spanned(found.network, found.groups[name]) is None
                own = tuple((n.comm, n.size) for n in trace.program.nodes if n.kind == COLLECTIVE and n.ref == slot)
                calls.setdefault(name, set()).add(own)
                members[name] += 1
            else:
                assert any(flags)
    assert all(len(own) == 1 for own in calls.values())
    assert all(members[name] == len(ranks) for name, ranks in found.groups.items())


def test_every_coset_of_a_group_on_whole_dims_is_one() -> None:
    """A group of rank 0 that fills dims does so at every rank, also where degrees and dims do not line up."""
    network, _ = network_of_cluster(load.cluster(H100, devices=48))
    grid = Grid((("tensor", 4), ("context", 2), ("shard", 6)))
    for names in (("tensor",), ("tensor", "context"), ("shard",), ("context", "shard")):
        kinds = {spanned(network, grid.members(names, rank)) for rank in range(48)}
        assert len(kinds) == 1
    assert spanned(network, grid.members(("tensor", "context"), 9)) == (0,)


def test_hardware_in_astra_sim_s_units() -> None:
    """Per link and in GB of 2**30: a ring has half a device's bandwidth on each, a fully connected device a seventh;
    a switch counts its latency twice."""
    found = {}
    for name, devices in (("tpu-v4", 64), ("mi300x-8", 8), (H100, 8)):
        cluster = load.cluster(name, devices=devices)
        found[name] = (network_of_cluster(cluster)[0].dims[0], cluster.network[0])
    for name, share, kind in (("tpu-v4", 2, "Ring"), ("mi300x-8", 7, "FullyConnected"), (H100, 1, "Switch")):
        dim, level = found[name]
        assert dim.kind == kind
        assert dim.bandwidth * 2**30 == pytest.approx(float(level.bandwidth) / share, rel=1e-6)
        assert dim.latency == pytest.approx(float(level.latency) * (0.5e9 if kind == "Switch" else 1e9))


def test_faults_of_an_export(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments, said in (
        ((LLAMA, H100, "tp=2,global_batch=8", "--to", "chakre", "--out", "x"), "did you mean 'chakra'"),
        ((LLAMA, H100, "tp=2,global_batch=8", "--to", "chakra"), "--out is missing"),
        ((LLAMA, H100, "tp=3,global_batch=8", "--to", "chakra", "--out", "x"), "not legal"),
        ((LLAMA, H100, "global_batch=8", "--devices", "1", "--to", "chakra", "--out", "x"), "at least 2 devices"),
        ((LLAMA, H100, "global_batch=12", "--devices", "12", "--to", "chakra", "--out", "x"), "whole groups of 8"),
    ):
        assert run(["export", *arguments]) == 2
        assert said in capsys.readouterr().err
    assert run(["export", LLAMA, H100, "tp=2,global_batch=8", "--to", "chakra", "--out", str(tmp_path)]) == 0
    assert "8 traces" in capsys.readouterr().out
    assert len(list(tmp_path.glob("step.*.et"))) == 8


def test_too_many_operations_are_refused() -> None:
    for batch, devices in ((65536, 8192), (1e9, 8)):
        with pytest.raises(InputError, match="operations over all ranks"):
            from_step(predicted(LLAMA, H100, f"global_batch={batch:g},micro_batch=1", devices))


def test_unlike_networks_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="no mesh"):
        assert isinstance(network_of_cluster(load.cluster("dojo", devices=12))[0], Network)
