"""All-to-all of routed tokens: one copy per remote node, fanned out inside it.

Source of the scheme: DeepSeek-AI 2024 (arXiv 2412.19437), section 3.2.2; Megatron-Core's flexible dispatchers do the
same. A dispatcher that sends every copy across nodes is the plain all-to-all of `collectives`.
"""

from __future__ import annotations

from tradespace.inputs.cluster import Dim
from tradespace.network.collectives import busy_time
from tradespace.network.placement import Span
from tradespace.num import Num, maximum, minimum, where


def dispatch_time(network: tuple[Dim, ...], span: Span, volume: Num, routing: tuple[Num, Num, Num], fill: Num) -> Num:
    """Seconds of one dispatch (or combine). `volume`: bytes of all copies that one device sends, top_k per token;
    `routing`: experts per token, groups of experts, groups that a token may reach.

    The inner dim moves every copy. A dim of q units beyond it moves one copy per unit that a token reaches, on average
    R (1 - (1 - 1/R)^top_k) of R units, R = q or what the routing groups leave of it; (q - 1)/q of them are remote.

    >>> from tradespace.network.placement import Ranks
    >>> dims = (Dim(name="nvlink", kind="switch", size=8.0, bandwidth=1e12),
    ...         Dim(name="fabric", kind="switch", size=0.0, bandwidth=5e10))
    >>> spans = (Ranks.of(8.0, 1e-12), Ranks.of(2.0, 2e-11))
    >>> round(dispatch_time(dims, spans, 8e6, (8.0, 1.0, 1.0), 0.0) * 1e6, 4)  # 1 MB per copy: 2 (1 - 1/256) / 2 of it
    19.9219
    """
    top_k, groups, top_groups = routing
    token = volume / top_k
    slowest: Num = 0.0
    faster: Num = 0.0
    for i, (dim, ranks) in enumerate(zip(network, span, strict=True)):
        if ranks.alone:
            continue
        sent = volume
        if i > 0:
            units = reachable(ranks.count, groups, top_groups)
            sent = token * (units * (1.0 - whole_power(1.0 - 1.0 / units, top_k)))
        busy = busy_time("all_to_all", dim, ranks, sent)
        faster = faster + minimum(slowest, busy)
        slowest = maximum(slowest, busy)
    return slowest + faster * fill


def reachable(units: Num, groups: Num, top_groups: Num) -> Num:
    """Units of a dim that one token may reach when its experts come from `top_groups` of `groups` groups.

    >>> reachable(8.0, 8.0, 4.0), reachable(2.0, 8.0, 4.0), reachable(16.0, 1.0, 1.0)
    (4.0, 2.0, 16.0)
    """
    return where(groups > 1.0, minimum(units, top_groups * maximum(units / groups, 1.0)), units)


def whole_power(base: Num, exponent: Num) -> Num:
    """base to a whole power, by products in one order, so that numbers and arrays agree.

    >>> whole_power(0.5, 3.0)
    0.125
    """
    most = int(exponent) if isinstance(exponent, float) else int(exponent.max())
    result: Num = 1.0
    for i in range(most):
        result = result * base if isinstance(exponent, float) else where(exponent > float(i), result * base, result)
    return result
