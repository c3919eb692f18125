"""A deep-learning recommendation model: sizes of its MLPs, embedding tables and interaction."""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.errors import InputError, nearest
from tradespace.inputs.fields import count, quantity, series, switch
from tradespace.num import Num

INTERACTIONS = ("cat", "dot", "dcn")


@dataclass(frozen=True, kw_only=True, eq=False)
class Dlrm:
    """DLRM (Naumov et al. 2019, arXiv 1906.00091): a bottom MLP of dense features, embedding tables, an interaction
    of their outputs, a top MLP.

    `interaction`: cat (concatenation), dot (pairwise products and the bottom output), dcn (concatenation through
    low-rank cross layers: Wang et al. 2021, arXiv 2008.13535). `state` is what the optimizer holds per table value.
    """

    bottom: tuple[float, ...] = series("", "sizes of the bottom MLP, its dense features first", default=(), low=1.0)
    top: tuple[float, ...] = series("", "outputs of the top MLP's layers", default=(), low=1.0)
    tables: Num = count("embedding tables", default=1.0)
    rows: Num = quantity("", "rows of all tables together", default=1.0)
    width: Num = count("values of one embedding vector", default=1.0)
    lookups: Num = quantity("", "look-ups of one sample in all tables together (sum of pooling factors)", default=1.0)
    interaction: str = "cat"
    cross_layers: Num = count("cross layers of dcn", default=0.0, low=0.0)
    cross_rank: Num = count("rank of each cross layer", default=1.0)
    bias: Num = switch("1: MLP and cross layers have biases", default=1.0)
    value: Num = quantity("byte", "one table value", default=4.0)
    state: Num = quantity("byte", "optimizer state per table value (row-wise AdaGrad: 4 bytes per row)", default=0.0)
    update_passes: Num = quantity("", "times that a looked-up row is read or written by its update", default=2.0)


def check(model: Dlrm, where: str) -> None:
    """Words and sizes of a recommendation model."""
    if model.interaction not in INTERACTIONS:
        raise InputError(
            f"{where}.interaction: unknown '{model.interaction}'{nearest(model.interaction, INTERACTIONS)}"
        )
    if len(model.bottom) < 2 or not model.top:
        raise InputError(f"{where}: bottom needs dense features and at least one layer, top at least one layer")
    if model.bottom[-1] != model.width:
        raise InputError(f"{where}.bottom: ends in {model.bottom[-1]:g}, but embeddings have {model.width:g} values")
