"""The model of a measured run: dense, with experts, with latent attention, with windows; from the row's columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tradespace.inputs.hf_config import Fields
from tradespace.inputs.hf_layers import attention_of, layered, mlp_of
from tradespace.inputs.layers import Experts, LatentAttention, Layer, Part
from tradespace.inputs.model import Model

Row = Mapping[str, str]
Number = Callable[..., float]


def model_of(row: Row, number: Number, skip: Callable[[str], Exception]) -> Model:
    """The model of a row; `number` reads a cell, `skip` makes the exception for a row that cannot be built."""
    if row.get("attention") == "hybrid":
        raise skip("hybrid attention: the row does not give the sizes of its state-space layers")
    sparse = bool(row.get("moe_experts"))
    gated = 1.0 if sparse or number(row, "mlp_matrices") == 3.0 else 0.0
    heads, hidden = number(row, "heads"), number(row, "hidden")
    fields: Fields = {
        "layers": number(row, "layers"),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": number(row, "kv_heads", heads),
        "head_dim": number(row, "head_dim", hidden / heads),
        "ffn": number(row, "ffn_hidden", number(row, "moe_ffn") if sparse else None),
        "vocab": number(row, "vocab"),
        "seq": number(row, "seq_len"),
        "gated": gated,
        "rotary": gated,
        "norm_vectors": 2.0 - gated,
        "tied": number(row, "tied", 0.0),
        "frozen": 1.0 if number(row, "frozen_fraction", 0.0) > 0.0 else 0.0,
        "adapter_rank": number(row, "lora_rank", 0.0),
        "adapter_fused": 1.0,  # the rows with adapters are MLPerf's: one on the fused q, k and v, one on the output
        "adapter_mlp": 0.0,
    }
    if fields["frozen"] and not fields["adapter_rank"]:
        raise skip("frozen parameters without the rank of the adapters")
    if sparse or row.get("attention") == "mla" or row.get("window"):
        fields = _layers(row, number, skip, fields, sparse)
    return Model(name=row.get("model", ""), source=row.get("source", ""), **fields)


def _layers(row: Row, number: Number, skip: Callable[[str], Exception], fields: Fields, sparse: bool) -> Fields:
    """Kinds of layers: dense ones first, then experts; every window_every-th layer attends to all keys."""
    full: Part = _latent(row, skip, fields) if row.get("attention") == "mla" else attention_of(fields)
    window = number(row, "window", 0.0)
    near: Part = attention_of(fields, window=window) if window else full
    every = number(row, "window_every", 1.0)
    width: Part = _experts(row, number, fields) if sparse else mlp_of(fields)
    first = number(row, "moe_dense_layers", 0.0) if sparse else fields["layers"]
    places: list[str] = []
    for i in range(int(fields["layers"])):
        # window_every = 2: every second layer has a window; 1: all have
        reach = "window" if window and i % every == 0.0 else "full"
        places.append(f"{reach}_{'dense' if i < first else 'moe'}")
    kinds = {
        f"{reach}_{kind}": Layer(name=f"{reach}_{kind}", parts=(mixer, part))
        for reach, mixer in (("window", near), ("full", full))
        for kind, part in (("dense", mlp_of(fields)), ("moe", width))
    }
    return layered(fields, places, kinds)


def _experts(row: Row, number: Number, fields: Fields) -> Experts:
    """Routed and shared experts of a row."""
    return Experts(
        experts=number(row, "moe_experts"),
        top_k=number(row, "moe_topk"),
        ffn=number(row, "moe_ffn", fields["ffn"]),
        shared_ffn=number(row, "moe_shared_ffn", 0.0),
    )


RANKS = {"q_lora": "q_rank", "kv_lora": "kv_rank", "qk_nope": "nope", "qk_rope": "rope", "v": "v_head_dim"}


def _latent(row: Row, skip: Callable[[str], Exception], fields: Fields) -> LatentAttention:
    """Ranks and head parts from text such as q_lora=1536;kv_lora=512;qk_nope=128;qk_rope=64;v=128."""
    pairs = [item.partition("=") for item in (row.get("mla_dims") or "").split(";") if item]
    stated = {RANKS[key.strip()]: float(value) for key, _, value in pairs if key.strip() in RANKS}
    if set(stated) != set(RANKS.values()):
        raise skip("mla_dims does not state all ranks")
    return LatentAttention(
        heads=fields["heads"],
        q_rank=stated["q_rank"],
        kv_rank=stated["kv_rank"],
        nope=stated["nope"],
        rope=stated["rope"],
        v_head_dim=stated["v_head_dim"],
    )
