"""Multi-token-prediction layers: kept aside by the reader of a configuration, appended where they are trained."""

from __future__ import annotations

from dataclasses import replace

from tradespace.errors import InputError
from tradespace.inputs.layers import Entry, Layer, SecondHead
from tradespace.inputs.model import Model

NAME = "mtp"


def predicted_layer(kind: Layer) -> Layer:
    """A prediction layer of DeepSeek-V3's kind around one kind of layer: the hidden state beside the next token's
    embedding, a layer, and the model's own head once more (arXiv 2412.19437, section 2.2)."""
    parts = (Entry(), *kind.parts, SecondHead())
    return replace(kind, name=NAME, parts=parts, norms=float(len(parts)))


def with_predicted(model: Model) -> Model:
    """The model with as many prediction layers behind its last layer as `model.mtp` says.

    >>> from tradespace.inputs.load import model
    >>> deepseek = with_predicted(replace(model("deepseek-v3"), mtp=1.0))
    >>> deepseek.layers, deepseek.kinds[-1].name, with_predicted(deepseek).layers
    (62.0, 'mtp', 62.0)
    """
    kinds = tuple(kind for kind in model.kinds if kind.name != NAME)
    own = len(kinds)
    pattern = tuple(place for place in model.pattern if place < own)
    if model.mtp == 0.0 and own == len(model.kinds):
        return model
    if model.mtp > 0.0 and not model.predicted:
        raise InputError(f"{model.name}: mtp = {model.mtp:g}, but the shape of its prediction layers is not known")
    more = int(model.mtp)
    if more:
        kinds, pattern = (*kinds, *model.predicted), (*pattern, *(float(own),) * more)
    return replace(model, kinds=kinds, pattern=pattern, layers=float(len(pattern)))
