"""From the fields of a public configuration to kinds of layers and the pattern in which they follow one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tradespace.errors import InputError
from tradespace.inputs.hf_config import Config, Fields
from tradespace.inputs.layers import Attention, Experts, LatentAttention, Layer, LinearAttention, Mamba, Mlp, Part
from tradespace.inputs.predicted import predicted_layer

NEXT = "num_nextn_predict_layers"
MTP = f"multi-token-prediction layers ({NEXT}) are neither counted nor trained unless mtp says how many"
FULL, SLIDING, CHUNKED, LINEAR = "full_attention", "sliding_attention", "chunked_attention", "linear_attention"


def layered(fields: Fields, places: Sequence[str], kinds: Mapping[str, Layer]) -> Fields:
    """Model fields with the kind of every layer in order; flat sizes are those of the most frequent kinds."""
    order = list(dict.fromkeys(places))
    pattern = tuple(float(order.index(place)) for place in places)
    flat: Fields = {}
    for place, _ in reversed(Counter(places).most_common()):
        for part in kinds[place].parts:
            flat |= _flat(part)
    used = tuple(kinds[place] for place in order)
    return {**fields, "layers": float(len(places)), **flat, "kinds": used, "pattern": pattern}


def _flat(part: Part) -> Fields:
    """Sizes of a part as flat fields of the Model: what a strategy search asks for."""
    if isinstance(part, Attention):
        return {"heads": part.heads, "kv_heads": part.kv_heads, "head_dim": part.head_dim}
    if isinstance(part, LatentAttention):
        return {"heads": part.heads, "kv_heads": part.heads, "head_dim": part.nope + part.rope}
    if isinstance(part, (Mlp, Experts)):
        return {"ffn": part.ffn}
    return {}


def recurrent_flat(part: Mamba | LinearAttention) -> Fields:
    """Flat sizes of a model without softmax attention: heads as the tensor group splits its channels."""
    if isinstance(part, LinearAttention):
        return {"heads": part.key_heads, "kv_heads": part.key_heads, "head_dim": part.key_dim, "ffn": part.value_dim}
    heads = part.heads or part.inner
    return {"heads": heads, "kv_heads": heads, "head_dim": part.inner / heads, "ffn": part.inner}


def predicted(config: Config, kind: Layer) -> Fields:
    """The kind of a prediction layer around a layer of `kind`, where the file states some; trained only on demand."""
    return {"predicted": (predicted_layer(kind),)} if config.optional("mtp", (NEXT,), 0.0) else {}


def attention_of(fields: Fields, **changes: Any) -> Attention:
    """The attention that flat fields describe."""
    names = ("heads", "kv_heads", "head_dim", "qkv_bias", "out_bias", "qk_norm", "qk_norm_full")
    stated: Fields = {name: fields[name] for name in names if name in fields}
    return Attention(**{**stated, **changes})


def mlp_of(fields: Fields, **changes: Any) -> Mlp:
    """The dense MLP that flat fields describe."""
    stated: Fields = {"ffn": fields["ffn"], "gated": fields.get("gated", 1.0), "bias": fields.get("mlp_bias", 0.0)}
    return Mlp(**{**stated, **changes})


def experts_of(
    config: Config,
    *,
    experts: tuple[str, ...] = ("num_experts",),
    top_k: tuple[str, ...] = ("num_experts_per_tok",),
    ffn: tuple[str, ...] = ("moe_intermediate_size",),
    **more: Any,
) -> Experts:
    """Routed experts under a family's names."""
    number, chosen = config.size("experts", experts), config.size("top_k", top_k)
    if chosen > number:
        raise InputError(f"{config.where}: {top_k[0]} = {chosen:g} is more than the {number:g} experts ({experts[0]})")
    return Experts(experts=number, top_k=chosen, ffn=config.size("ffn", ffn), **more)


def layer_types(config: Config, layers: float, default: Sequence[str], allowed: Sequence[str]) -> list[str]:
    """The attention of every layer: `layer_types`, else the class's default pattern repeated."""
    stated = config.entries("layer_types", layers, allowed)
    return stated or [default[i % len(default)] for i in range(int(layers))]


def windows(config: Config, fields: Fields, places: Sequence[str], preset: float | None = None) -> Fields:
    """A dense model whose layers at the `places` called sliding attend to `sliding_window` tokens.

    `preset` is the window of the public class where the key is absent; without a window the model stays as it is.
    """
    default = 0.0 if preset is None or config.states("sliding_window") else preset
    window = config.optional("window", ("sliding_window",), default)
    if not window or SLIDING not in places:
        return fields
    norms = fields.get("norms", 2.0)
    near = Layer(name="window", parts=(attention_of(fields, window=window), mlp_of(fields)), norms=norms)
    far = Layer(name="full", parts=(attention_of(fields), mlp_of(fields)), norms=norms)
    return layered(fields, places, {SLIDING: near, FULL: far})


def every_layer(fields: Fields) -> list[str]:
    """A window on every layer."""
    return [SLIDING] * int(fields["layers"])
