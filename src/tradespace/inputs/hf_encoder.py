"""Encoders in public configurations: T5 (with its decoder), BERT, ViT.

`architectures` decides on what stands behind the last layer; without it T5 has no head of its own, BERT the head of
masked language modelling, ViT no classifier but the pooler that its class builds.
"""

from __future__ import annotations

from collections.abc import Mapping

from tradespace.errors import InputError
from tradespace.inputs.hf_config import Config, Family, Fields
from tradespace.inputs.hf_layers import attention_of, layered, mlp_of
from tradespace.inputs.layers import Held, Layer, Linear, Table

LENGTHS = "encoder and decoder are trained on sequences of the same length (seq)"


def t5(config: Config) -> Fields:
    """T5: no biases, RMS-like norms, a table of relative positions per stack, one shared embedding."""
    hidden, heads = config.size("hidden", ("d_model",)), config.size("heads", ("num_heads", "num_attention_heads"))
    layers = config.size("layers", ("num_layers", "num_hidden_layers"))
    decoder = config.optional("layers", ("num_decoder_layers",), layers)
    words = config.table.get("feed_forward_proj", "relu")
    if not isinstance(words, str):
        raise InputError(f"{config.where}: feed_forward_proj must be text such as 'gated-gelu'")
    generates = config.architecture().endswith("ForConditionalGeneration")
    fields: Fields = {
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": config.size("head_dim", ("d_kv",)),
        "ffn": config.size("ffn", ("d_ff",)),
        "gated": float(words.startswith("gated")),
        "vocab": config.size("vocab", ("vocab_size",)),
        "tied": config.switch("tie_word_embeddings", True) if generates else 1.0,
        "rotary": 0.0,
        "max_seq": config.optional("max_seq", ("n_positions",), 512.0),
        "notes": (LENGTHS,),
    }
    buckets = config.optional("buckets", ("relative_attention_num_buckets",), 32.0) * heads
    own, across = attention_of(fields), attention_of(fields, causal=0.0)
    kinds = {
        "encoder": Layer(name="encoder", parts=(across, mlp_of(fields))),
        "decoder": Layer(name="decoder", parts=(own, across, mlp_of(fields)), norms=3.0),
    }
    front = (Held(name="relative_positions", parameters=2.0 * buckets), Held(name="encoder_norm", parameters=hidden))
    places = ["encoder"] * int(layers) + ["decoder"] * int(decoder)
    return layered(fields, places, kinds) | {"front": front}


def _encoder(config: Config, hidden: float) -> Fields:
    """LayerNorm, biases everywhere, plain MLP, attention over the full square."""
    heads = config.size("heads", ("num_attention_heads",))
    return {
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": hidden / heads,
        "ffn": config.size("ffn", ("intermediate_size",)),
        "gated": 0.0,
        "norm_vectors": 2.0,
        "rotary": 0.0,
        "out_bias": 1.0,
        "mlp_bias": 1.0,
    }


def _uniform(config: Config, fields: Fields) -> Fields:
    layers = int(config.size("layers", ("num_hidden_layers",)))
    layer = Layer(name="layer", parts=(attention_of(fields, causal=0.0), mlp_of(fields)))
    return layered(fields, ["layer"] * layers, {"layer": layer})


def bert(config: Config) -> Fields:
    """BERT: word, position and type tables with a norm; a dense transform with a norm before the tied, biased head.

    The final norm of the Model is the transform's.
    """
    hidden = config.size("hidden", ("hidden_size",))
    positions = config.optional("positions", ("max_position_embeddings",), 512.0)
    types = config.optional("types", ("type_vocab_size",), 2.0)
    fields = _encoder(config, hidden) | {
        "qkv_bias": 1.0,
        "vocab": config.size("vocab", ("vocab_size",)),
        "tied": config.switch("tie_word_embeddings", True),
        "embedding_norm": 1.0,
        "head_bias": 1.0,
        "max_seq": positions,
    }
    pooler = config.architecture() in ("BertForPreTraining", "BertForNextSentencePrediction")
    back = [Linear(name="transform", inputs=hidden, outputs=hidden)]
    if pooler:
        back += [
            Linear(name="pooler", inputs=hidden, outputs=hidden, once=1.0),
            Linear(name="next_sentence", inputs=hidden, outputs=2.0, once=1.0),
        ]
    front = (Table(name="positions_table", rows=positions), Table(name="types", rows=types))
    return _uniform(config, fields) | {"front": front, "back": tuple(back)}


def vit(config: Config) -> Fields:
    """ViT: patches of an image and a class token instead of words; seq is their number."""
    hidden = config.size("hidden", ("hidden_size",))
    patch = config.optional("patch", ("patch_size",), 16.0)
    side = config.optional("image", ("image_size",), 224.0) // patch
    inputs = config.optional("channels", ("num_channels",), 3.0) * patch * patch
    tokens = side * side + 1.0
    fields = _encoder(config, hidden) | {
        "qkv_bias": config.switch("qkv_bias", True),
        "vocab": 0.0,
        "tied": 1.0,
        "positions": tokens,
        "max_seq": tokens,
    }
    labels = config.table.get("id2label")
    classes = float(len(labels)) if isinstance(labels, Mapping) else config.optional("labels", ("num_labels",), 2.0)
    last = (
        Linear(name="classifier", inputs=hidden, outputs=classes, once=1.0)
        if config.architecture() == "ViTForImageClassification"
        else Linear(name="pooler", inputs=hidden, outputs=hidden, once=1.0)
    )
    front = (Linear(name="patches", inputs=inputs, outputs=hidden), Held(name="class_token", parameters=hidden))
    return _uniform(config, fields) | {"front": front, "back": (last,)}


ENCODERS: Mapping[str, Family] = {"bert": bert, "mt5": t5, "t5": t5, "vit": vit}
