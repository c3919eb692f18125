"""The model: sizes and switches of a Transformer decoder, as its public configuration states them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tradespace.inputs.fields import count, switch
from tradespace.num import Num


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A dense decoder (LLaMA, Mistral, Qwen, Phi-3, Nemotron, GPT-2 kinds); every number may be an open-axis array.

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
    vocab: Num = count("rows of the embedding table")
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
    source: str = ""
    confidence: str = "datasheet"
    notes: tuple[str, ...] = field(default=())
