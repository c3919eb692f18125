"""A recommendation model as one stack of operators (Naumov et al. 2019, arXiv 1906.00091).

The MLPs are replicated on all devices, each with its share of the samples; the embedding tables are split evenly over
all devices, so pooled vectors change hands in an all-to-all that runs beside the bottom MLP, and their gradients in one
beside the backward pass of interaction and bottom MLP.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from tradespace.inputs.dlrm import Dlrm
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.workload.layer_table import Stack, gradients
from tradespace.workload.operator import Block, Exchange, Gemm, Operator, Work

EMBEDDING, INTERACTION = "embedding", "interaction"


def stacks(model: Model, strategy: Strategy, samples: Num, devices: Num) -> tuple[Stack, ...]:
    """Look-ups, bottom MLP, interaction, top MLP for `samples` samples on each device.

    The gradients' all-to-all is sent after the first top layer's input gradient and awaited by the tables' update.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-a100")
    >>> strategy = load.strategy("global_batch=4096", cluster=cluster)
    >>> [stack] = stacks(load.model("dlrm-libra"), strategy, 512.0, 8.0)
    >>> stack.block.operators[0].forward.exchanges[0].volume == 4 * 2**20
    True
    """
    sizes = model.dlrm
    pooled = samples * sizes.tables * sizes.width * strategy.precision.value
    bottom = _layers("bottom", sizes.bottom, sizes, strategy, samples)
    inner, inputs = interaction(sizes, strategy, samples)
    top = _layers("top", (inputs, *sizes.top), sizes, strategy, samples)
    first = top[0]
    assert first.input_grad is not None
    sent = Exchange("all_to_all", "all", pooled, awaited=EMBEDDING)
    top = (replace(first, input_grad=Work(first.input_grad.shape, exchanges=(sent,))), *top[1:])
    operators = (_embedding(sizes, samples, devices, pooled), *bottom, *inner, *top)
    return (Stack(Block.of("layer", operators), 1.0),)


def _embedding(sizes: Dlrm, samples: Num, devices: Num, pooled: Num) -> Operator:
    """Look-ups of a device's tables for the samples of all devices: as many as its own samples have in all tables."""
    looked_up = samples * sizes.lookups * sizes.width * sizes.value
    sent = Exchange("all_to_all", "all", pooled, awaited=INTERACTION)
    return Operator(
        EMBEDDING,
        "lookup",
        Work(traffic=looked_up, exchanges=(sent,)),
        weight_grad=Work(traffic=sizes.update_passes * looked_up),
        weights=sizes.rows * sizes.width / devices,
        saved=pooled,
    )


def _layers(name: str, widths: tuple[Num, ...], sizes: Dlrm, strategy: Strategy, samples: Num) -> tuple[Operator, ...]:
    """A chain of linear layers."""
    pairs = pairwise(widths)
    return tuple(
        _linear(f"{name} {i}", samples, inputs, outputs, sizes.bias * outputs, strategy)
        for i, (inputs, outputs) in enumerate(pairs)
    )


def _linear(name: str, samples: Num, inputs: Num, outputs: Num, bias: Num, strategy: Strategy) -> Operator:
    shape = Gemm.of(samples, inputs, outputs)
    weights = shape.right + bias
    return Operator(
        name,
        "gemm",
        Work(shape),
        Work(shape.input_grad),
        Work(shape.weight_grad, exchanges=gradients(weights, strategy)),
        weights=weights,
        saved=shape.left * strategy.precision.value,
    )


def interaction(sizes: Dlrm, strategy: Strategy, samples: Num) -> tuple[tuple[Operator, ...], Num]:
    """The interaction's operators and the width of its output.

    cat: all vectors side by side. dot: products of all pairs of vectors, and the bottom output. dcn: the vectors side
    by side through cross layers x + x0 * (W (V x) + b) of low rank.

    >>> from tradespace.inputs import load
    >>> strategy = load.strategy("global_batch=8", cluster=load.cluster("dgx-a100"))
    >>> interaction(load.model("dlrm-dcnv2").dlrm, strategy, 1.0)[1]
    3456.0
    """
    vectors = sizes.tables + 1.0
    joined = vectors * sizes.width
    value = strategy.precision.value
    passing = Work(traffic=2.0 * samples * joined * value)
    copy = Operator(INTERACTION, "pass", passing, passing)
    if sizes.interaction == "dot":
        shape = Gemm.of(vectors, sizes.width, vectors, samples)
        saved = samples * joined * value
        pairs = Operator(INTERACTION, "gemm", Work(shape), Work(shape.input_grad), Work(shape.weight_grad), saved=saved)
        return (pairs,), vectors * (vectors - 1.0) / 2.0 + sizes.width
    cross: list[Operator] = [copy]
    if sizes.interaction == "dcn":
        for i in range(int(sizes.cross_layers)):
            cross.append(_linear(f"cross {i} in", samples, joined, sizes.cross_rank, 0.0, strategy))
            cross.append(_linear(f"cross {i} out", samples, sizes.cross_rank, joined, sizes.bias * joined, strategy))
            cross.append(Operator(f"cross {i} product", "pass", passing, passing))
    return tuple(cross), joined
