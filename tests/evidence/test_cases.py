"""Published facts on parameters, memory and out-of-memory verdicts: each row is tested here or listed with a reason."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tradespace.cost.memory import states
from tradespace.inputs import load
from tradespace.inputs.files import CATALOG
from tradespace.inputs.hf import from_config
from tradespace.inputs.layers import Attention
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.predict import predict
from tradespace.step import Step
from tradespace.workload.count import parameters
from tradespace.workload.families import blocks_of
from tradespace.workload.local import padded_vocab

DATA = Path(__file__).parents[1] / "data"
ROWS = {row["id"]: row for row in csv.DictReader((DATA / "cases.csv").open(encoding="utf-8"))}
PUBLIC = {m["name"]: m["config"] for m in json.loads((DATA / "hf_configs.json").read_text())["models"]}
LISTED = tomllib.loads((CATALOG / "published" / "cases.toml").read_text(encoding="utf-8"))["differs"]
GIB = 2.0**30
STATES = ("weights", "gradients", "optimizer", "master")


def config_of(text: str) -> dict[str, Any] | None:
    """The configuration that a row gives as JSON or names in the public set."""
    if text.startswith("{"):
        return dict(json.loads(text))
    named = re.match(r"HF config.json of (\S+) \(fields", text)
    return PUBLIC[named[1]] if named else None


COUNTED = [key for key, row in ROWS.items() if row["kind"] == "params" and config_of(row["input"]) is not None]


@pytest.mark.parametrize("key", COUNTED)
def test_exact_totals(key: str) -> None:
    """Totals and active parameters as the row states them, to the last one."""
    found = parameters(from_config(config_of(ROWS[key]["input"]) or {}, key))
    expected = ROWS[key]["expected"]
    total = re.search(r"total = ([\d,]+) exactly", expected)
    active = re.search(r"active per token ([\d,]+) incl", expected)
    assert total is not None
    assert int(float(found.total)) == int(total[1].replace(",", ""))
    assert active is None or int(float(found.active)) == int(active[1].replace(",", ""))


TOTALS = {
    "PAR032": ("llama-nemotron-super-49b", 49_867_145_216),
    "PAR033": ("nemotron-3-super-120b-a12b", 120_668_687_360),
    "PAR068": ("llama-2-70b", 68_976_648_192),
    "PAR070": ("mixtral-8x7b", 46_702_792_704),
    "PAR079": ("qwen3.5-122b-a10b", 122_111_526_912),
}


@pytest.mark.parametrize("key", TOTALS)
def test_totals_of_catalog_models(key: str) -> None:
    name, total = TOTALS[key]
    assert f"{total:,}" in ROWS[key]["expected"]
    assert parameters(load.model(name)).total == total


def test_active_of_the_latent_mixture() -> None:
    """PAR033: experts of Nemotron 3 Super work in 1,024 of 4,096 dimensions."""
    assert parameters(load.model("nemotron-3-super-120b-a12b")).active == 12_770_216_960


def test_qwen_72b_has_three_matrices() -> None:
    """PAR069: a tool printed 56.19B."""
    table = {"model_type": "qwen2", "hidden_size": 8192, "intermediate_size": 24576, "num_hidden_layers": 80}
    table |= {"num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 152064}
    assert parameters(from_config(table, "qwen")).total == 72_287_920_128


PADDED = [("PAR072", 250880.0, 8.0, 250880), ("PAR072", 250680.0, 8.0, 250880)]
PADDED += [("PAR073", 50257.0, tp, rows) for tp, rows in ((1.0, 50304), (2.0, 50432), (4.0, 50688), (8.0, 51200))]
PADDED += [("PAR073", 131073.0, 4.0, 131584), ("PAR073", 131073.0, 1.0, 131200)]


@pytest.mark.parametrize(("key", "vocab", "tensor", "rows"), PADDED)
def test_padded_vocabulary(strategy, key: str, vocab: float, tensor: float, rows: int) -> None:
    """Padded to a multiple of 128 x tensor; each of the ranks holds its share."""
    assert key in ROWS
    model = replace(load.model("gpt2-xl"), vocab=vocab)
    chosen = strategy(profile=load.profile("megatron-core"), tensor=tensor)
    assert padded_vocab(model, chosen) == rows
    logits = next(op for op in blocks_of(model, chosen)["head"].operators if op.name == "logits")
    assert logits.forward.shape.n == rows / tensor


def test_a_padded_vocabulary_is_split_as_it_is(strategy) -> None:
    """PAR075: 151,936 rows over 2 ranks are 75,968 each; padding twice would make 303,872."""
    model = load.model("qwen3-0.6b")
    chosen = strategy(profile=replace(load.profile("megatron-core"), vocab_multiple=64.0), tensor=2.0)
    assert padded_vocab(model, chosen) == 151_936
    logits = next(op for op in blocks_of(model, chosen)["head"].operators if op.name == "logits")
    assert logits.forward.shape.n == 75_968


HEADS = [("mistral-small-24b", 128), ("gpt-oss-20b", 64)]


@pytest.mark.parametrize(("name", "width"), HEADS)
def test_head_width_is_read(name: str, width: int) -> None:
    """PAR076: head_dim is not hidden / heads."""
    model = load.model(name)
    assert float(model.head_dim) == width != float(model.hidden) / float(model.heads)


def test_only_full_attention_layers_hold_keys_and_values() -> None:
    """PAR077: 40 layers, 10 of them attention with 2 key/value heads of 256: 20,480 bytes per token in 16 bits."""
    text = config_of("HF config.json of Qwen/Qwen3.5-122B-A10B (fields") or {}
    inner = {**text.get("text_config", text), "num_hidden_layers": 40, "num_key_value_heads": 2, "head_dim": 256}
    inner.pop("layer_types", None)
    model = from_config({"model_type": "qwen3_5_moe", "text_config": inner}, "hybrid")
    held = 0.0
    for place in model.pattern:
        for part in model.kinds[int(place)].parts:
            held += 2 * float(part.kv_heads) * float(part.head_dim) * 2 if isinstance(part, Attention) else 0.0
    assert held == 20_480


def run(model: Model, cluster: str, devices: float, text: str, profile: str, **changes: Any) -> Step:
    """One prediction; `changes` are fields of the profile."""
    loaded = load.cluster(cluster, devices=devices)
    chosen: Strategy = load.strategy(text, cluster=loaded, profile=profile)
    return predict(model, loaded, replace(chosen, profile=replace(chosen.profile, **changes)))


def held(step: Step) -> float:
    """Bytes of the model states on the stage with most of them."""
    return max(sum(float(stage[part]) for part in STATES) for stage in step.stages.values())


GPT = Model(
    name="gpt3_7b of Megatron-LM's functional tests",
    layers=32.0,
    hidden=4096.0,
    heads=32.0,
    kv_heads=8.0,
    head_dim=128.0,
    ffn=16384.0,
    vocab=131073.0,
    seq=8192.0,
    gated=0.0,
    qkv_bias=1.0,
    out_bias=1.0,
    mlp_bias=1.0,
    norm_vectors=2.0,
)
MEGATRON = {
    "MEM001": ("dgx-a100", "tp=4,sp=0,micro_batch=2,global_batch=8", 20_634_103_808, 58_188_115_968, 0.04),
    "MEM002": ("dgx-h100", "tp=4,sp=0,micro_batch=2,global_batch=8", 20_663_519_232, 57_143_791_616, 0.04),
    "MEM004": ("dgx-a100", "pp=4,vp=8,micro_batch=1,global_batch=8", 24_510_808_064, 60_489_064_448, 0.07),
    "MEM005": ("dgx-h100", "pp=4,vp=8,micro_batch=1,global_batch=8", 24_808_996_864, 60_720_852_992, 0.07),
}


@pytest.mark.parametrize("key", MEGATRON)
def test_megatron_functional_tests(key: str) -> None:
    """Allocated between steps and at the peak. Hidden dropout is Megatron-LM's default: a mask of one byte per value
    after attention and MLP; without the masks all four peaks come out 4 to 10 % low."""
    cluster, text, between, peak, tolerance = MEGATRON[key]
    step = run(GPT, cluster, 8, text, "megatron-core", dropout=1.0)
    assert held(step) == pytest.approx(between, rel=tolerance)
    assert float(step.memory_total) == pytest.approx(peak, rel=0.03)


def test_15b_on_tensor_parallel_devices() -> None:
    """MEM007: the device count is not in the row; 13.27 GB between steps are those of 16 data-parallel ranks."""
    model = replace(GPT, hidden=6144.0, heads=48.0, ffn=24576.0, vocab=256000.0, seq=4096.0)
    model = replace(model, qkv_bias=0.0, out_bias=0.0, mlp_bias=0.0)
    step = run(model, "dgx-h100", 128, "tp=8,micro_batch=4,global_batch=384", "megatron-core")
    assert held(step) == pytest.approx(13_269_043_200, rel=0.01)
    assert float(step.memory_total) == pytest.approx(28_160_194_560, rel=0.01)


def test_mixtral_with_virtual_stages() -> None:
    """MEM010: 64 devices by its 19.74 GB between steps (expert states over two ranks)."""
    text = "tp=2,etp=1,pp=4,vp=8,ep=8,micro_batch=1,global_batch=256"
    step = run(load.model("mixtral-8x7b", 4096), "dgx-h100", 64, text, "megatron-core")
    assert held(step) == pytest.approx(19_743_387_648, rel=0.06)
    assert float(step.memory_total) == pytest.approx(35_505_844_224, rel=0.04)


@pytest.mark.parametrize(("key", "seq", "context"), [("MEM019", 32768, 1), ("MEM021", 131072, 4)])
def test_torchtitan_full_recomputation(key: str, seq: int, context: int) -> None:
    """Peak reserved 83.9 and 84.0 GiB: as many tokens per rank, so as many bytes."""
    text = f"cp={context},zero=3,micro_batch=1,global_batch={8 // context},recompute=full,precision=fp8"
    step = run(load.model("llama-3.1-8b", seq), "dgx-h100", 8, text, "torchtitan")
    assert float(step.reserved) / GIB == pytest.approx({"MEM019": 83.9, "MEM021": 84.0}[key], rel=0.10)


def cut(name: str, layers: float, **changes: float) -> Model:
    """A catalog model with fewer layers."""
    return replace(load.model(name, 4096), layers=layers, **changes)


SIMUMAX = {
    "MEM027": (cut("llama-3.1-70b", 12.0), "pp=2,global_batch=32", 66.55),
    "MEM035": (cut("llama-3.1-405b", 4.0, kv_heads=16.0), "pp=2,global_batch=32", 87.08),
    "MEM037": (cut("llama-3.1-405b", 4.0, kv_heads=16.0), "tp=8,global_batch=8", 38.57),
    "MEM038": (cut("llama-3.1-70b", 12.0, seq=32768.0), "tp=2,cp=4,global_batch=4", 68.43),
    "MEM039": (cut("llama-3.1-70b", 12.0, seq=131072.0), "cp=8,global_batch=4", 147.99),
}


@pytest.mark.parametrize("key", SIMUMAX)
def test_few_layer_proxies_on_b200(key: str) -> None:
    """Peak allocated GiB, Megatron-LM with Transformer Engine (MEM033 and MEM034: tests/cost/test_memory.py)."""
    model, text, gib = SIMUMAX[key]
    step = run(model, "dgx-b200", 8, f"{text},micro_batch=1", "megatron-plain")
    assert float(step.memory_total) / GIB == pytest.approx(gib, rel=0.02)


def test_savers_of_one_device() -> None:
    """MEM044: chunked cross-entropy saves 8.1 GiB of Llama 3.2 3B's step, checkpointing 18.0 GiB more."""
    model = cut("llama-3.1-8b", 28.0, hidden=3072.0, heads=24.0, ffn=8192.0, tied=1.0)
    peaks = []
    for more in ("fused_loss=0", "fused_loss=1", "fused_loss=1,recompute=full"):
        step = run(model, "dgx-a100", 1, f"micro_batch=2,global_batch=2,zero=0,{more}", "torchtitan")
        peaks.append(float(step.memory_total))
    assert peaks[0] > peaks[1] > peaks[2]


def test_states_per_parameter(strategy) -> None:
    """MEM052: 4.1055e9 parameters per shard in 12 bytes; MEM065: 6.7B in 16 bytes (MEM049: test_memory.py)."""
    core = load.profile("megatron-core")

    def each(precision: str, zero: float, shard: float) -> float:
        chosen = strategy(profile=core, precision=load.precision(precision), zero=zero)
        found = states(chosen, shard)
        return float(found.weights + found.gradients + found.optimizer + found.master)

    assert each("bf16", 1.0, 2.0) * 4.1055e9 / 2**20 == pytest.approx(46_983, rel=1e-4)
    assert each("fp16", 0.0, 1.0) * 6.7e9 == pytest.approx(107e9, rel=2e-3)


def test_logits_in_fp32(strategy) -> None:
    """MEM057: 11.6k tokens, 248,320 rows: 11.52e9 bytes without vocabulary parallelism."""
    model = replace(load.model("llama-3.1-8b"), vocab=248320.0, seq=11600.0)
    chosen = strategy(profile=load.profile("torchtitan"))
    logits = next(op for op in blocks_of(model, chosen)["head"].operators if op.name == "logits")
    assert float(logits.forward.shape.out) * 4 == pytest.approx(11.52e9, rel=1e-3)


def test_deepseek_v3_saves_what_its_profile_shows(strategy) -> None:
    """MEM058: 0.508 GiB per latent attention and 0.598 GiB per expert block with fp8 inputs of GEMMs; 17 microbatches
    in flight of 4 layers take 75.2 GiB. Ours adds what the thread leaves out: the residual's norms, the router's
    scores, softmax statistics and the context."""
    chosen = strategy(profile=load.profile("megatron-core"), precision=load.precision("fp8"))
    block = blocks_of(load.model("deepseek-v3", 4096), chosen)["moe"]
    left_out = ("norm1", "norm2", "router", "attention", "out")
    counted = sum(float(op.saved) for op in block.operators if op.name not in left_out)
    assert 17 * 4 * counted / GIB == pytest.approx(75.2, rel=0.01)


def test_context_ranks_or_half_the_microbatch() -> None:
    """MEM059: the same tokens per rank, the same activations; parameters unchanged."""
    model = load.model("llama-3.1-8b", 8192)
    split = run(model, "dgx-h100", 2, "cp=2,micro_batch=2,global_batch=2,zero=0", "megatron-core")
    small = run(model, "dgx-h100", 1, "micro_batch=1,global_batch=1,zero=0", "megatron-core")
    whole = run(model, "dgx-h100", 1, "micro_batch=2,global_batch=2,zero=0", "megatron-core")
    assert float(split.memory_total) == pytest.approx(float(small.memory_total), rel=1e-12)
    assert float(whole.stages["first"]["activations"]) == 2.0 * float(small.stages["first"]["activations"])
    assert split.stages["first"]["weights"] == small.stages["first"]["weights"]


def test_the_heaviest_stage_counts() -> None:
    """MEM060: an uneven pipeline needs what its heaviest stage needs, not the average."""
    step = run(load.model("llama-3.1-8b", 4096), "dgx-h100", 5, "pp=5,global_batch=20", "megatron-core")
    totals = [sum(map(float, stage.values())) for stage in step.stages.values()]
    assert float(step.memory_total) == pytest.approx(max(totals), rel=1e-12)
    assert len(set(totals)) == 3


def test_unfused_attention_dominates() -> None:
    """MEM013: without a fused kernel score matrices grow with the square of the sequence, with latent attention too."""
    model = load.model("deepseek-v2-lite", 4096)
    fused, plain = (run(model, "dgx-h100", 8, f"ep=8,flash={on},global_batch=8", "megatron-core") for on in (1, 0))
    more = float(plain.memory_total) - float(fused.memory_total)
    assert more == pytest.approx(27 * 16 * 4096**2 * 2 - 27 * 16 * 4096 * 8, rel=1e-3)


def test_borderline_runs_are_at_risk() -> None:
    """OOM002: of the runs with 5 virtual stages 30 to 60 % ran out of memory, with 10 all passed."""
    text = "tp=4,pp=4,vp={},micro_batch=1,global_batch=32,precision=fp8"
    model = load.model("llama-3.1-70b", 4096)
    verdicts = [run(model, "dgx-h100", 32, text.format(vp), "megatron-core").to_dict()["verdict"] for vp in (5, 10)]
    assert verdicts == ["at risk", "fits"]


@pytest.mark.parametrize(("devices", "seq"), [(8, 20480), (16, 32768)])
def test_long_sequences_run_out_of_memory(devices: int, seq: int) -> None:
    """OOM008: Qwen2.5 32B, FSDP: 8 H100 at 20k tokens and 16 at 32k are too few."""
    model = replace(load.model("qwen2.5-72b", seq), layers=64.0, hidden=5120.0, heads=40.0, ffn=27648.0)
    text = f"zero=3,micro_batch=1,global_batch={devices},recompute=full"
    assert run(model, "dgx-h100", devices, text, "torchtitan").to_dict()["verdict"] == "does not fit"


@pytest.mark.parametrize(
    ("key", "name", "cluster", "devices", "text"),
    [
        ("OOM014", "qwen3-235b-a22b", "dgx-a100", 64, "tp=4,pp=2,ep=8,etp=1,global_batch=64,recompute=full"),
        ("OOM015", "qwen3-30b-a3b", "dgx-h100", 8, "ep=8,etp=1,global_batch=64"),
    ],
)
def test_expert_models_that_ran_out_of_memory(key: str, name: str, cluster: str, devices: int, text: str) -> None:
    assert key in ROWS
    step = run(load.model(name, 4096), cluster, devices, text, "megatron-core")
    assert step.to_dict()["verdict"] == "does not fit"


ELSEWHERE = {"MEM033", "MEM034", "MEM049", "MEM062", "PAR078"}
"""Tested in tests/cost/test_memory.py, tests/workload/test_families.py and tests/inputs/test_hf.py."""


def test_every_row_is_tested_or_listed() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    listed = {entry["id"] for entry in LISTED}
    assert all(entry["reason"] and entry["what"] and entry["source"] for entry in LISTED)
    assert listed <= set(ROWS)
    for key in ROWS:
        assert key in COUNTED or key in ELSEWHERE or key in listed or key in text, key
