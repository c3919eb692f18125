"""State-space and linear-attention models in public configurations, and models whose layers differ in width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.inputs.hf_config import Config, Family, Fields, attention_bias
from tradespace.inputs.hf_dense import grouped
from tradespace.inputs.hf_layers import (
    FULL,
    LINEAR,
    attention_of,
    experts_of,
    layer_types,
    layered,
    mlp_of,
    recurrent_flat,
)
from tradespace.inputs.hf_moe import routing_groups
from tradespace.inputs.layers import Experts, Layer, LinearAttention, Mamba, Mlp, Part


def mamba(config: Config) -> Fields:
    """Mamba-1: one sublayer per layer, tied head."""
    hidden = config.size("hidden", ("hidden_size",))
    width = config.optional("expand", ("expand",), 2.0) * hidden
    inner = config.optional("inner", ("intermediate_size",), width)
    part = Mamba(
        inner=inner,
        state=config.size("state", ("state_size",)),
        conv=config.optional("conv", ("conv_kernel",), 4.0),
        conv_bias=config.switch("use_conv_bias", True),
        bias=config.switch("use_bias", False),
        dt_rank=_step_rank(config, "time_step_rank", hidden),
    )
    fields: Fields = {
        "hidden": hidden,
        "vocab": config.size("vocab", ("vocab_size",)),
        "tied": config.switch("tie_word_embeddings", True),
        "rotary": 0.0,
        **recurrent_flat(part),
    }
    layers = config.size("layers", ("num_hidden_layers", "n_layer"))
    return layered(fields, ["layer"] * int(layers), {"layer": Layer(name="layer", parts=(part,), norms=1.0)})


def _step_rank(config: Config, name: str, hidden: float) -> float:
    """The rank of the step sizes; "auto" is ceil(hidden / 16)."""
    auto = float(-(-hidden // 16))
    return auto if config.table.get(name) == "auto" else config.optional("rank", (name,), auto)


def jamba(config: Config) -> Fields:
    """Jamba: attention in every attn_layer_period-th layer, experts in every expert_layer_period-th, Mamba-1 else."""
    fields = grouped(config, kv_heads=8.0, rotary=0.0)
    state = config.optional("state", ("mamba_d_state",), 16.0)
    mixers: dict[str, Part] = {
        "attention": attention_of(fields),
        "mamba": Mamba(
            inner=config.optional("expand", ("mamba_expand",), 2.0) * fields["hidden"],
            state=state,
            conv=config.optional("conv", ("mamba_d_conv",), 4.0),
            conv_bias=config.switch("mamba_conv_bias", True),
            bias=config.switch("mamba_proj_bias", False),
            dt_rank=_step_rank(config, "mamba_dt_rank", fields["hidden"]),
            inner_norms=1.0,
        ),
    }
    widths: dict[str, Part] = {"dense": mlp_of(fields), "moe": experts_of(config, ffn=("intermediate_size",))}
    at, every = (
        config.optional("n", (f"attn_layer_{word}",), preset) for word, preset in (("offset", 4.0), ("period", 8.0))
    )
    moe, each = (
        config.optional("n", (f"expert_layer_{word}",), preset) for word, preset in (("offset", 1.0), ("period", 2.0))
    )
    places = [
        ("attention" if i % every == at else "mamba") + ("_moe" if i % each == moe else "_dense")
        for i in range(int(fields["layers"]))
    ]
    kinds = {f"{a}_{b}": Layer(name=f"{a}_{b}", parts=(mixers[a], widths[b])) for a in mixers for b in widths}
    return layered(fields, places, kinds)


LETTERS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}


def nemotron_h(config: Config) -> Fields:
    """Nemotron-H and Nemotron 3: one sublayer per letter (M Mamba-2, * attention, E experts, - MLP) with one norm
    each; squared ReLU (two matrices); experts may work in a latent width."""
    places = _sublayers(config)
    fields = grouped(Config({**config.table, "num_hidden_layers": len(places)}, config.where), kv_heads=8.0, ffn=0.0)
    fields |= {"rotary": 0.0, "gated": 0.0, "norms": 1.0, **attention_bias(config)}
    fields["head_dim"] = config.optional("head_dim", ("head_dim", "attention_head_dim"), 128.0)
    kinds = {
        place: Layer(name=place, parts=(_sublayer(place, config, fields),), norms=1.0)
        for place in dict.fromkeys(places)
    }
    if not {"moe", "mlp"} & set(places):
        fields["ffn"] = 1.0
    return layered(fields, places, kinds)


def _sublayer(place: str, config: Config, fields: Fields) -> Part:
    """The one part of a layer of Nemotron-H."""
    if place == "mamba":
        return _mamba2(config)
    if place == "attention":
        return attention_of(fields)
    if place == "moe":
        return _latent_experts(config)
    return Mlp(ffn=config.size("ffn", ("intermediate_size",)), gated=0.0, bias=config.switch("mlp_bias", False))


def _sublayers(config: Config) -> list[str]:
    """The pattern as words, from letters or from a list of words."""
    letters, words = config.table.get("hybrid_override_pattern"), config.table.get("layers_block_type")
    if isinstance(letters, str) and letters:
        strange = set(letters) - set(LETTERS)
        if strange:
            known = "M Mamba, * attention, E experts, - MLP"
            raise InputError(f"{config.where}: hybrid_override_pattern has {sorted(strange)[0]!r}; known: {known}")
        found = [LETTERS[letter] for letter in letters]
    elif isinstance(words, list) and words:
        for word in words:
            if word not in LETTERS.values():
                hint = nearest(str(word)[:60], LETTERS.values())
                raise InputError(f"{config.where}: layers_block_type has the unknown entry {word!r:.40}{hint}")
        found = list(words)
    else:
        raise InputError(f"{config.where}: missing 'hybrid_override_pattern' (or the list 'layers_block_type')")
    stated = config.optional("layers", ("num_hidden_layers",), float(len(found)))
    if stated != len(found):
        raise InputError(f"{config.where}: num_hidden_layers = {stated:g}, but the pattern has {len(found)} sublayers")
    return found


def _mamba2(config: Config) -> Mamba:
    """Mamba-2 under Nemotron-H's names."""
    heads = config.size("heads", ("mamba_num_heads",))
    return Mamba(
        inner=heads * config.size("head_dim", ("mamba_head_dim",)),
        state=config.size("state", ("ssm_state_size",)),
        conv=config.size("conv", ("conv_kernel",)),
        conv_bias=config.switch("use_conv_bias", True),
        bias=config.switch("mamba_proj_bias", False),
        heads=heads,
        groups=config.size("groups", ("n_groups",)),
    )


def _latent_experts(config: Config) -> Experts:
    """Experts of two matrices, in a latent width where stated; shared experts have a width of their own."""
    shared = config.size("shared", ("moe_shared_expert_intermediate_size",))
    return experts_of(
        config,
        experts=("n_routed_experts",),
        gated=0.0,
        latent=config.optional("latent", ("moe_latent_size",), 0.0),
        shared_ffn=shared * config.optional("shared", ("n_shared_experts",), 1.0),
        **routing_groups(config),
    )


def qwen3_5(config: Config) -> Fields:
    """Qwen3-Next and Qwen3.5: gated delta-rule layers, every fourth with softmax attention and an output gate; dense,
    or with experts and one gated shared expert. The vision tower of Qwen3.5's files is not part of the text class."""
    sparse = config.table.get("num_experts") is not None
    ffn: Any = 0.0 if sparse else None
    fields = grouped(config, kv_heads=2.0, head_dim=256.0, ffn=ffn, qk_norm=1.0, **attention_bias(config))
    linear = LinearAttention(
        key_heads=config.size("heads", ("linear_num_key_heads",)),
        value_heads=config.size("heads", ("linear_num_value_heads",)),
        key_dim=config.size("head_dim", ("linear_key_head_dim",)),
        value_dim=config.size("head_dim", ("linear_value_head_dim",)),
        conv=config.optional("conv", ("linear_conv_kernel_dim",), 4.0),
    )
    shared = ("shared_expert_intermediate_size",)
    width: Part = (
        experts_of(config, shared_ffn=config.size("shared", shared), shared_gate=1.0) if sparse else mlp_of(fields)
    )
    every = int(config.optional("every", ("full_attention_interval",), 4.0) or 1.0)
    places = layer_types(config, fields["layers"], (*(LINEAR,) * (every - 1), FULL), (LINEAR, FULL))
    kinds = {
        LINEAR: Layer(name="linear", parts=(linear, width)),
        FULL: Layer(name="full", parts=(attention_of(fields, gate=1.0), width)),
    }
    return layered(fields, places, kinds)


def nemotron_nas(config: Config) -> Fields:
    """Llama-Nemotron from architecture search: attention or none, and an MLP width, layer by layer."""
    fields = grouped(config, ffn=0.0, **attention_bias(config))
    hidden, heads = fields["hidden"], fields["heads"]
    places: list[str] = []
    kinds: dict[str, Layer] = {}
    for entry in _blocks(config):
        attention, mlp = entry.get("attention", {}), entry.get("ffn", {})
        parts: list[Part] = []
        name = []
        if not attention.get("no_op"):
            group = _positive(config, attention, "n_heads_in_group")
            parts.append(attention_of(fields, kv_heads=heads / group))
            name.append(f"groups_of_{group:g}")
        if not mlp.get("no_op"):
            wide = _positive(config, mlp, "ffn_mult")
            ffn = float(-(-int(2.0 * wide * hidden / 3.0) // 256) * 256)
            parts.append(Mlp(ffn=ffn))
            name.append(f"ffn_{ffn:g}")
        place = "_".join(name) or "empty"
        kinds[place] = Layer(name=place, parts=tuple(parts), norms=float(len(parts)))
        places.append(place)
    if len(places) != fields["layers"]:
        raise InputError(
            f"{config.where}: block_configs has {len(places)} layers, num_hidden_layers {fields['layers']:g}"
        )
    return layered(fields, places, kinds)


def _positive(config: Config, table: Mapping[str, Any], key: str) -> float:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
        raise InputError(f"{config.where}: block_configs needs a positive {key} in every block, not {value!r:.40}")
    return float(value)


def _blocks(config: Config) -> list[dict[str, Any]]:
    """Blocks as the public file has them ({attention, ffn} each), or summed up as {repeat, block} with flat names."""
    stated, short = config.table.get("block_configs"), config.table.get("block_configs_summary")
    if isinstance(stated, list) and all(isinstance(block, Mapping) for block in stated):
        found = [dict(block) for block in stated]
    elif isinstance(short, list) and all(isinstance(entry, Mapping) and "block" in entry for entry in short):
        found = [_named(entry["block"]) for entry in short for _ in range(int(entry.get("repeat", 1)))]
    else:
        raise InputError(f"{config.where}: missing 'block_configs' (a list with attention and ffn of every layer)")
    for block in found:
        for part in (block.get("attention", {}), block.get("ffn", {})):
            if not isinstance(part, Mapping) or part.get("replace_with_linear"):
                raise config.refuse("a layer whose attention or MLP is one linear projection is")
    return found


def _named(block: Mapping[str, Any]) -> dict[str, Any]:
    """Flat names of a summed-up block as the nested ones of the public file."""
    return {
        "attention": {
            "no_op": block.get("attn_no_op"),
            "replace_with_linear": block.get("attn_linear"),
            "n_heads_in_group": block.get("n_heads_in_group"),
        },
        "ffn": {
            "no_op": block.get("ffn_no_op"),
            "replace_with_linear": block.get("ffn_linear"),
            "ffn_mult": block.get("ffn_mult"),
        },
    }


HYBRID: Mapping[str, Family] = {
    "jamba": jamba,
    "mamba": mamba,
    "nemotron-nas": nemotron_nas,
    "nemotron_h": nemotron_h,
    "qwen3_5": qwen3_5,
    "qwen3_5_moe": qwen3_5,
    "qwen3_5_moe_text": qwen3_5,
    "qwen3_5_text": qwen3_5,
    "qwen3_next": qwen3_5,
}
