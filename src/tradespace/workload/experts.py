"""Mixture of experts: router, dispatch and combine, grouped GEMMs, shared experts.

Experts fold the devices of a stage a second way: expert x expert-tensor x expert-data (Megatron-Core's MoE parallel
folding, arXiv 2504.14960). A device starts with its own share of the tokens (1/tensor of the microbatch), sends each to
`top_k` experts (all-to-all in the expert group), gathers over the expert-tensor group, multiplies one GEMM per local
expert, and sends the results back. Work per device does not depend on the expert degree, only the rows per GEMM do.
"""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.inputs.layers import Experts, Mlp
from tradespace.inputs.model import Model
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.workload.feed_forward import mlp
from tradespace.workload.local import Local, activation, kept_widths, none
from tradespace.workload.operator import Exchange, Gemm, Operator, Routing, Work, gemm_operator


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """Rows on one device: its own tokens, copies that it sends, rows that its experts multiply, rows of one expert."""

    own: Num
    sent: Num
    rows: Num
    each: Num
    width: Num  # columns that the experts work in

    @staticmethod
    def of(part: Experts, model: Model, strategy: Strategy, size: Local) -> Routed:
        """Rows with the strategy's imbalance on the busiest rank (1: balanced)."""
        own = size.tokens / strategy.tensor
        sent = own * part.top_k
        rows = sent * strategy.expert_tensor * strategy.imbalance
        each = rows * strategy.expert / part.experts
        return Routed(own, sent, rows, each, model.hidden if none(part.latent) else part.latent)


def experts(part: Experts, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Operators of an MoE sublayer, in order."""
    routed = Routed.of(part, model, strategy, size)
    return (
        _router(part, model, strategy, size, routed),
        *_latent("latent_down", part, model.hidden, routed.width, strategy, routed),
        _exchange("dispatch", part, strategy, routed),
        *_grouped(part, strategy, routed),
        _exchange("combine", part, strategy, routed),
        *_latent("latent_up", part, routed.width, model.hidden, strategy, routed),
        *_shared(part, model, strategy, size),
    )


def _router(part: Experts, model: Model, strategy: Strategy, size: Local, routed: Routed) -> Operator:
    """Scores of every expert in fp32; its input is saved for router, experts and shared experts together."""
    bias = part.router_bias * part.experts + part.router_scales * (model.hidden + part.experts)
    scores = routed.own * part.experts * strategy.precision.full
    shape = Gemm.of(routed.own, model.hidden, part.experts)
    return gemm_operator("router", shape, kind="head", bias=bias, saved=size.held + scores)


def _latent(
    name: str, part: Experts, inputs: Num, outputs: Num, strategy: Strategy, routed: Routed
) -> tuple[Operator, ...]:
    """Projections between the model's width and the experts' (latent MoE), on a device's own tokens."""
    if none(part.latent):
        return ()
    saved = routed.own * routed.width * strategy.precision.value
    return (gemm_operator(name, Gemm.of(routed.own, inputs, outputs), saved=saved),)


def _exchange(name: str, part: Experts, strategy: Strategy, routed: Routed) -> Operator:
    """Dispatch or combine: half of the permutation passes over the copies, the all-to-all, the expert-tensor gather.

    What goes to the experts (dispatch, and the gradients of combine) may have a type of its own: fp8 in DeepSeek-V3
    (arXiv 2412.19437, section 3.3.3), while what comes back stays in 16 bits.
    """
    profile, value = strategy.profile, strategy.precision.value
    values = routed.sent * strategy.imbalance * routed.width
    sent = values * value
    gathered = sent * strategy.expert_tensor
    across = "all_gather" if name == "dispatch" else "reduce_scatter"
    back = "reduce_scatter" if name == "dispatch" else "all_gather"
    routing = Routing(part.top_k, part.groups, part.top_groups, profile.dispatch_once)
    to_all = to_experts = Exchange("all_to_all", "expert", sent, routing=routing)
    if not none(strategy.precision.dispatch):
        to_experts = Exchange("all_to_all", "expert", values * strategy.precision.dispatch, routing=routing)
    out, in_ = (to_experts, to_all) if name == "dispatch" else (to_all, to_experts)
    traffic = sent * (0.5 * profile.permute)
    return Operator(
        name,
        "pass",
        Work(traffic=traffic, exchanges=(out, Exchange(across, "expert_tensor", gathered))),
        Work(traffic=traffic, exchanges=(in_, Exchange(back, "expert_tensor", gathered))),
        module="moe",
    )


def _grouped(part: Experts, strategy: Strategy, routed: Routed) -> tuple[Operator, ...]:
    """One GEMM per local expert; what is saved is the routed input, gate and up, and their product: top_k x tokens x
    width / tensor values, whatever the expert degree (NVIDIA/Megatron-LM issue 1784)."""
    value = strategy.precision.value
    local, ffn = part.experts / strategy.expert, part.ffn / strategy.expert_tensor
    inner, entering = routed.rows * ffn * value, routed.rows * routed.width * value
    wide = (1.0 + part.gated) * ffn
    chosen = (part.top_k, part.experts)
    up = gemm_operator(
        "experts_in",
        Gemm.of(routed.each, routed.width, wide, local),
        kind="grouped",
        bias=part.bias * wide * local,
        saved=entering + inner * kept_widths(part.gated, strategy),
        operand=entering,
        chosen=chosen,
        module="moe",
    )
    down = gemm_operator(
        "experts_out",
        Gemm.of(routed.each, ffn, routed.width, local),
        kind="grouped",
        bias=part.bias * routed.width * local,
        saved=inner,
        operand=inner,
        chosen=chosen,
        module="moe_act",
    )
    return (up, activation("experts_activation", strategy, inner, part.gated), down)


def _shared(part: Experts, model: Model, strategy: Strategy, size: Local) -> tuple[Operator, ...]:
    """Shared experts: a dense MLP on every token, split over the tensor group."""
    if none(part.shared_ffn):
        return ()
    first, *rest = mlp(Mlp(ffn=part.shared_ffn, gated=part.gated), model, strategy, size, "shared")
    gate = part.shared_gate * model.hidden
    kept = first.saved - size.entering  # its input is the router's
    return (
        Operator(
            first.name,
            first.kind,
            first.forward,
            first.input_grad,
            first.weight_grad,
            weights=first.weights + gate,
            saved=kept,  # no operand: the router needs the input in 16 bits
        ),
        *rest,
    )
