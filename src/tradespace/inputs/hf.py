"""From a public (Hugging Face) config.json to a Model: the file as it is, no key added or renamed.

Size keys are required; switches take the defaults of the family's public class; keys that the family does not know
are ignored, since real files have many. Each family is one small function in a table (hf_dense.py, hf_classic.py).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import PurePath

from tradespace.errors import InputError, nearest
from tradespace.inputs.build import build
from tradespace.inputs.hf_classic import CLASSIC
from tradespace.inputs.hf_config import Config, Family, Fields
from tradespace.inputs.hf_dense import GROUPED
from tradespace.inputs.hf_encoder import ENCODERS
from tradespace.inputs.hf_hybrid import HYBRID
from tradespace.inputs.hf_latent import LATENT
from tradespace.inputs.hf_moe import MOE
from tradespace.inputs.hf_phimoe import phimoe
from tradespace.inputs.layers import Attention
from tradespace.inputs.model import Model

FAMILIES: Mapping[str, Family] = {
    **GROUPED,
    **CLASSIC,
    **MOE,
    **LATENT,
    **HYBRID,
    **ENCODERS,
    "phimoe": phimoe,
}
"""model_type of a public configuration -> how to read it."""
NESTED = ("text_config", "llm_config", "language_config")
TEXT_ONLY = "only the text part of this multimodal configuration is read"
NOT_YET: Mapping[str, str] = {
    "a mixture of experts": ("dbrx granitemoe ernie4_5_moe hunyuan_v1_moe step3p5 arctic grok-1 jetmoe"),
    "multi-head latent attention": "minicpm3 longcat_flash glm4_moe_lite",
    "state-space or linear attention layers": (
        "mamba2 falcon_mamba bamba zamba zamba2 falcon_h1 granitemoehybrid recurrent_gemma rwkv lfm2 kimi_linear "
        "minimax"
    ),
    "an encoder": (
        "roberta distilbert albert deberta deberta-v2 xlm-roberta modernbert electra clip siglip dinov2 dinov3_vit "
        "wav2vec2"
    ),
    "an encoder and a decoder": "umt5 bart mbart pegasus whisper t5gemma m2m_100",
    "layers of different widths": "deci openelm gemma3n gemma3n_text",
}
NEAREST: Mapping[str, str] = {
    "a mixture of experts": "mixtral",
    "multi-head latent attention": "deepseek_v3",
    "state-space or linear attention layers": "mamba",
    "an encoder": "bert",
    "an encoder and a decoder": "t5",
    "layers of different widths": "nemotron-nas",
}
"""The family that stands for each kind."""
_KINDS = {name: kind for kind, names in NOT_YET.items() for name in names.split()}


def from_config(config: Mapping[str, object], where: str) -> Model:
    """The model that a public config.json describes; `where` is its file or catalog key for error messages.

    Sizes are counts (rows, columns, heads, layers), switches 0 or 1. InputError: no object, missing or wrong size
    keys, a model_type that is unknown or not modelled yet. Source of the defaults: the transformers classes that
    read these files.

    >>> config = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257,
    ...           "n_positions": 1024}
    >>> model = from_config(config, "gpt2/config.json")
    >>> model.name, model.ffn, model.tied
    ('gpt2', 3072.0, 1.0)
    """
    if not isinstance(config, Mapping):
        raise InputError(f"{where}: a configuration is an object with named fields, not {type(config).__name__}")
    part, place = _text_part(config, where)
    fields = _family(part, config, place)(Config(part, place, config))
    _check(fields, place)
    nested = part is not config or isinstance(config.get("vision_config"), Mapping)
    text_only = nested and not fields.get("front")
    notes = (*fields.pop("notes", ()), *((TEXT_ONLY,) if text_only else ()))
    name, source = _origin(config, where)
    return build(Model, {**fields, "name": name, "source": source, "notes": notes}, where)


def _text_part(config: Mapping[str, object], where: str) -> tuple[Mapping[str, object], str]:
    """The decoder's part of a nested configuration; the outer tying switch governs the head where both are stated."""
    for key in NESTED:
        inner = config.get(key)
        if inner is None:
            continue
        if not isinstance(inner, Mapping):
            raise InputError(f"{where}: {key} must be a table of fields, not {type(inner).__name__}")
        tied = config.get("tie_word_embeddings")
        return {**inner, **({} if tied is None else {"tie_word_embeddings": tied})}, f"{where}: {key}"
    return config, where


def _family(config: Mapping[str, object], outer: Mapping[str, object], where: str) -> Family:
    """The reader of a text part's model_type, else of the file's."""
    kind = config.get("model_type", outer.get("model_type"))
    if kind is None:
        raise InputError(f"{where}: missing 'model_type', the family of the model such as 'llama'")
    if not isinstance(kind, str):
        raise InputError(f"{where}: model_type must be text such as 'llama', not {type(kind).__name__}")
    if kind in FAMILIES:
        return FAMILIES[kind]
    if kind in _KINDS:
        close = (*difflib.get_close_matches(kind, FAMILIES, n=1, cutoff=0.7), NEAREST[_KINDS[kind]])[0]
        has = f"model_type '{kind}' has {_KINDS[kind]}"
        raise InputError(f"{where}: {has}, which is not modelled yet; the nearest family that is: '{close}'")
    raise InputError(f"{where}: unknown model_type '{kind[:60]}'{nearest(kind[:60], FAMILIES)}")


def _check(fields: Fields, where: str) -> None:
    """Whole head widths and whole groups of heads, as every one of these classes needs them."""
    found = [(fields["heads"], fields["kv_heads"], fields["head_dim"])]
    for layer in fields.get("kinds", ()):
        found += [(p.heads, p.kv_heads, p.head_dim) for p in layer.parts if isinstance(p, Attention)]
    for heads, kv_heads, head_dim in found:
        if head_dim != int(head_dim):
            raise InputError(f"{where}: {fields['hidden']:g} (width) is not a multiple of {heads:g} heads")
        if heads % kv_heads:
            given = f"{heads:g} heads are not a multiple of {kv_heads:g} key/value heads"
            raise InputError(f"{where}: {given} (num_key_value_heads)")


def _origin(config: Mapping[str, object], where: str) -> tuple[str, str]:
    """Name and source: the public name that the file carries, else the file's folder or own name."""
    public = config.get("_name_or_path")
    if isinstance(public, str) and PurePath(public).name:
        hub = public.count("/") == 1 and not public.startswith((".", "/", "~"))
        return PurePath(public).name, f"config.json of {public} on the Hugging Face hub" if hub else where
    path = PurePath(where)
    folder = path.parent.name
    return (folder if path.name == "config.json" and folder else path.name.removesuffix(".json")) or "model", where
