"""Dense decoders of GPT's kind in public configurations: each a small function to Model fields.

Switches and derived sizes take the defaults of the family's public class (Hugging Face transformers,
src/transformers/models/FAMILY/configuration_*.py and modeling_*.py): what a model built from the same file would have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradespace.inputs.hf_config import PARALLEL, Config, Family, Fields, Names, attention_bias, base_fields
from tradespace.inputs.hf_layers import FULL, SLIDING, windows

NEOX = Names()
GPT = Names(
    layers=("n_layer", "num_hidden_layers"),
    hidden=("n_embd", "hidden_size"),
    heads=("n_head", "num_attention_heads"),
    ffn=("n_inner",),
    positions=("n_positions", "max_position_embeddings"),
)
BLOOM = Names(
    layers=("n_layer", "num_hidden_layers"),
    hidden=("hidden_size", "n_embed"),
    heads=("n_head", "num_attention_heads"),
    positions=("seq_length",),
)
OPT = Names(ffn=("ffn_dim",))
FALCON = Names(
    layers=("num_hidden_layers", "n_layer"),
    hidden=("hidden_size", "n_embed"),
    heads=("num_attention_heads", "n_head"),
    ffn=("ffn_hidden_size",),
)

NEO = Names(
    layers=("num_layers", "num_hidden_layers"),
    heads=("num_heads", "num_attention_heads"),
)
MPT = Names(
    layers=("n_layers", "num_hidden_layers"),
    hidden=("d_model", "hidden_size"),
    heads=("n_heads", "num_attention_heads"),
    positions=("max_seq_len",),
)


def _classic(config: Config, names: Names, *, tied: bool = True, **switches: Any) -> Fields:
    """GPT's kind: LayerNorm, plain MLP of 4 x hidden unless stated, MHA, biases everywhere, no rotary positions."""
    fields = base_fields(config, names, tied)
    fields["ffn"] = config.optional("ffn", names.ffn, 4.0 * fields["hidden"])
    biases: Fields = {"qkv_bias": 1.0, "out_bias": 1.0, "mlp_bias": 1.0}
    return fields | {"gated": 0.0, "norm_vectors": 2.0, "rotary": 0.0} | biases | switches


def gpt2(config: Config) -> Fields:
    """GPT-2: learned positions."""
    _decoder_only(config)
    return _classic(config, GPT, positions=config.size("positions", GPT.positions))


def gpt_bigcode(config: Config) -> Fields:
    """StarCoder 1 and SantaCoder: GPT-2 with one key/value head."""
    fields = gpt2(config)
    return fields | {"kv_heads": 1.0 if config.switch("multi_query", True) else fields["heads"]}


def gptj(config: Config) -> Fields:
    """GPT-J and CodeGen: one norm for attention and MLP in parallel, rotary, no attention biases, biased head."""
    bare: Fields = {"qkv_bias": 0.0, "out_bias": 0.0, "head_bias": 1.0}
    return _classic(config, GPT, tied=False, norms=1.0, rotary=1.0, notes=(PARALLEL,), **bare)


def gpt_neox(config: Config) -> Fields:
    """GPT-NeoX and Pythia: two norms, rotary, attention and MLP in parallel unless switched off."""
    notes = (PARALLEL,) if config.switch("use_parallel_residual", True) else ()
    ffn = config.size("ffn", NEOX.ffn)
    biases = attention_bias(config, default=True)
    return _classic(config, NEOX, tied=False, rotary=1.0, notes=notes, **biases) | {"ffn": ffn}


def gpt_neo(config: Config) -> Fields:
    """GPT-Neo: learned positions, no biases on queries, keys and values; every second layer has a window of 256."""
    positions = config.size("positions", NEO.positions)
    fields = _classic(config, NEO, positions=positions, qkv_bias=0.0)
    places = [(FULL, SLIDING)[i % 2] for i in range(int(fields["layers"]))]
    named = Config({"sliding_window": config.table.get("window_size")}, config.where)
    return windows(named if config.states("window_size") else config, fields, places, preset=256.0)


def mpt(config: Config) -> Fields:
    """MPT: no biases, no shift in the norms, ALiBi; the MLP's width is expansion_ratio x hidden."""
    if not config.switch("no_bias", True):
        raise config.refuse("MPT with biases (no_bias = false) is")
    bare: Fields = {"qkv_bias": 0.0, "out_bias": 0.0, "mlp_bias": 0.0, "norm_vectors": 1.0}
    fields = _classic(config, MPT, **bare)
    return fields | {"ffn": config.optional("ffn", ("expansion_ratio",), 4.0) * fields["hidden"]}


def opt(config: Config) -> Fields:
    """OPT: learned positions with two rows before the first."""
    fields = _classic(config, OPT, positions=2.0 + config.size("positions", OPT.positions))
    if config.optional("hidden", ("word_embed_proj_dim",), fields["hidden"]) != fields["hidden"]:
        raise config.refuse("an embedding narrower than the model (word_embed_proj_dim) is")
    if not config.switch("do_layer_norm_before", True):
        raise config.refuse("OPT with norms after each block (do_layer_norm_before = false) is")
    bias = config.switch("enable_bias", True)
    norm = 2.0 * config.switch("layer_norm_elementwise_affine", True)
    biases: Fields = {"qkv_bias": bias, "out_bias": bias, "mlp_bias": bias, "norm_vectors": norm}
    return fields | biases | {"ffn": config.size("ffn", OPT.ffn)}


def bloom(config: Config) -> Fields:
    """BLOOM: a norm after the embedding, attention biased by distance (ALiBi), MLP always 4 x hidden."""
    fields = _classic(config, BLOOM, embedding_norm=1.0)
    return fields | {"ffn": 4.0 * fields["hidden"]}


def falcon(config: Config) -> Fields:
    """Falcon: MQA, or GQA with the new decoder; attention and MLP in parallel with one or two norms, or in turn."""
    bias = config.switch("bias", False)
    new, together = config.switch("new_decoder_architecture", False), config.switch("parallel_attn", True)
    biases: Fields = {"qkv_bias": bias, "out_bias": bias, "mlp_bias": bias}
    fields = _classic(config, FALCON, rotary=1.0 - config.switch("alibi", False), **biases)
    if new:
        fields["kv_heads"] = config.optional("kv_heads", ("num_kv_heads", "n_head_kv"), fields["heads"])
    elif config.switch("multi_query", True):
        fields["kv_heads"] = 1.0
    if together:
        fields["norms"] = config.optional("norms", ("num_ln_in_parallel_attn",), 1.0 + new) if new else 1.0
        fields["notes"] = (PARALLEL,)
    return fields


def _decoder_only(config: Config) -> None:
    if config.switch("add_cross_attention", False):
        raise config.refuse("cross-attention (add_cross_attention) is")


CLASSIC: Mapping[str, Family] = {
    "bloom": bloom,
    "codegen": gptj,
    "falcon": falcon,
    "gpt2": gpt2,
    "gpt_bigcode": gpt_bigcode,
    "gpt_neo": gpt_neo,
    "gpt_neox": gpt_neox,
    "gptj": gptj,
    "mpt": mpt,
    "opt": opt,
}
