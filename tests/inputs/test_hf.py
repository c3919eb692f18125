"""Public configurations: exact counts and fields of the dense families, and one clear sentence per fault."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradespace.errors import InputError
from tradespace.inputs import load
from tradespace.inputs.hf import FAMILIES, NOT_YET, TEXT_ONLY, from_config
from tradespace.inputs.hf_config import PARALLEL as PARALLEL_NOTE
from tradespace.inputs.layers import Attention
from tradespace.inputs.predicted import with_predicted
from tradespace.workload.count import flops_per_token, parameters

ROOT = Path(__file__).parents[2]
PUBLIC = json.loads((ROOT / "tests" / "data" / "hf_configs.json").read_text())["models"]
BY_NAME = {entry["name"]: entry for entry in PUBLIC}
ALL = list(BY_NAME)
STEP = "stepfun-ai/Step-3.7-Flash"
LLAMA = BY_NAME["meta-llama/Meta-Llama-3.1-8B"]["config"]
SIZES = {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "vocab_size": 1000}


def config(name: str, **changes: object) -> dict[str, object]:
    return {**BY_NAME[name]["config"], **changes}


def small(model_type: str, **changes: object) -> dict[str, object]:
    """A small configuration in the standard spelling, with nothing but the sizes that every class needs."""
    return {"model_type": model_type, **SIZES, "intermediate_size": 1024, **changes}


def fault(table: Any) -> str:
    with pytest.raises(InputError) as caught:
        from_config(table, "config.json")
    message = str(caught.value)
    assert message.startswith(("config.json: ", "config.json."))
    assert "\n" not in message
    return message.removeprefix("config.json: ")


def test_every_public_configuration_is_read() -> None:
    assert len(PUBLIC) == 63
    assert all(entry["config"]["model_type"] in FAMILIES for entry in PUBLIC)


@pytest.mark.parametrize("name", ALL)
def test_exact_counts(name: str) -> None:
    """Parameters summed over the public class itself, built without memory (transformers 5.18)."""
    found, published = parameters(from_config(BY_NAME[name]["config"], name)), BY_NAME[name]["counts"]
    counts = {
        "total": found.total,
        "active_incl_input_embedding": found.active,
        "active_excl_input_embedding": found.active_excl_input_embedding,
    }
    stated = {key: published[key] for key in counts if published.get(key) is not None}
    assert stated
    assert {key: counts[key] for key in stated} == stated


def test_a_flat_step_file_has_the_preset_vocabulary_and_says_so() -> None:
    """The public class reads text_config alone: a flat file gets its preset 128,815 rows."""
    flat = from_config(BY_NAME[STEP]["config"], STEP)
    assert flat.vocab == 128815.0
    assert any("its preset of 128815 rows counts" in note for note in flat.notes)
    nested = from_config({"model_type": "step3p7", "text_config": BY_NAME[STEP]["config"]}, STEP)
    assert nested.vocab == 128896.0
    assert parameters(nested).total == parameters(flat).total + 2 * 81 * 4096


FIELDS = {
    "meta-llama/Meta-Llama-3.1-8B": {
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "ffn": 14336,
        "vocab": 128256,
        "gated": 1,
        "tied": 0,
        "rotary": 1,
        "norm_vectors": 1,
        "norms": 2,
        "max_seq": 131072,
        "qkv_bias": 0,
        "mlp_bias": 0,
    },
    "Qwen/Qwen3-0.6B": {"heads": 16, "head_dim": 128, "hidden": 1024, "qk_norm": 1, "tied": 1, "kv_heads": 8},
    "Qwen/Qwen2.5-72B": {"qkv_bias": 1, "out_bias": 0, "mlp_bias": 0, "kv_heads": 8, "tied": 0},
    "mistralai/Mistral-Small-24B-2501": {"head_dim": 128, "hidden": 5120, "heads": 32, "kv_heads": 8},
    "google/gemma-2b": {"kv_heads": 1, "head_dim": 256, "tied": 1, "gated": 1, "norms": 2},
    "google/gemma-2-27b": {"norms": 4, "qk_norm": 0, "head_dim": 128, "tied": 1},
    "google/gemma-3-12b(text)": {"norms": 4, "qk_norm": 1, "head_dim": 256, "tied": 1},
    "microsoft/phi-2 (parallel attn)": {"norms": 1, "norm_vectors": 2, "head_bias": 1, "gated": 0, "rotary": 1},
    "nvidia/Nemotron-4-340B": {"gated": 0, "norm_vectors": 2, "norms": 2, "head_dim": 192, "tied": 0, "mlp_bias": 0},
    "openai-community/gpt2": {"positions": 1024, "rotary": 0, "ffn": 3072, "tied": 1, "qkv_bias": 1, "max_seq": 1024},
    "facebook/opt-13b": {"positions": 2050, "max_seq": 2048, "ffn": 20480, "tied": 1, "gated": 0},
    "bigscience/bloom-176b": {"embedding_norm": 1, "ffn": 57344, "rotary": 0, "positions": 0, "tied": 1},
    "tiiuae/falcon-7b": {"kv_heads": 1, "norms": 1, "ffn": 18176, "tied": 1, "mlp_bias": 0, "rotary": 1},
    "tiiuae/falcon-40b": {"kv_heads": 8, "norms": 2, "ffn": 32768},
    "EleutherAI/gpt-neox-20b": {"norms": 2, "qkv_bias": 1, "tied": 0, "rotary": 1, "positions": 0},
    "allenai/OLMo-2-1124-7B": {"qk_norm_full": 1, "qk_norm": 0, "norms": 2, "norm_vectors": 1},
    "bigcode/starcoder2-15b": {"kv_heads": 4, "gated": 0, "qkv_bias": 1, "out_bias": 1, "mlp_bias": 1, "tied": 0},
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields(name: str) -> None:
    built = from_config(BY_NAME[name]["config"], name)
    assert {field: getattr(built, field) for field in FIELDS[name]} == FIELDS[name]


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        (small("llama"), {"kv_heads": 8, "head_dim": 64, "tied": 0, "max_seq": 0}),
        (small("llama", num_key_value_heads=None, head_dim=None), {"kv_heads": 8, "head_dim": 64}),
        (small("llama", attention_bias=True, mlp_bias=True), {"qkv_bias": 1, "out_bias": 1, "mlp_bias": 1}),
        (small("mistral", num_attention_heads=16), {"kv_heads": 8, "tied": 0}),
        (small("mistral", num_key_value_heads=None, num_attention_heads=16), {"kv_heads": 16}),
        (small("qwen3", num_key_value_heads=2), {"head_dim": 128, "tied": 0}),
        (small("gemma", num_key_value_heads=1), {"head_dim": 256, "tied": 1}),
        (small("gemma", num_attention_heads=16), {"kv_heads": 16}),
        (small("starcoder2"), {"kv_heads": 2, "tied": 1, "qkv_bias": 1}),
        (small("starcoder2", use_bias=False), {"qkv_bias": 0, "out_bias": 0, "mlp_bias": 0}),
        (small("smollm3"), {"kv_heads": 4, "tied": 1}),
        (small("glm4"), {"kv_heads": 2, "head_dim": 128, "norms": 4, "qkv_bias": 1, "out_bias": 0}),
        (small("glm"), {"kv_heads": 2, "head_dim": 128, "norms": 2, "qkv_bias": 1, "out_bias": 0}),
        (small("seed_oss", attention_out_bias=True), {"kv_heads": 8, "head_dim": 128, "qkv_bias": 1, "out_bias": 1}),
        (small("cohere"), {"norms": 1, "norm_vectors": 1, "tied": 1, "qk_norm_full": 0}),
        (small("cohere", use_qk_norm=True), {"qk_norm_full": 1}),
        (small("olmo"), {"norm_vectors": 0, "kv_heads": 8}),
        (small("stablelm", num_key_value_heads=8), {"norms": 2, "norm_vectors": 2, "qkv_bias": 0, "gated": 1}),
        (small("stablelm", num_key_value_heads=8, use_parallel_residual=True, use_qkv_bias=True), {"norms": 1}),
        (small("gpt_neox", attention_bias=False), {"qkv_bias": 0, "out_bias": 0, "mlp_bias": 1}),
        (small("falcon", parallel_attn=False, multi_query=False, alibi=True), {"norms": 2, "kv_heads": 8, "rotary": 0}),
        (small("falcon", new_decoder_architecture=True, num_ln_in_parallel_attn=1), {"norms": 1, "kv_heads": 8}),
        (small("falcon", ffn_hidden_size=999), {"ffn": 999}),
        (small("bloom", n_inner=7), {"ffn": 2048}),
        (small("opt", ffn_dim=99, max_position_embeddings=10, enable_bias=False), {"positions": 12, "mlp_bias": 0}),
        (small("gpt2", n_positions=64, n_inner=100), {"ffn": 100, "positions": 64}),
        (small("gpt_bigcode", n_positions=64), {"kv_heads": 1, "positions": 64, "ffn": 2048}),
        (small("gpt_bigcode", n_positions=64, multi_query=False), {"kv_heads": 8}),
        (small("gpt_neo", num_layers=4, num_heads=8, max_position_embeddings=64), {"qkv_bias": 0, "out_bias": 1}),
        (small("mpt", d_model=512), {"ffn": 2048, "norm_vectors": 1, "mlp_bias": 0, "rotary": 0, "tied": 1}),
        (small("gptj"), {"norms": 1, "head_bias": 1, "tied": 0, "qkv_bias": 0, "mlp_bias": 1, "positions": 0}),
    ],
)
def test_defaults_are_those_of_the_public_class(table: dict[str, object], fields: dict[str, float]) -> None:
    """Read off the transformers classes' own defaults."""
    built = from_config(table, "config.json")
    assert {field: getattr(built, field) for field in fields} == fields


HUB = {  # public sizes, and the totals of the weight files as recalled from the hub's pages (not read again)
    "mosaicml/mpt-7b": (
        {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432},
        6_649_286_656,
    ),
    "EleutherAI/gpt-neo-1.3B": (
        {
            "model_type": "gpt_neo",
            "hidden_size": 2048,
            "num_heads": 16,
            "num_layers": 24,
            "vocab_size": 50257,
            "max_position_embeddings": 2048,
        },
        1_315_575_808,
    ),
    "EleutherAI/gpt-j-6b": (
        {"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_layer": 28, "vocab_size": 50400},
        6_050_882_784,
    ),
    "bigcode/starcoder": (
        {
            "model_type": "gpt_bigcode",
            "n_embd": 6144,
            "n_head": 48,
            "n_inner": 24576,
            "n_layer": 40,
            "n_positions": 8192,
            "vocab_size": 49152,
        },
        15_517_456_384,
    ),
    "zai-org/glm-4-9b-chat-hf": (
        {
            "model_type": "glm",
            "hidden_size": 4096,
            "intermediate_size": 13696,
            "num_attention_heads": 32,
            "num_hidden_layers": 40,
            "vocab_size": 151552,
        },
        9_399_951_360,
    ),
    "CohereLabs/c4ai-command-r-v01": (
        {
            "model_type": "cohere",
            "hidden_size": 8192,
            "intermediate_size": 22528,
            "num_attention_heads": 64,
            "num_hidden_layers": 40,
            "vocab_size": 256000,
        },
        34_980_831_232,
    ),
    "stabilityai/stablelm-3b-4e1t": (
        {
            "model_type": "stablelm",
            "hidden_size": 2560,
            "intermediate_size": 6912,
            "num_attention_heads": 32,
            "num_hidden_layers": 32,
            "vocab_size": 50304,
        },
        2_795_443_200,
    ),
}


@pytest.mark.parametrize("name", HUB)
def test_families_beyond_the_public_set(name: str) -> None:
    table, published = HUB[name]
    assert parameters(from_config(table, name)).total == published


def test_prediction_layers_only_on_demand() -> None:
    """The hub stores 3,918,786,560 values in bf16 and 680,571,043,840 in fp8 of DeepSeek-V3 (and fp32 scales): the main
    model and one prediction layer with copies of embedding and head, 2 x 129,280 x 7,168."""
    plain = load.model("deepseek-v3")
    trained = with_predicted(replace(plain, mtp=1.0))
    stored = 3_918_786_560 + 680_571_043_840
    assert parameters(trained).total == stored - 2 * 129_280 * 7_168
    assert parameters(plain).total == 671_026_404_352
    assert repr(with_predicted(replace(trained, mtp=0.0))) == repr(plain)
    extra = parameters(trained).active_excl_input_embedding - parameters(plain).active_excl_input_embedding
    head = 129_280 * 7_168
    more = float(flops_per_token(trained)) - float(flops_per_token(plain))
    assert more == pytest.approx(6 * (extra + head) + 3 * 128 * (192 + 128) * 4096, rel=1e-12)
    with pytest.raises(InputError, match="the shape of its prediction layers is not known"):
        with_predicted(replace(load.model("llama-3.1-8b"), mtp=1.0))


@pytest.mark.parametrize(("name", "near"), [("dbrx", "mixtral"), ("granitemoe", "granite"), ("rwkv", "mamba")])
def test_the_nearest_family_is_of_the_same_kind(name: str, near: str) -> None:
    assert fault({"model_type": name}).endswith(f"the nearest family that is: '{near}'")


def test_phi_moe() -> None:
    """Microsoft's card of Phi-3.5-MoE: 42B parameters, 6.6B active; llama.cpp prints 41.87 B on loading it."""
    found = parameters(load.model("phi-3.5-moe"))
    assert round(float(found.total) / 1e9, 2) == 41.87
    assert round(float(found.active) / 1e9, 1) == 6.6


@pytest.mark.parametrize(
    ("name", "architecture", "part", "there"),
    [
        ("google-t5/t5-11b", "T5ForConditionalGeneration", "head", False),
        ("google/t5-v1_1-xxl", None, "head", False),
        ("google/t5-v1_1-xxl", "T5ForConditionalGeneration", "head", True),
        ("google/vit-base-patch16-224 (no head)", None, "pooler", True),
        ("google/vit-base-patch16-224 (no head)", None, "classifier", False),
        ("google/vit-base-patch16-224 (no head)", "ViTForImageClassification", "classifier", True),
        ("google-bert/bert-large-uncased (MLM)", None, "transform", True),
        ("google-bert/bert-large-uncased (MLM)", None, "pooler", False),
        ("google-bert/bert-large-uncased (MLM)", "BertForPreTraining", "pooler", True),
        ("meta-llama/Meta-Llama-3.1-8B", None, "head", True),
    ],
)
def test_what_stands_behind_the_last_layer(name: str, architecture: str | None, part: str, there: bool) -> None:
    """Without `architectures`: causal LM; T5 without a head of its own, ViT without classifier, BERT with MLM head."""
    table = {**BY_NAME[name]["config"]}
    table |= {} if architecture is None else {"architectures": [architecture]}
    assert (float(parameters(from_config(table, name)).parts.get(part, 0.0)) > 0.0) == there


@pytest.mark.parametrize("key", [*SIZES, "intermediate_size", "model_type"])
def test_a_missing_size_is_named(key: str) -> None:
    for absent in ({k: v for k, v in LLAMA.items() if k != key}, {**LLAMA, key: None}):
        assert fault(absent).startswith(f"missing '{key}'")


@pytest.mark.parametrize(
    ("name", "missing"),
    [("openai-community/gpt2", key) for key in ("n_embd", "n_layer", "n_head", "n_positions", "vocab_size")]
    + [("facebook/opt-13b", key) for key in ("ffn_dim", "max_position_embeddings", "hidden_size")]
    + [("bigscience/bloom-176b", key) for key in ("n_layer", "n_head", "hidden_size")],
)
def test_missing_sizes_in_the_familys_own_spelling(name: str, missing: str) -> None:
    assert fault({k: v for k, v in config(name).items() if k != missing}).startswith(f"missing '{missing}'")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("hidden_size", "hiden_size"), ("num_hidden_layers", "num_hiden_layers"), ("vocab_size", "vocabsize")],
)
def test_a_misspelt_size_is_pointed_out(right: str, wrong: str) -> None:
    table = {wrong if key == right else key: value for key, value in LLAMA.items()}
    assert fault(table) == f"missing '{right}' (sizes have no default); is '{wrong}' a misspelling of it?"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("hidden_size", "4096", "hidden_size must be a whole number, not text: '4096'"),
        ("hidden_size", True, "hidden_size must be a whole number, not True"),
        ("hidden_size", [4096], "hidden_size must be a whole number, not a list: [4096]"),
        ("hidden_size", {"a": 1}, "hidden_size must be a whole number, not a table: {'a': 1}"),
        ("num_hidden_layers", -32, "num_hidden_layers: -32 is below the least possible value, 1"),
        ("num_hidden_layers", 0, "num_hidden_layers: 0 is below the least possible value, 1"),
        ("num_hidden_layers", 31.5, "num_hidden_layers: 31.5 is not a whole number"),
        ("vocab_size", float("nan"), "vocab_size: nan is not a finite number"),
        ("vocab_size", float("inf"), "vocab_size: inf is not a finite number"),
        ("vocab_size", 1e30, "vocab_size: 1e+30 is above the largest possible value, 1e+09"),
        ("vocab_size", 10**400, "vocab_size: a whole number of 401 digits is too large"),
        ("attention_bias", "false", "attention_bias must be true or false, not text: 'false'"),
        ("tie_word_embeddings", 1, "tie_word_embeddings must be true or false, not 1"),
        ("num_key_value_heads", 5, "32 heads are not a multiple of 5 key/value heads (num_key_value_heads)"),
        ("num_key_value_heads", 64, "32 heads are not a multiple of 64 key/value heads (num_key_value_heads)"),
        ("num_attention_heads", 24, "4096 (width) is not a multiple of 24 heads"),
        ("model_type", 3, "model_type must be text such as 'llama', not int"),
        ("model_type", "lama", "unknown model_type 'lama'; did you mean 'llama'?"),
        ("model_type", "Qwen-2", "unknown model_type 'Qwen-2'; did you mean 'qwen2'?"),
        ("model_type", "x" * 1000, f"unknown model_type '{'x' * 60}'; known: bert, "),
        ("text_config", 3, "text_config must be a table of fields, not int"),
    ],
)
def test_wrong_values(key: str, value: object, words: str) -> None:
    assert fault({**LLAMA, key: value}).startswith(words)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([1], "a configuration is an object with named fields, not list"),
        (None, "a configuration is an object with named fields, not NoneType"),
        ({}, "missing 'model_type'"),
        ({"text_config": {"hidden_size": 3}}, "text_config: missing 'model_type'"),
        (config("openai-community/gpt2", hidden_size=1), "n_embd = 768 but hidden_size = 1, two names of one size"),
        (config("openai-community/gpt2", add_cross_attention=True), "cross-attention (add_cross_attention) is not"),
        (config("facebook/opt-13b", word_embed_proj_dim=512), "an embedding narrower than the model"),
        (config("facebook/opt-13b", do_layer_norm_before=False), "OPT with norms after each block"),
        (small("mpt", no_bias=False), "MPT with biases (no_bias = false) is not modelled yet"),
        (config("microsoft/phi-2 (parallel attn)", qk_layernorm=True), "norms with biases on queries and keys"),
    ],
)
def test_wrong_configurations(table: Any, words: str) -> None:
    assert fault(table).startswith(words)


def test_every_kind_that_is_not_modelled_yet_has_its_own_words() -> None:
    later = [name for names in NOT_YET.values() for name in names.split()]
    assert len(later) == len(set(later))
    assert not set(later) & set(FAMILIES)
    for kind, names in NOT_YET.items():
        for name in names.split():
            assert fault({"model_type": name}).startswith(f"model_type '{name}' has {kind}, which is not modelled yet")


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_key_order_and_unknown_keys_do_not_matter(name: str, data: st.DataObject) -> None:
    table = BY_NAME[name]["config"]
    unknown = data.draw(st.dictionaries(st.text(min_size=1).map("x_".__add__), st.integers() | st.text(), max_size=4))
    shuffled = dict(data.draw(st.permutations(list({**table, **unknown}.items()))))
    assert repr(from_config(shuffled, "a")) == repr(from_config(table, "a"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(ALL), data=st.data())
def test_any_value_gives_a_model_or_one_sentence(name: str, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(BY_NAME[name]["config"])))
    table = {**BY_NAME[name]["config"], key: data.draw(JSON)}
    try:
        assert parameters(from_config(table, "config.json")).total > 0
    except InputError:
        assert fault(table)


def test_text_part_of_a_multimodal_configuration() -> None:
    text = config("google/gemma-3-12b(text)")
    nested = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1152}}
    plain, built = from_config(text, "gemma"), from_config(nested, "gemma")
    assert TEXT_ONLY in built.notes
    assert TEXT_ONLY not in plain.notes
    assert repr(replace(built, notes=())) == repr(replace(plain, notes=()))
    assert from_config({**nested, "tie_word_embeddings": False}, "gemma").tied == 0.0
    del text["hidden_size"]
    assert fault(nested).startswith("text_config: missing 'hidden_size'")


def test_flat_multimodal_configuration_says_so_too() -> None:
    flat = config("Qwen/Qwen2.5-0.5B", model_type="qwen2_5_vl", vision_config={"depth": 32})
    assert TEXT_ONLY in from_config(flat, "config.json").notes


WINDOWS = [
    (config("google/gemma-2-27b", sliding_window=4096), 23, 4096),
    (config("google/gemma-3-12b(text)", sliding_window=1024), 40, 1024),
    (small("mistral"), 4, 4096),
    (small("mistral", sliding_window=None), 0, 0),
    (config("mistralai/Mistral-Small-24B-2501"), 0, 0),
    (config("Qwen/Qwen3-8B", sliding_window=4096), 0, 0),
    (config("Qwen/Qwen3-8B", sliding_window=4096, use_sliding_window=True, max_window_layers=30), 6, 4096),
    (small("gpt_neo", num_layers=4, num_heads=8, max_position_embeddings=2048), 2, 256),
    (config("openai/gpt-oss-120b"), 18, 128),
    (config("XiaomiMiMo/MiMo-V2-Flash"), 39, 128),
    (config(STEP), 33, 512),
]


@pytest.mark.parametrize(("table", "layers", "window"), WINDOWS)
def test_layers_with_a_window(table: dict[str, object], layers: int, window: int) -> None:
    built = from_config(table, "config.json")
    found = {
        i: part.window
        for i, kind in enumerate(built.kinds)
        for part in kind.parts
        if isinstance(part, Attention) and part.window
    }
    assert sum(float(i) in map(float, found) for i in built.pattern) == layers
    assert set(found.values()) == ({window} if window else set())


def test_what_is_not_timed_as_published_is_noted() -> None:
    assert from_config(config("tiiuae/falcon-7b"), "a").notes == (PARALLEL_NOTE,)
    assert from_config(config("EleutherAI/pythia-6.9b", use_parallel_residual=False), "a").notes == ()


@pytest.mark.parametrize(
    ("path", "where", "name"),
    [
        (None, "models/llama-3.1-8b/config.json", "llama-3.1-8b"),
        (None, "my-model.json", "my-model"),
        (None, "llama-3.1-8b", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b", "Llama-3.1-8B"),
        ("./out/checkpoint-500", "x.json", "checkpoint-500"),
        ("", "x.json", "x"),
    ],
)
def test_name_and_source(path: str | None, where: str, name: str) -> None:
    built = from_config({**LLAMA, "_name_or_path": path}, where)
    assert built.name == name
    hub = "config.json of meta-llama/Llama-3.1-8B on the Hugging Face hub"
    assert built.source == (hub if path == "meta-llama/Llama-3.1-8B" else where)


MODELS = load.entries("models")


@pytest.mark.parametrize("key", MODELS)
def test_catalog_models_have_a_source(key: str) -> None:
    built = load.model(key)
    assert built.source
    assert built.source != key
    assert built.confidence in {"measured", "datasheet", "fitted", "assumed"}
    assert 1.0 <= built.seq <= 4096.0


@pytest.mark.parametrize(
    ("key", "published"),
    [
        ("llama-3.1-8b", "meta-llama/Meta-Llama-3.1-8B"),
        ("llama-3.1-70b", "meta-llama/Meta-Llama-3.1-70B"),
        ("llama-3.1-405b", "meta-llama/Meta-Llama-3.1-405B"),
        ("llama-2-13b", "meta-llama/Llama-2-13b"),
        ("llama-2-70b", "meta-llama/Llama-2-70b"),
        ("mistral-small-24b", "mistralai/Mistral-Small-24B-2501"),
        ("qwen2.5-72b", "Qwen/Qwen2.5-72B"),
        ("qwen3-8b", "Qwen/Qwen3-8B"),
        ("qwen3-32b", "Qwen/Qwen3-32B"),
        ("nemotron-4-340b", "nvidia/Nemotron-4-340B"),
        ("phi-4", "microsoft/phi-4"),
        ("gpt2-xl", "openai-community/gpt2-xl"),
    ],
)
def test_catalog_models_are_the_public_ones(key: str, published: str) -> None:
    assert parameters(load.model(key)).total == BY_NAME[published]["counts"]["total"]


def test_llama_2_7b() -> None:
    """6,738,415,616 parameters: the hub's page of meta-llama/Llama-2-7b-hf (6.74B)."""
    assert parameters(load.model("llama-2-7b")).total == 6_738_415_616


SC21 = {  # Narayanan et al. 2021, table 1: billions of parameters, one decimal
    "gpt-1.7b": 1.7,
    "gpt-3.6b": 3.6,
    "gpt-7.5b": 7.5,
    "gpt-18b": 18.4,
    "gpt-39b": 39.1,
    "gpt-76b": 76.1,
    "gpt-145b": 145.6,
    "gpt-310b": 310.1,
    "gpt-530b": 529.6,
    "gpt-1t": 1008.0,
}


@pytest.mark.parametrize("key", SC21)
def test_megatron_models_have_the_published_parameters(key: str) -> None:
    assert round(float(parameters(load.model(key)).total) / 1e9, 1) == SC21[key]


@pytest.mark.parametrize("key", [*SC21, "gpt3-175b", "gpt-22b", "transformer-1t"])
def test_megatron_models_follow_the_published_formula(key: str) -> None:
    """Narayanan et al. 2021, equation 2: 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), without the final norm."""
    model = load.model(key)
    layers, hidden = int(model.layers), int(model.hidden)
    formula = 12 * layers * hidden**2 + 13 * layers * hidden + (51200 + 2048) * hidden
    assert parameters(model).total == formula + 2 * hidden


@pytest.mark.parametrize("key", ["llama-3.1-405b", "llama-3.1-8b"])
def test_examples_are_the_catalog_models(key: str) -> None:
    built = load.model(ROOT / "examples" / key / "config.json")
    assert repr(built) == repr(load.model(key))
