"""Loading models, clusters and strategies: defaults of the notation, and one sentence per fault."""

import json
from dataclasses import fields

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from tradespace.errors import InputError
from tradespace.inputs import files, load
from tradespace.inputs.strategy import ORDER, Strategy

MODEL = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "ffn": 256, "vocab": 100}


def _refused(call, *words):
    with pytest.raises(InputError) as fault:
        call()
    text = str(fault.value)
    assert "\n" not in text
    for word in words:
        assert word in text, text


@pytest.fixture
def pod():
    return load.cluster("dgx-a100", 1024)


# ---- clusters and devices


def test_one_node_unless_devices_are_given():
    assert load.cluster("dgx-a100").devices == 8.0
    assert load.cluster("gb200-nvl72").devices == 72.0
    assert load.cluster("dgx-a100", 12).devices == 12.0
    _refused(lambda: load.cluster("dgx-a100", 0), "devices: 0 is below the least possible value, 1")
    _refused(lambda: load.cluster("dgx-a100", 1.5), "devices: 1.5 is not a whole number")


def test_unknown_keys_name_the_nearest():
    _refused(lambda: load.cluster("dgx-a10"), "no cluster 'dgx-a10' in the catalog", "did you mean 'dgx-a100'?")
    _refused(lambda: load.device("h100-sx"), "no device 'h100-sx' in the catalog", "did you mean 'h100-sxm'?")
    _refused(lambda: load.entries("device"), "no kind of entry 'device'", "'devices'")
    _refused(lambda: load.catalog_entry("devices", "../defaults"), "no device '../defaults'")


def _cluster(**changes):
    table = {
        "name": "mine",
        "device": "h100-sxm",
        "network": [
            {"name": "nvlink", "kind": "switch", "size": 8, "bandwidth": "450 GB/s"},
            {"name": "fabric", "kind": "switch", "size": 0, "bandwidth": "400 Gb/s", "curves": "infiniband"},
        ],
    }
    return {**table, **changes}


def test_a_cluster_file(tmp_path):
    path = tmp_path / "pod.toml"
    path.write_text(tomli_w.dumps(_cluster()))
    found = load.cluster(path, 64)
    assert (found.key, found.name, found.device.key, found.devices) == ("pod", "mine", "h100-sxm", 64.0)
    assert found.network[1].bandwidth == 5e10
    assert found.network[1].curves["all_reduce"].fraction[0] == 0.95
    assert {curve.confidence for curve in found.network[0].curves.values()} == {"assumed"}
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(_cluster()))
    assert load.cluster(str(path)).network[0].name == "nvlink"


def test_a_device_table_gets_assumed_rates():
    table = {
        "key": "x",
        "peak": "1 PFLOP/s",
        "peak_fp8": "2 PFLOP/s",
        "on_chip": "50 MB",
        "memory": [{"name": "hbm", "capacity": "100 GB", "bandwidth": "4 TB/s"}],
        "gemm": {"fp8": {"fraction": 0.7, "source": "mine", "confidence": "measured"}},
    }
    found = load.device(table)
    assert set(found.gemm) == {"bf16", "fp8"}
    assert found.gemm["bf16"].confidence == "assumed"
    assert found.gemm["fp8"].source == "mine"
    assert found.attention


def test_an_empty_curve_table_means_the_ideal_rate():
    network = [{"name": "fabric", "kind": "switch", "size": 0, "bandwidth": "50 GB/s", "curves": {}}]
    assert load.cluster(_cluster(key="c", network=network)).network[0].curves == {}


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ([], "network needs at least one dim"),
        ([{"name": "a", "kind": "hypercube", "size": 8, "bandwidth": 1e9}], "unknown kind 'hypercube'"),
        ([{"name": "a", "kind": "switch", "size": 8, "bandwith": 1e9}], "did you mean 'bandwidth'?"),
        ([{"name": "a", "kind": "switch", "size": 8, "bandwidth": 1e9, "curves": "ib"}], "no curve 'ib'"),
        ([{"name": "a", "kind": "switch", "size": 8, "bandwidth": 1e9}] * 2, "the name 'a' is used twice"),
        (
            [
                {"name": "a", "kind": "switch", "size": 0, "bandwidth": 1e9},
                {"name": "b", "kind": "switch", "size": 0, "bandwidth": 1e9},
            ],
            "only the outermost dim may be 0",
        ),
        (
            [
                {
                    "name": "a",
                    "kind": "switch",
                    "size": 0,
                    "bandwidth": 1e9,
                    "curves": {"all_reduce": {"sizes": [4, 2], "latency": [0, 0], "fraction": [1, 1], "root": [0, 0]}},
                }
            ],
            "needs ascending sizes",
        ),
        ([3], "a table of fields is needed, not 3"),
    ],
)
def test_faults_of_a_network(network, words):
    _refused(lambda: load.cluster(_cluster(key="c", network=network)), words)


def test_known_wrong_figures_in_a_file_are_refused():
    network = [{"name": "nvlink", "kind": "switch", "size": 0, "bandwidth": "900 GB/s"}]
    _refused(
        lambda: load.cluster(_cluster(key="c", network=network)),
        "cluster.network.nvlink.bandwidth: 900 GB/s of the h100-sxm is the sum of both directions",
        "450 GB/s",
        "device.key=my-h100-sxm",
    )
    sparse = {**load.catalog_entry("devices", "h100-sxm"), "peak": "1979 TFLOP/s"}
    _refused(lambda: load.cluster(_cluster(key="c", device=sparse)), "2:4 sparsity", "989.4 TFLOP/s")
    assert load.cluster(_cluster(key="c", device={**sparse, "key": "mine"})).device.peak == 1979e12
    assert load.cluster(_cluster(key="c", device="a100-sxm-80gb", network=network)).network[0].bandwidth == 9e11


# ---- files


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.toml", b"x = ", "not valid TOML"),
        ("a.json", b"{", "not valid JSON"),
        ("a.json", b"[" * 100_000, "not valid JSON: nested too deeply"),
        ("a.json", b"[1]", "an object with named fields is needed, not a list"),
        ("a.toml", b"x = '\xff'", "not UTF-8 text"),
        ("a.toml", b"#" * 10_000_001, "more than the 10 MB"),
        ("a.yaml/../a.txt", None, "a file named .toml or .json is needed"),
    ],
)
def test_faults_of_a_file(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    for read in (files.read, load.cluster, load.model):
        _refused(lambda read=read: read(path), words)


def test_a_directory_and_a_missing_file(tmp_path):
    (tmp_path / "d.toml").mkdir()
    _refused(lambda: load.model(str(tmp_path / "d.toml")), "is a directory")
    _refused(lambda: load.model("missing/model.toml"), "missing/model.toml: no such file")
    _refused(lambda: load.model("bad\0name.toml"), "null")


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_in_one_sentence(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "a.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.toml"):
        load.device(path)


# ---- models


def test_sequence_length_of_a_model(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(tomli_w.dumps(MODEL))
    assert (load.model(path).name, load.model(path).seq) == ("tiny", 4096.0)
    assert load.model({**MODEL, "name": "m", "max_seq": 2048}).seq == 2048.0
    assert load.model({**MODEL, "name": "m", "max_seq": 131072}).seq == 4096.0
    assert load.model({**MODEL, "name": "m", "seq": 1000}).seq == 1000.0
    assert load.model(path, 8192).seq == 8192.0
    _refused(lambda: load.model({**MODEL, "name": "m", "positions": 1024}), "position table has 1024 rows")
    _refused(lambda: load.model(path, -1), "seq: -1 is below")


# ---- strategies


def test_defaults_of_the_notation(pod):
    found = load.strategy("global_batch=512", cluster=pod)
    assert (found.tensor, found.pipeline, found.context, found.virtual_stages, found.zero) == (1, 1, 1, 1, 1)
    assert (found.micro_batch, found.recompute, found.flash, found.shard, found.cuda_graphs) == (1, 0, 1, 0, 0)
    assert (found.schedule, found.order, found.overlap.tensor) == ("1f1b", ORDER, 1.0)
    assert (found.profile.name, found.precision.name, found.optimizer.name) == ("megatron-core", "bf16", "adam")
    assert found.sequence_parallel == 0.0
    assert load.strategy("tp=2,global_batch=512", cluster=pod).sequence_parallel == 1.0
    assert load.strategy("tp=2,sp=0,global_batch=512", cluster=pod).sequence_parallel == 0.0


def test_short_and_long_names_files_and_tables_agree(pod, tmp_path):
    table = {"tensor": 8, "pipeline": 16, "virtual_stages": 7, "global_batch": 512, "recompute": "selective"}
    path = tmp_path / "s.toml"
    path.write_text(tomli_w.dumps(table))
    for source in ("tp=8, pp=16,vp=7,global_batch=512,recompute=selective", table, path, str(path)):
        found = load.strategy(source, cluster=pod)
        assert (found.tensor, found.pipeline, found.virtual_stages) == (8.0, 16.0, 7.0)
        assert (found.global_batch, found.recompute) == (512.0, 1.0)


def test_comet_notation(pod):
    found = load.strategy("MP8_DP128", cluster=pod)
    assert (found.tensor, found.pipeline, found.global_batch) == (8.0, 1.0, 1024.0)
    assert load.strategy("mp8_dp128,global_batch=256,recompute=full", cluster=pod).global_batch == 256.0
    _refused(lambda: load.strategy("MP8_DP64", cluster=pod), "tp 8 x cp 1 x pp 1 x dp 64 = 512", "1024 devices")


def test_words_become_codes(pod):
    text = (
        "tp=2,global_batch=8,recompute=full,overlap=none,order=tp-dp-cp-ep-pp,precision=fp16,optimizer=sgd,shard=data"
    )
    found = load.strategy(text, cluster=pod)
    assert found.recompute == 2.0
    assert (found.overlap.tensor, found.overlap.pipeline) == (0.0, 0.0)
    assert found.order == ("tensor", "data", "context", "expert", "pipeline")
    assert (found.precision.name, found.optimizer.name, found.shard) == ("fp16", "sgd", 0.0)
    table = {"global_batch": 8, "overlap": {"tensor": 0}, "profile": "torchtitan", "offload": "none", "ep": 1}
    found = load.strategy(table, cluster=pod)
    assert (found.overlap.tensor, found.overlap.gradient, found.profile.name) == (0.0, 1.0, "torchtitan")


def test_the_profile_follows_the_device_unless_named(pod):
    assert load.strategy("global_batch=8", cluster=load.cluster("tpu-v4")).profile.name == "maxtext"
    assert load.strategy("global_batch=8", cluster=load.cluster("trn2")).profile.name == "megatron-core"
    assert load.strategy("global_batch=8", cluster=load.cluster("dgx-v100")).profile.name == "megatron-2021"
    assert load.strategy("global_batch=8", cluster=pod, profile="nanotron").profile.name == "nanotron"
    assert (
        load.strategy("global_batch=8,profile=deepspeed", cluster=pod, profile="nanotron").profile.name == "deepspeed"
    )


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)


def _built_or_refused(call):
    try:
        return call() is not None
    except InputError as fault:
        return bool(str(fault)) and "\n" not in str(fault).split("'")[0]


@given(st.sampled_from([*(item.name for item in fields(Strategy)), "data", "expert", "offload"]), _ANYTHING)
def test_any_value_of_any_strategy_key_is_built_or_refused(key, value):
    cluster = load.cluster("dgx-a100")
    assert _built_or_refused(lambda: load.strategy({"global_batch": 8, key: value}, cluster=cluster))


@given(st.sampled_from(["key", "name", "device", "network", "devices", "source"]), _ANYTHING)
def test_any_value_of_any_cluster_key_is_built_or_refused(key, value):
    assert _built_or_refused(lambda: load.cluster(_cluster(**{"key": "c", key: value})))


@given(st.sampled_from(["name", "kind", "size", "bandwidth", "latency", "curves", "in_network"]), _ANYTHING)
def test_any_value_of_any_dim_key_is_built_or_refused(key, value):
    dim = {"name": "a", "kind": "switch", "size": 0, "bandwidth": 1e9, key: value}
    assert _built_or_refused(lambda: load.cluster(_cluster(key="c", network=[dim])))


@given(st.sampled_from(["key", "peak", "memory", "gemm", "attention", "notes", "on_chip"]), _ANYTHING)
def test_any_value_of_any_device_key_is_built_or_refused(key, value):
    assert _built_or_refused(lambda: load.device({**load.catalog_entry("devices", "v100-sxm2-32gb"), key: value}))


@given(st.text(max_size=30))
def test_any_strategy_text_is_built_or_refused(text):
    cluster = load.cluster("dgx-a100")
    assert _built_or_refused(lambda: load.strategy(text, cluster=cluster))


def test_a_profile_may_be_a_file_inside_the_notation(pod, tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(tomli_w.dumps({"attention": ["fa2"], "host_f": "2 ms"}))
    found = load.strategy(f"global_batch=8,profile={path}", cluster=pod)
    assert (found.profile.name, found.profile.host_f) == ("own", 2e-3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tp=8", "global_batch is missing"),
        ("tp8,global_batch=8", "'tp8' is neither key=value"),
        ("tp=8,tp=4,global_batch=8", "'tp' is given twice"),
        ("tp=8,tensor=4,global_batch=8", "another name for tensor"),
        ("tenser=8,global_batch=8", "unknown key 'tenser'; did you mean 'tensor'?"),
        ("tp=0,global_batch=8", "strategy.tensor: '0' is below the least possible value, 1"),
        ("tp=1.5,global_batch=8", "strategy.tensor: '1.5' is not a whole number"),
        ("tp=x,global_batch=8", "strategy.tensor: 'x' is not a plain number"),
        ("tp=nan,global_batch=8", "strategy.tensor"),
        ("zero=4,global_batch=8", "strategy.zero: '4' is above"),
        ("offload=optimizer,global_batch=8", "only 'none' is modelled yet"),
        ("schedule=zb-v,global_batch=8", "'zb-v' is not modelled yet"),
        ("schedule=1f1c,global_batch=8", "unknown schedule '1f1c'; did you mean '1f1b'?"),
        ("recompute=ful,global_batch=8", "unknown value 'ful'; did you mean 'full'?"),
        ("overlap=some,global_batch=8", "strategy.overlap: unknown value 'some'"),
        ("order=tp-pp,global_batch=8", "must name each of tp, cp, ep, dp, pp once"),
        ("profile=megatron,global_batch=8", "no profile 'megatron' in the catalog; did you mean 'megatron-"),
        ("precision=fp8,global_batch=8", "multiplies in fp8, which a100-sxm-80gb does not have"),
        ("tp=8,dp=100,global_batch=8", "tp 8 x cp 1 x pp 1 x dp 100 = 800, but the cluster has 1024 devices"),
        ("", "global_batch is missing"),
    ],
)
def test_faults_of_a_strategy(pod, text, words):
    _refused(lambda: load.strategy(text, cluster=pod), words)


def test_fp8_is_fine_where_the_device_has_it():
    found = load.strategy("precision=fp8,global_batch=8", cluster=load.cluster("dgx-h100"))
    assert found.precision.gemm == "fp8"
