"""Configuration files: both versions of each, and what is wrong with bad ones."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradespace.astra import AstraWarning, read_network, read_system
from tradespace.astra.files import flat_yaml, json_object
from tradespace.astra.network_file import write_network
from tradespace.astra.side_files import read_memory
from tradespace.errors import InputError
from tradespace.network.astra import Dim, Network

V1 = {
    "topology-name": "Hierarchical",
    "topologies-per-dim": ["Ring", "FullyConnected", "Switch"],
    "dimension-type": ["T", "N", "P"],
    "dimensions-count": 3,
    "units-count": [4, 4, 2],
    "links-count": [5, 7, 1],
    "link-latency": [10, 20, 30],
    "link-bandwidth": [25, 10, 5],
    "nic-latency": [0, 1, 2],
    "router-latency": [0, 0, 7],
    "hbm-latency": [500],
    "hbm-bandwidth": [370],
    "hbm-scale": [0],
}
V1 |= {"hbm-latency": 500, "hbm-bandwidth": 370, "hbm-scale": 0}


def save(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_network_yaml_in_every_style_of_the_examples(tmp_path: Path) -> None:
    expected = Network((Dim("Ring", 4, 50, 500), Dim("Switch", 8, 25.5, 0)))
    flow = (
        "topology: [ Ring, Switch ]   # comment\nnpus_count: [ 4, 8 ]\nbandwidth: [50.0, 2.55e1]\nlatency: [500,0,]\n"
    )
    block = (
        "---\n# c\ntopology:\n  - Ring\n  - 'Switch'\n\nnpus_count:\n- 4\n- 8\nbandwidth: [50,\n  25.5]\n"
        "latency: [500.0, 0]\n"
    )
    for text in (flow, block, write_network(expected)):
        assert read_network(save(tmp_path, "n.yml", text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\n", "latency must be a list"),
        ("topology: [ Ring ]\nnpus_count: [ 4, 4 ]\nbandwidth: [ 50 ]\nlatency: [ 1 ]\n", "2 entries"),
        ("topology: [ Ring ]\nnpus_count: [ 1 ]\nbandwidth: [ 50 ]\nlatency: [ 1 ]\n", "between 2"),
        ("topology: [ Ring ]\nnpus_count: [ 4.5 ]\nbandwidth: [ 50 ]\nlatency: [ 1 ]\n", "whole number"),
        ("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ -50 ]\nlatency: [ 1 ]\n", "between"),
        ("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ .nan ]\nlatency: [ 1 ]\n", "bandwidth"),
        ("topology: [ Rink ]\nnpus_count: [ 4 ]\nbandwidth: [ 5 ]\nlatency: [ 1 ]\n", "did you mean 'Ring'"),
        ("topology: {a: 1}\n", "line 1"),
        ("topology: &a [ Ring ]\n", "line 1"),
        ("a:\n  b: 1\n", "line 2"),
        ("x\n", "line 1"),
        ("topology: [ Ring\n", "not closed"),
        ("topology: [ [Ring] ]\n", "line 1"),
        ("a: 1\na: 2\n", "line 2"),
        ("topology: " + "[" * 100_000 + "\n", "does not end"),
        ('{"a": ', "JSON"),
        ("[" * 200_000, "line 1"),
        ('{"a":' * 100_000, "JSON"),
        ("", "topology must be a list"),
        (
            "topology: [ Ring, Ring ]\nnpus_count: [ 2000, 2000 ]\nbandwidth: [ 50, 50 ]\nlatency: [ 1, 1 ]\n",
            r"2\*\*20",
        ),
    ],
)
def test_bad_network_files_say_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_network(save(tmp_path, "n.yml", text))


def test_version_1_networks_add_links_and_charge_the_highest_dim(tmp_path: Path) -> None:
    net = read_network(save(tmp_path, "n.json", V1))
    assert [(dim.bandwidth, dim.fixed) for dim in net.dims] == [(100, 0), (20, 2), (5, 11)]
    transfer = (1 << 20) / (5 * 2**30 / 1e9)
    assert net.message(0, 31, 1 << 20) == int(2 * 30 + transfer + 11)
    assert net.message(0, 3, 1 << 20) == int(10 + (1 << 20) / (100 * 2**30 / 1e9))
    slow = read_network(save(tmp_path, "n.json", V1 | {"hbm-scale": 2, "hbm-bandwidth": 1}))
    assert slow.message(0, 3, 1 << 20) == int(2 * (500 + (1 << 20) / (2**30 / 1e9)))
    with pytest.raises(InputError, match="version-1"):
        write_network(net)
    for key, value in (
        ("units-count", [4, 4]),
        ("links-count", [1, 7, 1]),
        ("links-count", [5, 2, 1]),
        ("link-latency", 3),
        ("topologies-per-dim", [["Ring"], 1, None]),
        ("topology-name", "Flat"),
        ("hbm-scale", "x"),
    ):
        with pytest.raises(InputError, match=r"n\.json"):
            read_network(save(tmp_path, "n.json", V1 | {key: value}))


def test_unknown_network_keys_are_warned_of(tmp_path: Path) -> None:
    with pytest.warns(AstraWarning, match="ignores it silently"):
        read_network(save(tmp_path, "n.yml", write_network(Network((Dim("Ring", 4, 50, 500),))) + "speed: 3\n"))


V2_SYSTEM = {
    "scheduling-policy": "LIFO",
    "endpoint-delay": 7,
    "active-chunks-per-dimension": 2,
    "preferred-dataset-splits": 4,
    "all-reduce-implementation": ["ring", "direct4"],
    "collective-optimization": "localBWAware",
    "local-mem-bw": 1600,
    "peak-perf": 312,
    "roofline-enabled": 1,
    "boost-mode": 0,
    "model-shared-bus": 0,
    "L": 1,
    "o": 2,
    "g": 3,
    "G": 0.5,
}


def test_both_system_formats_mean_the_same(tmp_path: Path) -> None:
    first = read_system(save(tmp_path, "s.json", V2_SYSTEM))
    text = "\n".join(
        f"{key}: {'_'.join(value) if isinstance(value, list) else value}" for key, value in V2_SYSTEM.items()
    )
    assert read_system(save(tmp_path, "s.txt", text + "\n")) == first
    assert first.system.algorithms == {"all_reduce": ("ring", "direct4")}
    assert (first.system.endpoint_delay, first.system.active, first.system.chunks, first.peak) == (7, 2, 4, 312e12)
    themis = read_system(save(tmp_path, "s.txt", text + "\ninter-dimension-scheduling: themis\n"))
    assert themis.system.order == "themis"
    with pytest.warns(AstraWarning, match="no longer read"):
        ignored = read_system(save(tmp_path, "s.json", V2_SYSTEM | {"inter-dimension-scheduling": "themis"}))
    assert ignored == first


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("endpoint-delay", 0, "aborts"),
        ("endpoint-delay", 1.5, "whole"),
        ("preferred-dataset-splits", 0, "between 1"),
        ("preferred-dataset-splits", 10**12, "between 1"),
        ("active-chunks-per-dimension", -1, "between 1"),
        ("all-reduce-implementation", ["rang"], "did you mean 'ring'"),
        ("all-reduce-implementation", 5, "list"),
        ("all-reduce-implementation", [["ring"]], "not an algorithm"),
        ("all-reduce-implementation", ["ring", "oneRing"], "alone"),
        ("all-reduce-implementation-custom", ["x"], "not reproduced"),
        ("per-node-custom-implementation", {}, "not reproduced"),
        ("model-shared-bus", 1, "not reproduced"),
        ("replay-only", 1, "not reproduced"),
        ("collective-optimization", "x", "known"),
        ("scheduling-policy", "RANDOM", "known"),
        ("local-mem-bw", 0, "between"),
        ("local-mem-bw", "fast", "number"),
        ("local-mem-bw", 10**400, "number"),
        ("peak-perf", [1], "number"),
        ("roofline-enabled", 2, "between 0 and 1"),
    ],
)
def test_bad_system_files_say_what_is_wrong(tmp_path: Path, key: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_system(save(tmp_path, "s.json", V2_SYSTEM | {key: value}))


def test_the_roofline_needs_its_numbers_and_unknown_keys_are_warned_of(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs peak-perf"):
        read_system(save(tmp_path, "s.json", {"roofline-enabled": 1}))
    with pytest.warns(AstraWarning, match="did you mean 'peak-perf'"):
        read_system(save(tmp_path, "s.json", {"peak_perf": 1}))
    with pytest.raises(InputError, match="queues"):
        read_system(save(tmp_path, "s.json", {}), queues=0)


def test_memory_files(tmp_path: Path) -> None:
    pool = {"memory-type": "MEMORY_POOL", "remote-mem-latency": 700, "remote-mem-bw": 100}
    assert read_memory(save(tmp_path, "m.json", pool)).access(1 << 20) == 11185
    assert read_memory(save(tmp_path, "m.json", {"memory-type": "NO_MEMORY_EXPANSION"})).kind == "NO_MEMORY_EXPANSION"
    node = pool | {"memory-type": "PER_NODE_MEMORY_EXPANSION", "num-nodes": 2, "num-npus-per-node": 2}
    with pytest.warns(AstraWarning, match="aborts in ASTRA-sim"):
        assert read_memory(save(tmp_path, "m.json", node)).server(3) == 1
    for bad in (
        {"memory-type": "POOL"},
        {"memory-type": ["x"]},
        {},
        pool | {"remote-mem-bw": 0},
        {**node, "num-nodes": None},
    ):
        with pytest.raises(InputError, match=r"m\.json"):
            read_memory(save(tmp_path, "m.json", bad))


def test_unreadable_files_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none", tmp_path, tmp_path / "binary"):
        with pytest.raises(InputError):
            read_network(path)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (flat_yaml, json_object):
        with contextlib.suppress(InputError):
            assert isinstance(read(text, "x"), dict)
