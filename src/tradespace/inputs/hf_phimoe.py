"""Phi-3.5-MoE: one family in one file, found in the table of `hf.py`; docs/add-a-family.md walks through it."""

from __future__ import annotations

from tradespace.inputs.hf_config import Config, Fields, attention_bias
from tradespace.inputs.hf_dense import grouped
from tradespace.inputs.hf_layers import attention_of, experts_of, layered
from tradespace.inputs.layers import Layer


def phimoe(config: Config) -> Fields:
    """LayerNorm with shift, 16 experts in every layer, a window that is as long as the context, biases by switches.

    Defaults: transformers, src/transformers/models/phimoe/configuration_phimoe.py.
    """
    fields = grouped(config, kv_heads=8.0, norm_vectors=2.0, **attention_bias(config))
    fields["head_bias"] = config.switch("lm_head_bias", False)
    window = config.optional("window", ("sliding_window",), 0.0)
    experts = experts_of(config, experts=("num_local_experts",), ffn=("intermediate_size",))
    layer = Layer(name="layer", parts=(attention_of(fields, window=window), experts))
    return layered(fields, ["layer"] * int(fields["layers"]), {"layer": layer})
