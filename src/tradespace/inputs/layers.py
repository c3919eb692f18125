"""Kinds of layers: what a layer consists of, part by part, where a model is more than one dense layer repeated.

A layer is a few sublayers (`Part`), each with its norm and residual. Sizes are those of the whole model, before any
parallelism. A new kind of sublayer is a dataclass here and an operator function in workload/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tradespace.inputs.fields import count, quantity, switch
from tradespace.num import Num


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A sublayer; the concrete ones below say which."""

    @property
    def split(self) -> tuple[tuple[str, Num], ...]:
        """What the tensor degree must divide: (reason of `workload.legality`, size)."""
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Attention(Part):
    """Softmax attention with heads: MHA, GQA, MQA; full, windowed or chunked; causal, bidirectional or across."""

    name: str = "attention"
    heads: Num = count("query heads")
    kv_heads: Num = count("key/value heads")
    head_dim: Num = count("width of one query and key head")
    v_head_dim: Num = count("width of one value head, 0 = head_dim", default=0.0, low=0.0)
    qkv_bias: Num = switch("1: biases on the query, key and value projections")
    out_bias: Num = switch("1: bias on the output projection")
    qk_norm: Num = switch("1: norms on queries and keys, one scale per head dimension")
    qk_norm_full: Num = switch("1: these norms span all heads")
    sinks: Num = switch("1: one learned sink per head")
    gate: Num = count(
        "0 none, 1 output gate as wide as the queries, 2 one gate per head", default=0.0, low=0.0, high=2.0
    )
    shared_kv: Num = switch("1: values are the keys, without a projection of their own")
    window: Num = count("tokens that a query sees at most, itself included; 0 = all before it", default=0.0, low=0.0)
    chunk: Num = count("attention stays within chunks of so many tokens; 0 = none", default=0.0, low=0.0)
    causal: Num = switch("0: queries see the full square (encoders, cross-attention)", default=1.0)

    @property
    def split(self) -> tuple[tuple[str, Num], ...]:
        """Query heads."""
        return (("heads", self.heads),)


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentAttention(Part):
    """Multi-head latent attention (DeepSeek-V2 and later): low-rank queries, keys and values, a shared rotary part.

    With an indexer (DeepSeek-V3.2, GLM-5) each query attends to the `index_top_k` keys that it scores highest.
    """

    name: str = "latent_attention"
    heads: Num = count("query heads")
    q_rank: Num = count("rank of the queries, 0 = one full projection", default=0.0, low=0.0)
    kv_rank: Num = count("rank of keys and values")
    nope: Num = count("width of a head without rotary positions")
    rope: Num = count("width of the rotary part, one key for all heads")
    v_head_dim: Num = count("width of one value head")
    bias: Num = switch("1: biases on the low-rank and output projections")
    index_heads: Num = count("heads of the indexer, 0 = none", default=0.0, low=0.0)
    index_dim: Num = count("width of one indexer head", default=0.0, low=0.0)
    index_top_k: Num = count("keys that a query attends to", default=0.0, low=0.0)

    @property
    def split(self) -> tuple[tuple[str, Num], ...]:
        """Query heads."""
        return (("heads", self.heads),)


@dataclass(frozen=True, kw_only=True, eq=False)
class CompressedAttention(Part):
    """DeepSeek-V4: one shared key/value head, a window, and beyond it keys compressed `rate` to one."""

    name: str = "compressed_attention"
    heads: Num = count("query heads")
    head_dim: Num = count("width of one head")
    q_rank: Num = count("rank of the queries")
    out_groups: Num = count("groups of the block-diagonal output projection")
    out_rank: Num = count("rank of each group")
    window: Num = count("tokens of the uncompressed window")
    rate: Num = count("tokens that one compressed key stands for, 0 = none", default=0.0, low=0.0)
    series: Num = count("overlapping series of compressed keys", default=1.0)
    index_heads: Num = count("heads of the indexer, 0 = none", default=0.0, low=0.0)
    index_dim: Num = count("width of one indexer head", default=0.0, low=0.0)
    index_top_k: Num = count("compressed keys that a query attends to, 0 = all", default=0.0, low=0.0)

    @property
    def split(self) -> tuple[tuple[str, Num], ...]:
        """Query heads."""
        return (("heads", self.heads),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mamba(Part):
    """A selective state space: Mamba-1 (dt_rank > 0) or Mamba-2 (heads > 0)."""

    name: str = "mamba"
    inner: Num = count("inner width")
    state: Num = count("state per channel")
    conv: Num = count("taps of the causal convolution")
    conv_bias: Num = switch("1: the convolution has a bias", default=1.0)
    bias: Num = switch("1: biases on the in and out projections")
    dt_rank: Num = count("Mamba-1: rank of the step sizes", default=0.0, low=0.0)
    inner_norms: Num = switch("1: norms on step sizes, B and C (Jamba)")
    heads: Num = count("Mamba-2: heads", default=0.0, low=0.0)
    groups: Num = count("Mamba-2: groups that share B and C", default=1.0)

    @property
    def split(self) -> tuple[tuple[str, Num], ...]:
        """Channels, in Mamba-2 heads."""
        two = not isinstance(self.heads, float) or self.heads > 0.0
        return (("heads", self.heads if two else self.inner),)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearAttention(Part):
    """Gated delta rule (Qwen3-Next, Qwen3.5): a state of key_dim x value_dim per head, no softmax."""

    name: str = "linear_attention"
    key_heads: Num = count("key and query heads")
    value_heads: Num = count("value heads")
    key_dim: Num = count("width of one key head")
    value_dim: Num = count("width of one value head")
    conv: Num = count("taps of the causal convolution")

    @property
    def split(self) -> tuple[tuple[str, Num], ...]:
        """Key heads."""
        return (("heads", self.key_heads),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mlp(Part):
    """A dense MLP."""

    name: str = "mlp"
    ffn: Num = count("inner width")
    gated: Num = switch("1: three matrices, 0: two", default=1.0)
    bias: Num = switch("1: biases")

    @property
    def split(self) -> tuple[tuple[str, Num], ...]:
        """Inner width."""
        return (("ffn", self.ffn),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Experts(Part):
    """A mixture of experts: a router, routed experts, and shared ones that see every token."""

    name: str = "experts"
    experts: Num = count("routed experts")
    top_k: Num = count("experts that a token is sent to")
    ffn: Num = count("inner width of one expert")
    gated: Num = switch("1: three matrices, 0: two", default=1.0)
    bias: Num = switch("1: biases in the experts")
    latent: Num = count("width that the experts work in, 0 = the model's", default=0.0, low=0.0)
    router_bias: Num = switch("1: the router has a bias (correction biases are buffers and do not count)")
    router_scales: Num = switch("1: the router scales its input and each expert (Gemma 4)")
    shared_ffn: Num = count("inner width of all shared experts together, 0 = none", default=0.0, low=0.0)
    shared_gate: Num = switch("1: a learned gate on the shared expert")
    groups: Num = count("groups of experts that routing is limited to", default=1.0)
    top_groups: Num = count("groups that one token may reach", default=1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Part):
    """A look-up table beside the token table, counted as input embedding (BERT's positions and types)."""

    name: str
    rows: Num = count("rows")


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear(Part):
    """A projection before the first or after the last layer (patches, pooler, BERT's transform)."""

    name: str
    inputs: Num = count("inputs")
    outputs: Num = count("outputs")
    bias: Num = switch("1: with a bias", default=1.0)
    once: Num = switch("1: applied to one token of a sequence (a pooler)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Held(Part):
    """Parameters without work on text: a vision tower, relative position tables, a class token."""

    name: str
    parameters: Num = quantity("", "how many", whole=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry(Part):
    """Start of a prediction layer: the next token's embedding and the hidden state, projected to the model's width."""

    name: str = "mtp_entry"


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondHead(Part):
    """End of a prediction layer: the model's own head once more."""

    name: str = "mtp_head"


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """One kind of layer: its sublayers in order, and the norms around them."""

    name: str
    parts: tuple[Part, ...] = field(default=())
    norms: Num = count("norms of the layer", default=2.0, low=0.0)
    streams: Num = count("parallel residual streams (hyper-connections)", default=1.0)


PARTS: Mapping[str, type[Part]] = {
    "attention": Attention,
    "compressed_attention": CompressedAttention,
    "entry": Entry,
    "experts": Experts,
    "held": Held,
    "latent_attention": LatentAttention,
    "linear": Linear,
    "linear_attention": LinearAttention,
    "mamba": Mamba,
    "mlp": Mlp,
    "second_head": SecondHead,
    "table": Table,
}
"""The word for each kind of part in a file: `part = "experts"`."""
