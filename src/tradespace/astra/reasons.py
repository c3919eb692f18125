"""Why ASTRA-sim's time of a collective is not the prediction's: one assumption is exchanged at a time, and the change
that it makes is the reason's weight. Changes below a tenth of the longer time are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tradespace.astra.chakra import SEND
from tradespace.astra.prices import Case
from tradespace.network.astra import Dim, Network

SHOWN = 0.1
Reason = tuple[float, str]
"""Seconds by which ASTRA-sim's time is longer (shorter: negative) for this reason, and the reason in words."""


def reasons(case: Case) -> list[str]:
    """The reasons of a case, the weightiest first; a communicator over several dims is named whatever its weight."""
    physical, astra = case.physical(), case.astra()
    found = [*_of_the_network(case, physical), *_of_astra_sim(case, astra)]
    shown = [reason for reason in found if abs(reason[0]) > SHOWN * max(physical, astra)]
    rest = astra - physical - sum(weight for weight, _ in found)
    if len(_dims(case)) > 1 and case.node.kind != SEND:
        if not case.group.dims:
            shown.append((rest, _one_ring(case)))
        elif abs(rest) > SHOWN * max(physical, astra):
            shown.append((rest, "each chunk visits the dims one after the other"))
    shown.sort(key=lambda reason: -abs(reason[0]))
    return [f"{text} ({_time(weight)})" for weight, text in shown]


def _time(seconds: float) -> str:
    """Microseconds or milliseconds with their sign.

    >>> _time(-1.5e-5), _time(0.02)
    ('-15 us', '+20 ms')
    """
    return f"{seconds * 1e3:+.3g} ms" if abs(seconds) >= 1e-3 else f"{seconds * 1e6:+.3g} us"


def _dims(case: Case) -> list[int]:
    """Network dims in which the members differ."""
    net, members = case.site.found.network, case.members
    places = [{rank // net.stride(index) % dim.size for rank in members} for index, dim in enumerate(net.dims)]
    return [index for index, place in enumerate(places) if len(place) > 1]


def _one_ring(case: Case) -> str:
    """A communicator over several dims, with what its ring would take if the slowest dim set the pace."""
    net, used = case.site.found.network, _dims(case)
    rate, latency = min(net.dims[i].bandwidth for i in used), max(net.dims[i].latency for i in used)
    honest = case.astra(_changed(net, used, bandwidth=rate, latency=latency))
    return (
        "a communicator over several dims is one ring, whose messages pay for the lowest dim alone; at the pace of the "
        f"slowest dim it would take {_time(honest)[1:]}"
    )


def _of_the_network(case: Case, physical: float) -> list[Reason]:
    """What real networks do and ASTRA-sim does not know."""
    cluster = case.site.step.cluster

    def changed(**fields: object) -> float:
        levels = tuple(replace(level, **fields) for level in cluster.network)  # type: ignore[arg-type]
        return case.physical(replace(cluster, network=levels))

    nominal = changed(curves={})
    found = [
        (nominal - physical, f"measured networks reach {nominal / physical:.0%} of what nominal rates would give"),
        (case.physical(routed=False) - physical, "every copy of a token is sent, not one to each node"),
    ]
    if any(level.in_network for level in cluster.network):
        found.append((changed(in_network=False) - physical, "switches that sum and copy are not known"))
    return found


def _of_astra_sim(case: Case, astra: float) -> list[Reason]:
    """What ASTRA-sim does and real networks do not."""
    net, system = case.site.found.network, case.site.found.machine.system
    used, ranks = _dims(case), case.group.size
    alone = len(net.dims) > 1 and not case.group.dims  # a communicator beside several dims is one ring
    rings = {index for index in used if net.dims[index].kind == "Ring"}
    free = case.astra(_changed(net, used, latency=0.0), replace(system, endpoint_delay=1))
    found = [((astra - free) - case.physical(size=1.0), "latencies of all steps of the algorithm add up")]
    if case.node.kind != SEND:
        idle = case.astra(system=replace(system, memory_bandwidth=1e9))
        found.append((astra - idle, "a reduction takes three passes of local memory, in line with the messages"))
        if case.node.comm == "all_to_all" and (alone or rings):
            steps = ranks * (ranks - 1) // 2
            found.append((astra * (1.0 - 2.0 / ranks), f"all-to-all on a ring of {ranks} is {steps} whole steps"))
    if rings:
        both = net
        for index in rings:
            both = _changed(both, [index], bandwidth=2.0 * net.dims[index].bandwidth)
        found.append((astra - case.astra(both), "rings run one way, half of a device's links idle"))
    return found


def _changed(net: Network, indices: Iterable[int], **fields: float) -> Network:
    """The network with fields of some dims replaced."""
    dims: list[Dim] = list(net.dims)
    for index in indices:
        dims[index] = replace(dims[index], **fields)  # type: ignore[arg-type]
    return Network(tuple(dims))
