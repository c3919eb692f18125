"""All-to-all of routed tokens: one copy per remote node, fanned out inside it with one copy per device.

Source of the scheme: DeepSeek-AI 2024 (arXiv 2412.19437), section 3.2.2, and deepseek-ai/DeepEP; Megatron-Core's
flexible dispatchers do the same. A dispatcher that sends every copy is the plain all-to-all of `collectives`.
"""

from __future__ import annotations

from tradespace.inputs.cluster import Dim
from tradespace.network.collectives import busy_time
from tradespace.network.placement import Span
from tradespace.num import Num, any_true, maximum, minimum, where
from tradespace.workload.operator import Routing


def dispatch_time(network: tuple[Dim, ...], span: Span, volume: Num, routing: Routing, fill: Num) -> Num:
    """Seconds of one dispatch (or combine). `volume`: bytes of all copies that one device sends, top_k per token.

    A dim moves one copy of a token per unit of it that the token reaches, nodes of the second dim and so on: of R units
    R (1 - (1 - 1/R)^top_k) on average, R = all units of the group or what the routing groups leave of them. The inner
    dim moves one copy per expert, or per device where the token goes to each `once`. (n - 1)/n of them leave the rank.

    >>> from tradespace.network.placement import Ranks
    >>> dims = (Dim(name="nvlink", kind="switch", size=8.0, bandwidth=1e12),
    ...         Dim(name="fabric", kind="switch", size=0.0, bandwidth=5e10))
    >>> spans = (Ranks.of(8.0, 1e-12), Ranks.of(2.0, 2e-11))
    >>> routing = Routing(top_k=8.0, groups=1.0, top_groups=1.0, once=0.0)
    >>> round(dispatch_time(dims, spans, 8e6, routing, 0.0) * 1e6, 4)  # 1 MB per copy: 2 (1 - 1/256) / 2 of it
    19.9219
    """
    top_k, groups, top_groups, once = routing
    token = volume / top_k
    slowest: Num = 0.0
    faster: Num = 0.0
    for i, (dim, ranks, units) in enumerate(zip(network, span, _units(span), strict=True)):
        if ranks.alone:
            continue
        sent = volume
        if i > 0 or any_true(once > 0.0):
            reach = reachable(units, groups, top_groups)
            sent = token * (reach * (1.0 - whole_power(1.0 - 1.0 / reach, top_k)))
        if i == 0 and not isinstance(once, float):
            sent = where(once > 0.0, sent, volume)
        busy = busy_time("all_to_all", dim, ranks, sent)
        faster = faster + minimum(slowest, busy)
        slowest = maximum(slowest, busy)
    return slowest + faster * fill


def _units(span: Span) -> list[Num]:
    """For each dim, the units of it in the whole group: its ranks times those of all dims outside."""
    units: list[Num] = []
    outside: Num = 1.0
    for ranks in reversed(span):
        outside = outside if ranks.alone else outside * ranks.count
        units.append(outside)
    return units[::-1]


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
