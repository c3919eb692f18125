"""The model: sizes and switches of a Transformer, as its public configuration states them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from tradespace.inputs.dlrm import Dlrm
from tradespace.inputs.fields import count, series, switch
from tradespace.inputs.layer_table import LayerTable
from tradespace.inputs.layers import Attention, Layer, Mlp, Part
from tradespace.num import Num

FLAT = (
    "layers",
    "heads",
    "kv_heads",
    "head_dim",
    "ffn",
    "gated",
    "qkv_bias",
    "out_bias",
    "mlp_bias",
    "norms",
    "qk_norm",
)
"""Fields of a Model that describe its layers where they are all alike."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A Transformer: layers of one dense kind (the sizes below; each may be an open-axis array), or of several.

    With `kinds`, `pattern` gives the kind of every layer by its index, and `layers` is its length; heads, head_dim and
    ffn are then those of the kind with most layers, and are not used. `front` and `back` are parts before the first and
    after the last layer beside the embedding table and the head; `predicted` is the kind of a prediction layer.
    Families "table" and "dlrm" are described by the field of that name instead.
    `seq` is the length that is trained on, not the longest that the model allows. Norms: `norm_vectors` is 1 for
    RMSNorm (a scale) and 2 for LayerNorm (scale and shift); `norms` counts those of one layer.
    """

    name: str
    family: str = "dense"
    layers: Num = count("decoder layers")
    hidden: Num = count("width of the residual stream")
    heads: Num = count("query heads")
    kv_heads: Num = count("key/value heads (= heads for MHA, 1 for MQA)")
    head_dim: Num = count("width of one head")
    ffn: Num = count("inner width of the MLP")
    vocab: Num = count("rows of the embedding table, 0 without one", low=0.0)
    seq: Num = count("tokens of one training sequence", default=4096.0)
    gated: Num = switch("1: gated MLP of three matrices, 0: plain MLP of two", default=1.0)
    tied: Num = switch("1: input embedding and output head share one table")
    qkv_bias: Num = switch("1: biases on the query, key and value projections")
    out_bias: Num = switch("1: bias on the attention output projection")
    mlp_bias: Num = switch("1: biases in the MLP")
    qk_norm: Num = switch("1: norms on queries and keys, one scale per head dimension")
    qk_norm_full: Num = switch("1: these norms span all heads (OLMo 2) instead of one head dimension")
    norm_vectors: Num = count("vectors per norm: 1 RMSNorm, 2 LayerNorm, 0 without parameters", default=1.0, low=0.0)
    norms: Num = count("norms per layer", default=2.0, low=0.0)
    embedding_norm: Num = switch("1: a norm directly after the embedding (BLOOM)")
    head_bias: Num = switch("1: bias on the output head (Phi, GPT-J)")
    positions: Num = count("rows of a learned position table, 0 with rotary positions", default=0.0, low=0.0)
    rotary: Num = switch("1: rotary positions are applied to queries and keys", default=1.0)
    max_seq: Num = count("longest sequence that the model allows, 0 if not stated", default=0.0, low=0.0)
    kinds: tuple[Layer, ...] = field(default=())
    pattern: tuple[float, ...] = series("", "kind of each layer, as its index in kinds", default=())
    mtp: Num = count("multi-token-prediction layers that are trained (and counted)", default=0.0, low=0.0, high=16.0)
    predicted: tuple[Layer, ...] = field(default=())
    front: tuple[Part, ...] = field(default=())
    back: tuple[Part, ...] = field(default=())
    frozen: Num = switch("1: the weights are frozen; only adapters are trained")
    adapter_rank: Num = count("rank of low-rank adapters (LoRA) on linear layers, 0 = none", default=0.0, low=0.0)
    adapter_fused: Num = switch("1: one adapter for q, k and v, one for gate and up (Megatron); 0: one each (PEFT)")
    adapter_mlp: Num = switch("1: MLPs and shared experts have adapters, 0: the other linear layers alone", default=1.0)
    table: LayerTable = field(default_factory=LayerTable)
    dlrm: Dlrm = field(default_factory=Dlrm)
    source: str = ""
    confidence: str = "datasheet"
    notes: tuple[str, ...] = field(default=())

    def layer_kinds(self) -> tuple[Layer, ...]:
        """The kinds of layers; of a dense model its one kind, "layer"."""
        return self.kinds or (dense_layer(self),)


@lru_cache(maxsize=64)
def dense_layer(model: Model) -> Layer:
    """The one kind of layer of a dense model, from its flat sizes."""
    attention = Attention(
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        qkv_bias=model.qkv_bias,
        out_bias=model.out_bias,
        qk_norm=model.qk_norm,
        qk_norm_full=model.qk_norm_full,
    )
    mlp = Mlp(ffn=model.ffn, gated=model.gated, bias=model.mlp_bias)
    return Layer(name="layer", parts=(attention, mlp), norms=model.norms)
