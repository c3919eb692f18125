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
from tradespace.inputs.model import Model

FAMILIES: Mapping[str, Family] = {**GROUPED, **CLASSIC}
"""model_type of a public configuration -> how to read it."""
NESTED = ("text_config", "llm_config", "language_config")
TEXT_ONLY = "only the text part of this multimodal configuration is read"
NOT_YET: Mapping[str, str] = {
    "a mixture of experts": (
        "mixtral qwen2_moe qwen3_moe qwen3_vl_moe qwen3_vl_moe_text gpt_oss dbrx olmoe phimoe granitemoe llama4 "
        "llama4_text glm4_moe ernie4_5_moe hunyuan_v1_moe minimax_m2 mimo_v2_flash step3p7 step3p5 gemma4 gemma4_text "
        "arctic grok-1 jetmoe"
    ),
    "multi-head latent attention": (
        "deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 glm_moe_dsa kimi_k2 minicpm3 longcat_flash glm4_moe_lite"
    ),
    "state-space or linear attention layers": (
        "mamba mamba2 falcon_mamba jamba bamba zamba zamba2 nemotron_h falcon_h1 granitemoehybrid qwen3_next qwen3_5 "
        "qwen3_5_text qwen3_5_moe qwen3_5_moe_text recurrent_gemma rwkv lfm2 kimi_linear minimax"
    ),
    "an encoder": (
        "bert roberta distilbert albert deberta deberta-v2 xlm-roberta modernbert electra vit clip siglip dinov2 "
        "dinov3_vit wav2vec2"
    ),
    "an encoder and a decoder": "t5 mt5 umt5 bart mbart pegasus whisper t5gemma m2m_100",
    "layers of different widths": "nemotron-nas deci openelm gemma3n gemma3n_text",
}
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
    fields = _family(part, place)(Config(part, place))
    _check(fields, place)
    nested = part is not config or isinstance(config.get("vision_config"), Mapping)
    notes = (*fields.pop("notes", ()), *((TEXT_ONLY,) if nested else ()))
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


def _family(config: Mapping[str, object], where: str) -> Family:
    kind = config.get("model_type")
    if kind is None:
        raise InputError(f"{where}: missing 'model_type', the family of the model such as 'llama'")
    if not isinstance(kind, str):
        raise InputError(f"{where}: model_type must be text such as 'llama', not {type(kind).__name__}")
    if kind in FAMILIES:
        return FAMILIES[kind]
    if kind in _KINDS:
        close = (*difflib.get_close_matches(kind, FAMILIES, n=1, cutoff=0.5), "llama")[0]
        has = f"model_type '{kind}' has {_KINDS[kind]}"
        raise InputError(f"{where}: {has}, which is not modelled yet; the nearest family that is: '{close}'")
    raise InputError(f"{where}: unknown model_type '{kind[:60]}'{nearest(kind[:60], FAMILIES)}")


def _check(fields: Fields, where: str) -> None:
    """Whole head widths and whole groups of heads, as every one of these classes needs them."""
    if fields["head_dim"] != int(fields["head_dim"]):
        raise InputError(f"{where}: {fields['hidden']:g} (width) is not a multiple of {fields['heads']:g} heads")
    if fields["heads"] % fields["kv_heads"]:
        given = f"{fields['heads']:g} heads are not a multiple of {fields['kv_heads']:g} key/value heads"
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
