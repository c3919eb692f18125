"""Decoders with a mixture of experts in public configurations: each a small function to Model fields.

Sources: the public classes (Hugging Face transformers, src/transformers/models/FAMILY/); counts checked against the
classes built without memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from tradespace.errors import InputError
from tradespace.inputs.hf_config import Config, Family, Fields, attention_bias
from tradespace.inputs.hf_dense import grouped
from tradespace.inputs.hf_layers import (
    CHUNKED,
    FULL,
    MTP,
    NEXT,
    SLIDING,
    attention_of,
    experts_of,
    layer_types,
    layered,
    mlp_of,
    predicted,
)
from tradespace.inputs.hf_vision import gemma_vision, llama_vision, qwen_vision, step_vision
from tradespace.inputs.layers import Experts, Layer

LOCAL = ("num_local_experts",)
WIDTH = ("intermediate_size",)
STEP_VOCAB = 128815.0
"""Rows that Step-3.7's public class presets."""


def _uniform(fields: Fields, experts: Experts, **attention: float) -> Fields:
    """Every layer an MoE layer with one kind of attention."""
    layer = Layer(name="layer", parts=(attention_of(fields, **attention), experts))
    return layered(fields, ["layer"] * int(fields["layers"]), {"layer": layer})


def _sparse(config: Config, fields: Fields, experts: Experts) -> Fields:
    """Qwen's choice: MoE where (i + 1) is a multiple of decoder_sparse_step and i is not in mlp_only_layers."""
    step = config.optional("step", ("decoder_sparse_step",), 1.0)
    dense = config.table.get("mlp_only_layers") or []
    if not isinstance(dense, (list, tuple)):
        raise InputError(f"{config.where}: mlp_only_layers must be a list of layers")
    places = [
        "moe" if step and (i + 1) % step == 0 and i not in dense else "dense" for i in range(int(fields["layers"]))
    ]
    attention = attention_of(fields)
    kinds = {"moe": Layer(name="moe", parts=(attention, experts))}
    if "dense" in places:
        fields["ffn"] = config.size("ffn", WIDTH)
        kinds["dense"] = Layer(name="dense", parts=(attention, mlp_of(fields)))
    return layered(fields, places, kinds)


def mixtral(config: Config) -> Fields:
    """Mixtral: intermediate_size is that of one expert."""
    fields = grouped(config, kv_heads=8.0)
    return _uniform(fields, experts_of(config, experts=LOCAL, ffn=WIDTH))


def qwen3_moe(config: Config) -> Fields:
    """Qwen3 MoE: norms on queries and keys, no shared expert."""
    fields = grouped(config, kv_heads=4.0, ffn=0.0, qk_norm=1.0, **attention_bias(config))
    return _sparse(config, fields, experts_of(config))


def qwen3_vl_moe(config: Config) -> Fields:
    """Qwen3-VL MoE: the text part is Qwen3 MoE; its vision tower counts."""
    return qwen3_moe(config) | qwen_vision(config)


def qwen2_moe(config: Config) -> Fields:
    """Qwen1.5 and Qwen2 MoE: biases on queries, keys and values; one gated shared expert."""
    fields = grouped(config, kv_heads=16.0, ffn=0.0, qkv_bias=config.switch("qkv_bias", True))
    shared = config.size("shared", ("shared_expert_intermediate_size",))
    return _sparse(config, fields, experts_of(config, shared_ffn=shared, shared_gate=1.0))


def gpt_oss(config: Config) -> Fields:
    """gpt-oss: biases everywhere, sinks, every second layer with a window; expert biases belong to the experts."""
    bias = attention_bias(config, default=True)
    fields = grouped(config, kv_heads=8.0, head_dim=64.0, ffn=0.0, **bias)
    top_k = ("num_experts_per_tok", "experts_per_token")
    experts = experts_of(config, experts=LOCAL, top_k=top_k, ffn=WIDTH, bias=1.0, router_bias=1.0)
    places = layer_types(config, fields["layers"], (SLIDING, FULL), (SLIDING, FULL))
    window = config.optional("window", ("sliding_window",), 128.0)
    kinds = {
        SLIDING: Layer(name="window", parts=(attention_of(fields, sinks=1.0, window=window), experts)),
        FULL: Layer(name="full", parts=(attention_of(fields, sinks=1.0), experts)),
    }
    return layered(fields, places, kinds)


def minimax_m2(config: Config) -> Fields:
    """MiniMax-M2: norms over all heads of queries and keys; the routing bias is a buffer."""
    full = config.switch("use_qk_norm", True)
    fields = grouped(config, kv_heads=8.0, ffn=0.0, qk_norm_full=full)
    shared = config.optional("shared", ("shared_intermediate_size",), 0.0)
    return _uniform(fields, experts_of(config, experts=LOCAL, ffn=WIDTH, shared_ffn=shared))


def olmoe(config: Config) -> Fields:
    """OLMoE: norms over all heads of queries and keys; intermediate_size is that of one expert."""
    fields = grouped(config, ffn=0.0, qk_norm_full=1.0, **attention_bias(config))
    return _uniform(fields, experts_of(config, ffn=WIDTH))


def glm4_moe(config: Config) -> Fields:
    """GLM-4.5: first layers dense, one shared expert, biases on queries, keys and values where stated."""
    qkv = config.switch("attention_bias", False)
    fields = grouped(config, kv_heads=8.0, qkv_bias=qkv, qk_norm=config.switch("use_qk_norm", False))
    ffn = config.size("ffn", ("moe_intermediate_size",))
    shared = ffn * config.optional("shared", ("n_shared_experts",), 1.0)
    experts = experts_of(config, experts=("n_routed_experts",), shared_ffn=shared, **routing_groups(config))
    first = config.optional("first", ("first_k_dense_replace",), 1.0)
    kinds = {
        "dense": Layer(name="dense", parts=(attention_of(fields), mlp_of(fields))),
        "moe": Layer(name="moe", parts=(attention_of(fields), experts)),
    }
    if config.optional("mtp", (NEXT,), 0.0):
        fields["notes"] = (MTP,)
    places = ["dense" if i < first else "moe" for i in range(int(fields["layers"]))]
    return layered(fields, places, kinds) | predicted(config, kinds["moe"])


def routing_groups(config: Config) -> Fields:
    """Groups of experts (nodes) that a token's routing is limited to."""
    groups = config.optional("groups", ("n_group",), 1.0) or 1.0
    return {"groups": groups, "top_groups": config.optional("groups", ("topk_group",), groups) or groups}


def llama4(config: Config) -> Fields:
    """Llama 4: one expert per token and a shared one; MoE every n-th layer; chunked attention but every fourth layer.

    The dense layers' width is intermediate_size_mlp, intermediate_size is that of one expert.
    """
    fields = grouped(config, kv_heads=8.0, head_dim=128.0, ffn=0.0, **attention_bias(config))
    layers, ffn = int(fields["layers"]), config.size("ffn", WIDTH)
    step = config.optional("step", ("interleave_moe_layer_step",), 1.0) or 1.0
    moe = config.table.get("moe_layers")
    chosen = moe if isinstance(moe, list) else [i for i in range(layers) if (i + 1) % step == 0]
    experts = experts_of(config, experts=LOCAL, ffn=WIDTH, shared_ffn=ffn)
    if len(chosen) < layers:
        fields["ffn"] = config.size("ffn", ("intermediate_size_mlp",))
    default = (CHUNKED, CHUNKED, CHUNKED, FULL)
    types = layer_types(config, fields["layers"], default, (CHUNKED, FULL))
    chunk = config.optional("chunk", ("attention_chunk_size",), 8192.0)
    kinds = {
        f"{kind} {width}": Layer(
            name=f"{kind.partition('_')[0]}_{width}",
            parts=(attention_of(fields, chunk=chunk if kind == CHUNKED else 0.0), part),
        )
        for kind in (CHUNKED, FULL)
        for width, part in (("moe", experts), ("dense", mlp_of(fields)))
    }
    places = [f"{types[i]} {'moe' if i in chosen else 'dense'}" for i in range(layers)]
    return layered(fields, places, kinds) | llama_vision(config)


def mimo_v2_flash(config: Config) -> Fields:
    """MiMo-V2-Flash: window layers with heads and sinks of their own, values narrower than keys; MoE layer by layer."""
    fields = grouped(config)
    layers = fields["layers"]
    pattern = config.entries("hybrid_layer_pattern", layers, (0, 1))
    moe = config.entries("moe_layer_freq", layers, (0, 1))
    for name, found in (("hybrid_layer_pattern", pattern), ("moe_layer_freq", moe)):
        if found is None:
            raise InputError(f"{config.where}: missing '{name}' (a list of 0 and 1 per layer)")
    near = attention_of(
        fields,
        heads=config.size("heads", ("swa_num_attention_heads",)),
        kv_heads=config.size("kv_heads", ("swa_num_key_value_heads",)),
        head_dim=config.size("head_dim", ("swa_head_dim",)),
        v_head_dim=config.size("v_head_dim", ("swa_v_head_dim",)),
        sinks=config.switch("add_swa_attention_sink_bias", True),
        window=config.size("window", ("sliding_window",)),
    )
    far = attention_of(
        fields,
        v_head_dim=config.size("v_head_dim", ("v_head_dim",)),
        sinks=config.switch("add_full_attention_sink_bias", False),
    )
    experts = experts_of(config, experts=("n_routed_experts",), **routing_groups(config))
    kinds = {
        f"{window}{sparse}": Layer(
            name=("window" if window else "full") + ("_moe" if sparse else "_dense"),
            parts=(near if window else far, experts if sparse else mlp_of(fields)),
        )
        for window in (0, 1)
        for sparse in (0, 1)
    }
    assert pattern is not None
    assert moe is not None
    return layered(fields, [f"{window}{sparse}" for window, sparse in zip(pattern, moe, strict=True)], kinds)


def gemma4(config: Config) -> Fields:
    """Gemma 4: MLP and experts side by side, seven norms; full layers with wider heads whose values are the keys."""
    fields = grouped(config, tied=True, head_dim=256.0, qk_norm=1.0, norms=7.0, **attention_bias(config))
    experts = experts_of(config, top_k=("top_k_experts",), router_scales=1.0)
    same = config.switch("attention_k_eq_v", False)
    kv_heads = config.size("kv_heads", ("num_global_key_value_heads",)) if same else fields["kv_heads"]
    head_dim = config.optional("head_dim", ("global_head_dim",), fields["head_dim"])
    far = attention_of(fields, kv_heads=kv_heads, head_dim=head_dim, shared_kv=same)
    near = attention_of(fields, window=config.size("window", ("sliding_window",)))
    places = layer_types(config, fields["layers"], (*(SLIDING,) * 5, FULL), (SLIDING, FULL))
    kinds = {
        SLIDING: Layer(name="window", parts=(near, mlp_of(fields), experts), norms=7.0),
        FULL: Layer(name="full", parts=(far, mlp_of(fields), experts), norms=7.0),
    }
    return layered(fields, places, kinds) | gemma_vision(config)


def step3p7(config: Config) -> Fields:
    """Step-3.7: norms on queries and keys, a gate per head, first layers dense, one shared expert, windows 3 of 4.

    The public class reads its vocabulary from text_config alone: a model built from a flat file has the preset one.
    """
    fields = grouped(config, kv_heads=8.0, head_dim=128.0, qk_norm=1.0)
    if not config.nested and fields["vocab"] != STEP_VOCAB:
        stated = f"vocab_size = {fields['vocab']:g} stands outside text_config, where the public class does not read it"
        fields |= {"vocab": STEP_VOCAB, "notes": (f"{stated}: its preset of {STEP_VOCAB:g} rows counts",)}
    shared = config.size("shared", ("share_expert_dim", "share_expert_dims"))
    numbers = ("num_experts", "moe_num_experts")
    experts = experts_of(config, experts=numbers, top_k=("num_experts_per_tok", "moe_top_k"), shared_ffn=shared)
    first = config.optional("first", ("first_k_dense_replace",), 0.0)
    types = layer_types(config, fields["layers"], (FULL, SLIDING, SLIDING, SLIDING), (SLIDING, FULL))
    window = config.size("window", ("sliding_window",))
    kinds = {
        f"{kind} {width}": Layer(
            name=f"{kind.partition('_')[0]}_{width}",
            parts=(attention_of(fields, gate=2.0, window=window if kind == SLIDING else 0.0), part),
        )
        for kind in (SLIDING, FULL)
        for width, part in (("moe", experts), ("dense", mlp_of(fields)))
    }
    places = [f"{kind} {'dense' if i < first else 'moe'}" for i, kind in enumerate(types)]
    tower = step_vision(fields["hidden"])
    return layered(fields, places, kinds) | tower | {"notes": (*fields.get("notes", ()), *tower["notes"])}


MOE: Mapping[str, Family] = {
    "gemma4": gemma4,
    "gemma4_text": gemma4,
    "glm4_moe": glm4_moe,
    "gpt_oss": gpt_oss,
    "llama4": llama4,
    "llama4_text": llama4,
    "mimo_v2_flash": mimo_v2_flash,
    "minimax_m2": minimax_m2,
    "mixtral": mixtral,
    "olmoe": olmoe,
    "qwen2_moe": qwen2_moe,
    "qwen3_moe": qwen3_moe,
    "qwen3_vl_moe": qwen3_vl_moe,
    "qwen3_vl_moe_text": qwen3_vl_moe,
    "step3p7": step3p7,
}
