"""The table of sublayers: how a part of a layer becomes operators. A new kind of part is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tradespace.inputs.layers import (
    Attention,
    CompressedAttention,
    Entry,
    Experts,
    Held,
    LatentAttention,
    Layer,
    Linear,
    LinearAttention,
    Mamba,
    Mlp,
    Part,
    SecondHead,
    Table,
)
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.workload.attention import attention
from tradespace.workload.compressed import compressed_attention, hyper_connection
from tradespace.workload.ends import held, linear, table
from tradespace.workload.experts import experts
from tradespace.workload.feed_forward import mlp
from tradespace.workload.latent import latent_attention
from tradespace.workload.local import Local, norm, residual_sum
from tradespace.workload.operator import Operator
from tradespace.workload.predicted import entry, second_head
from tradespace.workload.recurrent import linear_attention, mamba

PARTS: Mapping[type[Part], Callable[[Any, Model, Strategy, Local], tuple[Operator, ...]]] = {
    Attention: attention,
    CompressedAttention: compressed_attention,
    Entry: entry,
    Experts: experts,
    Held: held,
    LatentAttention: latent_attention,
    Linear: linear,
    LinearAttention: linear_attention,
    Mamba: mamba,
    Mlp: mlp,
    SecondHead: second_head,
    Table: table,
}


def operators(part: Part, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Operators of one part for one microbatch on one device."""
    return PARTS[type(part)](part, model, strategy, size)


def layer(kind: Layer, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Operators of one layer: each part between its norm and its residual.

    Of `norms`, the first ones come before the parts, the next ones after them (Gemma 2), the rest at the end (Gemma 4).
    """
    found: list[Operator] = []
    parts = float(len(kind.parts))
    for i, part in enumerate(kind.parts, start=1):
        if kind.norms >= float(i):
            found.append(norm(f"norm{i}", model, strategy, size))
        if not (isinstance(kind.streams, float) and kind.streams == 1.0):
            found.append(hyper_connection(f"streams{i}", kind.streams, model, size))
        found += operators(part, model, strategy, size)
        if kind.norms >= parts + i:
            found.append(norm(f"norm{i}_post", model, strategy, size))
        found.append(residual_sum(f"residual{i}", strategy, size))
    more = kind.norms - 2.0 * parts
    if more >= 1.0:
        found += [norm(f"norm_more{j}", model, strategy, size) for j in range(int(more))]
    return tuple(found)
