"""Dense decoders of LLaMA's kind in public configurations: each a small function to Model fields.

Switches and derived sizes take the defaults of the family's public class (Hugging Face transformers,
src/transformers/models/FAMILY/configuration_*.py and modeling_*.py): what a model built from the same file would have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradespace.inputs.hf_config import PARALLEL, Config, Family, Fields, Names, attention_bias, base_fields
from tradespace.inputs.hf_layers import FULL, SLIDING, every_layer, layer_types, windows

NAMES = Names()


def grouped(
    config: Config,
    *,
    tied: bool = False,
    kv_heads: float | None = None,
    head_dim: float | None = None,
    ffn: float | None = None,
    **switches: Any,
) -> Fields:
    """LLaMA's kind: RMSNorm, gated MLP, rotary positions, grouped keys and values; `ffn` where the MLP's width has
    another name or none.

    `kv_heads` and `head_dim` are what the class presets when the key is absent; null means heads and hidden / heads.
    """
    fields = base_fields(config, NAMES, tied)
    fields["ffn"] = config.size("ffn", NAMES.ffn) if ffn is None else ffn
    for field, key, preset in (("kv_heads", "num_key_value_heads", kv_heads), ("head_dim", "head_dim", head_dim)):
        default = fields[field] if preset is None or config.states(key) else preset
        fields[field] = config.optional(field, (key,), default)
    return fields | switches


def _upper_windows(config: Config, fields: Fields) -> Fields:
    """Qwen's windows: switched off unless stated, then in the layers from max_window_layers on."""
    if not config.switch("use_sliding_window", False):
        return fields
    full = config.optional("full", ("max_window_layers",), 28.0)
    default = [FULL if i < full else SLIDING for i in range(int(fields["layers"]))]
    return windows(config, fields, layer_types(config, fields["layers"], default, (SLIDING, FULL)), preset=4096.0)


def _alternating(config: Config, fields: Fields, pattern: tuple[str, ...], preset: float = 4096.0) -> Fields:
    """Windows in a repeated pattern of layers, or as layer_types says."""
    return windows(config, fields, layer_types(config, fields["layers"], pattern, (SLIDING, FULL)), preset=preset)


def llama(config: Config) -> Fields:
    """LLaMA 1 to 3, Granite and what else is published as `llama`."""
    return grouped(config, mlp_bias=config.switch("mlp_bias", False), **attention_bias(config))


def smollm3(config: Config) -> Fields:
    """SmolLM3: tied; every fourth layer without positions, which is not modelled apart."""
    fields = grouped(config, tied=True, kv_heads=4.0, mlp_bias=config.switch("mlp_bias", False))
    return fields | attention_bias(config)


def mistral(config: Config) -> Fields:
    """Mistral and Ministral: 8 key/value heads and a window unless stated."""
    fields = grouped(config, kv_heads=8.0)
    return windows(config, fields, every_layer(fields), preset=4096.0)


def qwen2(config: Config) -> Fields:
    """Qwen 1.5 to 2.5 and the text part of Qwen-VL: biases on queries, keys and values alone."""
    return _upper_windows(config, grouped(config, kv_heads=32.0, qkv_bias=1.0))


def qwen3(config: Config) -> Fields:
    """Qwen 3: norms on queries and keys per head, head_dim 128 unless stated."""
    fields = grouped(config, kv_heads=32.0, head_dim=128.0, qk_norm=1.0, **attention_bias(config))
    return _upper_windows(config, fields)


def phi3(config: Config) -> Fields:
    """Phi-3 and Phi-4: fused projections of LLaMA's sizes."""
    fields = grouped(config)
    return windows(config, fields, every_layer(fields))


def phi(config: Config) -> Fields:
    """Phi-1 and Phi-2: one LayerNorm for attention and MLP in parallel, biases everywhere, on the head too."""
    if config.switch("qk_layernorm", False):
        raise config.refuse("norms with biases on queries and keys (qk_layernorm) are")
    every: Fields = {"qkv_bias": 1.0, "out_bias": 1.0, "mlp_bias": 1.0, "head_bias": 1.0}
    return grouped(config, gated=0.0, norms=1.0, norm_vectors=2.0, notes=(PARALLEL,), **every)


def nemotron(config: Config) -> Fields:
    """Nemotron 3 and 4: LayerNorm with a shift, squared-ReLU MLP of two matrices."""
    plain: Fields = {"gated": 0.0, "norm_vectors": 2.0, "mlp_bias": config.switch("mlp_bias", False)}
    return grouped(config, **plain, **attention_bias(config))


def starcoder2(config: Config) -> Fields:
    """StarCoder 2: LayerNorm, plain MLP, biases everywhere under one switch, 2 key/value heads unless stated."""
    bias = config.switch("use_bias", True)
    fields = grouped(config, tied=True, kv_heads=2.0, gated=0.0, norm_vectors=2.0)
    fields |= {"qkv_bias": bias, "out_bias": bias, "mlp_bias": bias}
    return windows(config, fields, every_layer(fields))


def gemma(config: Config) -> Fields:
    """Gemma: tied, head_dim 256 unless stated."""
    return grouped(config, tied=True, kv_heads=16.0, head_dim=256.0, **attention_bias(config))


def gemma2(config: Config) -> Fields:
    """Gemma 2: norms before and after attention and MLP; every second layer has a window."""
    return _alternating(config, _gemma2(config), (SLIDING, FULL))


def _gemma2(config: Config) -> Fields:
    return grouped(config, tied=True, kv_heads=4.0, head_dim=256.0, norms=4.0, **attention_bias(config))


def gemma3(config: Config) -> Fields:
    """Gemma 3 (text): as Gemma 2, with norms on queries and keys; five of six layers have a window."""
    every = int(config.optional("every", ("sliding_window_pattern",), 6.0) or 1.0)
    return _alternating(config, _gemma2(config) | {"qk_norm": 1.0}, (*(SLIDING,) * (every - 1), FULL))


def olmo(config: Config) -> Fields:
    """OLMo: LayerNorm without parameters."""
    return grouped(config, norm_vectors=0.0, **attention_bias(config))


def olmo2(config: Config) -> Fields:
    """OLMo 2: norms after attention and MLP, and over all heads of queries and keys."""
    return grouped(config, qk_norm_full=1.0, **attention_bias(config))


def olmo3(config: Config) -> Fields:
    """OLMo 3: OLMo 2 with windows on three of four layers."""
    return _alternating(config, olmo2(config), (SLIDING, SLIDING, SLIDING, FULL))


def cohere(config: Config) -> Fields:
    """Command R: one LayerNorm without shift for attention and MLP in parallel; tied."""
    norms: Fields = {"norms": 1.0, "qk_norm_full": config.switch("use_qk_norm", False)}
    return grouped(config, tied=True, notes=(PARALLEL,), **norms, **attention_bias(config))


def cohere2(config: Config) -> Fields:
    """Command R7B and A: Command R with windows on three of four layers."""
    fields = grouped(config, tied=True, norms=1.0, notes=(PARALLEL,), **attention_bias(config))
    every = int(config.optional("every", ("sliding_window_pattern",), 4.0) or 1.0)
    return _alternating(config, fields, (*(SLIDING,) * (every - 1), FULL))


def glm(config: Config) -> Fields:
    """GLM-4 9B: biases on queries, keys and values, 2 key/value heads of width 128 unless stated."""
    return grouped(config, kv_heads=2.0, head_dim=128.0, qkv_bias=config.switch("attention_bias", True))


def glm4(config: Config) -> Fields:
    """GLM-4 (0414): GLM-4 9B with norms before and after attention and MLP."""
    return glm(config) | {"norms": 4.0}


def seed_oss(config: Config) -> Fields:
    """Seed-OSS: biases on queries, keys and values, and on the output projection under a switch of its own."""
    biases: Fields = {
        "qkv_bias": config.switch("attention_bias", True),
        "out_bias": config.switch("attention_out_bias", False),
        "mlp_bias": config.switch("mlp_bias", False),
    }
    return grouped(config, kv_heads=8.0, head_dim=128.0, **biases)


def stablelm(config: Config) -> Fields:
    """StableLM: LayerNorm with gated MLP; with `use_parallel_residual` one norm for both."""
    together = config.switch("use_parallel_residual", False)
    switches: Fields = {
        "qkv_bias": config.switch("use_qkv_bias", False),
        "qk_norm_full": config.switch("qk_layernorm", False),
    }
    fields = grouped(config, kv_heads=32.0, norm_vectors=2.0, norms=2.0 - together, **switches)
    return fields | {"head_dim": fields["hidden"] / fields["heads"], "notes": (PARALLEL,) if together else ()}


GROUPED: Mapping[str, Family] = {
    "cohere": cohere,
    "cohere2": cohere2,
    "gemma": gemma,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "glm": glm,
    "glm4": glm4,
    "granite": llama,
    "llama": llama,
    "ministral": mistral,
    "mistral": mistral,
    "nemotron": nemotron,
    "olmo": olmo,
    "olmo2": olmo2,
    "olmo3": olmo3,
    "phi": phi,
    "phi3": phi3,
    "qwen2": qwen2,
    "qwen2_5_vl": qwen2,
    "qwen2_5_vl_text": qwen2,
    "qwen2_vl": qwen2,
    "qwen2_vl_text": qwen2,
    "qwen3": qwen3,
    "qwen3_vl_text": qwen3,
    "seed_oss": seed_oss,
    "smollm3": smollm3,
    "stablelm": stablelm,
    "starcoder2": starcoder2,
}
