"""DeepSeek's line in public configurations: latent attention, dense first layers, routed and shared experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradespace.errors import InputError
from tradespace.inputs.hf_config import Config, Family, Fields, Names, base_fields
from tradespace.inputs.hf_layers import MTP, NEXT, experts_of, layered, mlp_of, predicted
from tradespace.inputs.hf_moe import routing_groups
from tradespace.inputs.layers import CompressedAttention, Held, LatentAttention, Layer, Part

NAMES = Names()


def _base(config: Config) -> Fields:
    """Sizes that all state; head_dim follows from the parts of a head."""
    fields = base_fields(config, NAMES, tied=False) | {"head_dim": 1.0}
    return fields | ({"notes": (MTP,)} if config.optional("mtp", (NEXT,), 0.0) else {})


def _latent(config: Config, fields: Fields, **more: Any) -> LatentAttention:
    """Ranks and head parts; a query rank of null means one full projection."""
    if not config.states("q_lora_rank"):
        raise InputError(f"{config.where}: missing 'q_lora_rank' (null for one full query projection)")
    return LatentAttention(
        heads=fields["heads"],
        q_rank=config.optional("rank", ("q_lora_rank",), 0.0),
        kv_rank=config.size("rank", ("kv_lora_rank",)),
        nope=config.size("head_dim", ("qk_nope_head_dim",)),
        rope=config.size("head_dim", ("qk_rope_head_dim",)),
        v_head_dim=config.size("head_dim", ("v_head_dim",)),
        bias=config.switch("attention_bias", False),
        **more,
    )


def _sparse_after_dense(config: Config, fields: Fields, attention: Part) -> Fields:
    """Dense layers first, then MoE in every moe_layer_freq-th one."""
    ffn = config.size("ffn", ("moe_intermediate_size",))
    shared = ffn * config.optional("shared", ("n_shared_experts",), 0.0)
    experts = experts_of(config, experts=("n_routed_experts",), shared_ffn=shared, **routing_groups(config))
    first = config.size("zero", ("first_k_dense_replace",)) if config.table.get("first_k_dense_replace") else 0.0
    every = config.optional("every", ("moe_layer_freq",), 1.0) or 1.0
    places = ["moe" if i >= first and i % every == 0 else "dense" for i in range(int(fields["layers"]))]
    kinds = {"moe": Layer(name="moe", parts=(attention, experts))}
    if "dense" in places:
        fields["ffn"] = config.size("ffn", NAMES.ffn)
        kinds["dense"] = Layer(name="dense", parts=(attention, mlp_of(fields)))
    return layered(fields, places, kinds) | predicted(config, kinds["moe"])


def deepseek_v2(config: Config) -> Fields:
    """DeepSeek-V2, V2-Lite, V3, R1, Kimi K2 and others built on the same classes."""
    fields = _base(config)
    return _sparse_after_dense(config, fields, _latent(config, fields))


def deepseek_v32(config: Config) -> Fields:
    """DeepSeek-V3.2 and GLM-5: an indexer picks the keys that each query attends to."""
    fields = _base(config)
    indexer: Fields = {
        "index_heads": config.size("heads", ("index_n_heads",)),
        "index_dim": config.size("head_dim", ("index_head_dim",)),
        "index_top_k": config.size("top_k", ("index_topk",)),
    }
    return _sparse_after_dense(config, fields, _latent(config, fields, **indexer))


WORDS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}


def deepseek_v4(config: Config) -> Fields:
    """DeepSeek-V4: compressed attention, hyper-connected residual streams, experts in every layer.

    The list of rates may hold one entry for the predicted layer behind the last.
    """
    fields = _base(config)
    layers = int(fields["layers"])
    rates = config.table.get("compress_ratios")
    if not isinstance(rates, list):
        words = config.entries("layer_types", fields["layers"], tuple(WORDS))
        if words is None:
            raise InputError(f"{config.where}: missing 'compress_ratios' (the compression of keys in every layer)")
        rates = [WORDS[word] for word in words]
    elif len(rates) < layers or not all(rate in WORDS.values() for rate in rates):
        raise InputError(f"{config.where}: compress_ratios must state 0, 4 or 128 for each of the {layers} layers")
    ffn = config.size("ffn", ("moe_intermediate_size",))
    shared = ffn * config.optional("shared", ("n_shared_experts",), 1.0)
    experts = experts_of(config, experts=("n_routed_experts",), shared_ffn=shared)
    streams = config.size("streams", ("hc_mult",))
    kinds = {
        str(rate): Layer(name=f"rate{rate}", parts=(_compressed(config, fields, rate), experts), streams=streams)
        for rate in set(rates)
    }
    collapse = streams * streams * fields["hidden"] + streams + 1.0
    back = (Held(name="collapse", parameters=collapse),)
    return layered(fields, [str(rate) for rate in rates[:layers]], kinds) | {
        "head_dim": config.size("head_dim", ("head_dim",)),
        "kv_heads": 1.0,
        "back": back,
    }


def _compressed(config: Config, fields: Fields, rate: int) -> CompressedAttention:
    """Attention of a layer: rate 4 in two overlapping series with an indexer, rate 128 in one without."""
    indexer: Fields = {
        "index_heads": config.size("heads", ("index_n_heads",)),
        "index_dim": config.size("head_dim", ("index_head_dim",)),
        "index_top_k": config.size("top_k", ("index_topk",)),
    }
    return CompressedAttention(
        heads=fields["heads"],
        head_dim=config.size("head_dim", ("head_dim",)),
        q_rank=config.size("rank", ("q_lora_rank",)),
        out_groups=config.size("groups", ("o_groups",)),
        out_rank=config.size("rank", ("o_lora_rank",)),
        window=config.size("window", ("sliding_window",)),
        rate=float(rate),
        **({"series": 2.0, **indexer} if rate == 4 else {}),
    )


LATENT: Mapping[str, Family] = {
    "deepseek_v2": deepseek_v2,
    "deepseek_v3": deepseek_v2,
    "deepseek_v32": deepseek_v32,
    "deepseek_v4": deepseek_v4,
    "glm_moe_dsa": deepseek_v32,
    "kimi_k2": deepseek_v2,
}
