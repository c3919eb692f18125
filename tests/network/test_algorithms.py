"""Each algorithm's closed form against a simulation of its steps on the links of its topology.

The simulation knows links and messages only: in every step each rank sends what it holds, a step takes the latency of
its hops and as long as its busiest link. It checks too that afterwards every rank has what it should have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from tradespace.inputs.cluster import Dim
from tradespace.network.algorithms import direct, halving_doubling, in_switch, line, ring, table, tree, two_way_ring
from tradespace.network.placement import Ranks

B, ALPHA, V = 1e9, 1e-6, 6e6
Half = tuple[int, int]  # half of a shard: (rank that it comes from, 0 or 1)
Message = tuple[int, int, list[Half]]  # from, to, what
Step = list[Message]
Links = Callable[[int, int], list[tuple[float, list[tuple[object, float]]]]]  # routes: (share, [(link, byte/s)])


def halves(*shards: int) -> list[Half]:
    return [(shard, part) for shard in shards for part in (0, 1)]


WHOLE = 9  # devices of a fully connected dim, more than any group in it


def switch(_: int) -> Links:
    return lambda a, b: [(1.0, [(("up", a), B), (("down", b), B)])]


def fully_connected(_: int) -> Links:
    return lambda a, b: [(1.0, [((a, b), B / (WHOLE - 1))])]


def path(a: int, b: int, step: int, n: int) -> list[tuple[object, float]]:
    found: list[tuple[object, float]] = []
    while a != b:
        found.append(((a, step), B / 2))
        a = (a + step) % n
    return found


def physical_ring(n: int) -> Links:
    def routes(a: int, b: int) -> list[tuple[float, list[tuple[object, float]]]]:
        up, down = (b - a) % n, (a - b) % n
        ways = [(1, up)] if up < down else [(-1, down)] if down < up else [(1, up), (-1, down)]
        return [(1.0 / len(ways), path(a, b, step, n)) for step, _ in ways]

    return routes


def physical_line(n: int) -> Links:
    return lambda a, b: [(1.0, path(a, b, 1 if b > a else -1, n))]


def seconds(steps: Iterable[Step], links: Links, shard: float) -> float:
    """Latency of every step's longest route and the time of its busiest link."""
    time = 0.0
    for step in steps:
        load: Counter[object] = Counter()
        hops = 0
        for a, b, what in step:
            for share, route in links(a, b):
                hops = max(hops, sum(1 for link, _ in route if not (isinstance(link, tuple) and link[0] == "down")))
                for link, rate in route:
                    load[link] += share * len(what) * shard / 2 / rate
        time += hops * ALPHA + max(load.values())
    return time


def gathered(steps: Iterable[Step], n: int) -> bool:
    """Whether every rank ends with all shards, sending only what it had at the start of the step."""
    held = [set(halves(rank)) for rank in range(n)]
    for step in steps:
        before = [set(have) for have in held]
        for a, b, what in step:
            assert set(what) <= before[a], f"rank {a} does not have what it sends"
            held[b] |= set(what)
    return all(len(have) == 2 * n for have in held)


def ring_steps(n: int) -> list[Step]:
    return [[(i, (i + 1) % n, halves((i - k) % n)) for i in range(n)] for k in range(n - 1)]


def two_way_steps(n: int) -> list[Step]:
    steps = []
    for k in range((n - 1) // 2):
        up: Step = [(i, (i + 1) % n, halves((i - k) % n)) for i in range(n)]
        steps.append(up + [(i, (i - 1) % n, halves((i + k) % n)) for i in range(n)])
    if n % 2 == 0:  # the shard from the far side comes in two halves, one from each side
        k = n // 2 - 1
        up = [(i, (i + 1) % n, [((i - k) % n, 0)]) for i in range(n)]
        steps.append(up + [(i, (i - 1) % n, [((i + k) % n, 1)]) for i in range(n)])
    return steps


def line_steps(n: int) -> list[Step]:
    return [
        [(i, i + 1, halves(i - k)) for i in range(n - 1) if i >= k]
        + [(i, i - 1, halves(i + k)) for i in range(1, n) if i + k < n]
        for k in range(n - 1)
    ]


def doubling_steps(n: int) -> list[Step]:
    steps, width = [], 1
    while width < n:
        steps.append([(i, i ^ width, halves(*range(i // width * width, i // width * width + width))) for i in range(n)])
        width *= 2
    return steps


def direct_steps(n: int) -> list[Step]:
    return [[(i, j, halves(i)) for i in range(n) for j in range(n) if i != j]]


GATHERS = [
    ("ring", ring, "switch", switch, ring_steps, range(2, 10)),
    ("two-way ring", two_way_ring, "ring", physical_ring, two_way_steps, range(2, 10)),
    ("line", line, "mesh", physical_line, line_steps, range(2, 10)),
    ("doubling", halving_doubling, "switch", switch, doubling_steps, (2, 4, 8, 16)),
    ("direct on a switch", direct, "switch", switch, direct_steps, range(2, 10)),
    ("direct", direct, "fully_connected", fully_connected, direct_steps, range(2, 10)),
]


@pytest.mark.parametrize(("module", "kind", "links", "steps", "sizes"), [g[1:] for g in GATHERS])
def test_gather_scatter_and_reduce(module, kind, links, steps, sizes) -> None:  # type: ignore[no-untyped-def]
    """An all-gather as simulated; a reduce-scatter is its mirror image; an all-reduce is one after the other."""
    for n in sizes:
        dim = Dim(name="d", kind=kind, size=9.0, bandwidth=B, latency=ALPHA)
        ranks = Ranks.of(float(n), 1.0 / B)
        program = steps(n)
        assert gathered(program, n)
        expected = seconds(program, links(n), V / n)
        assert module.time("all_gather", dim, ranks, V) == pytest.approx(expected), n
        assert module.time("reduce_scatter", dim, ranks, V) == pytest.approx(expected), n
        assert module.time("all_reduce", dim, ranks, V) == pytest.approx(2 * expected), n


@pytest.mark.parametrize(
    ("module", "kind", "links"),
    [
        (two_way_ring, "ring", physical_ring),
        (line, "mesh", physical_line),
        (direct, "switch", switch),
        (direct, "fully_connected", fully_connected),
    ],
)
def test_all_to_all(module, kind, links) -> None:  # type: ignore[no-untyped-def]
    """Every rank sends V/n to every other one, on the shortest ways."""
    for n in range(2, 10):
        dim = Dim(name="d", kind=kind, size=9.0, bandwidth=B, latency=ALPHA)
        expected = seconds(direct_steps(n), links(n), V / n)
        assert module.time("all_to_all", dim, Ranks.of(float(n), 1.0 / B), V) == pytest.approx(expected), n


def test_two_trees_load_no_rank_with_more_than_its_double() -> None:
    """Sanders, Speck and Traeff 2009: every rank is inner in one of two trees at most, so that 2 V pass its link at
    most, on trees no deeper than log2(n)."""
    for n in (4, 8, 16):
        up, down, inner, depths = Counter[int](), Counter[int](), Counter[int](), []
        for shift in (0, 1):
            parent = {i: _parent(i, n) for i in range(n)}
            edges = {((i + shift) % n): (p + shift) % n for i, p in parent.items() if p is not None}
            for rank in set(edges.values()):
                inner[rank] += 1
            for child, above in edges.items():
                for src, dst in ((child, above), (above, child)):  # half of V up to be summed, and down again
                    up[src] += 1
                    down[dst] += 1
            depths.append(max(_depth(rank, edges) for rank in range(n)))
        assert max(max(up.values()), max(down.values())) * V / 2 <= 2 * V
        dim = Dim(name="d", kind="switch", size=0.0, bandwidth=B, latency=ALPHA)
        time = tree.time("all_reduce", dim, Ranks.of(float(n), 1.0 / B), V)
        assert time == pytest.approx(2 * max(depths) * ALPHA + 2 * V / B)


def _parent(rank: int, n: int) -> int | None:
    """The in-order binary tree over 1 ... n-1 below root 0: the parent has the next higher lowest bit."""
    if rank == 0:
        return None
    bit = rank & -rank
    above = (rank ^ bit) | (bit << 1)
    return above if above < n else rank ^ bit


def _depth(rank: int, edges: dict[int, int]) -> int:
    return 0 if rank not in edges else 1 + _depth(edges[rank], edges)


def test_sums_in_the_switch() -> None:
    """Up go a rank's V to be summed and its summed V/n to be copied; down as much: (n + 1)/n V each way."""
    for n in range(2, 10):
        dim = Dim(name="d", kind="switch", size=9.0, bandwidth=B, latency=ALPHA, in_network=True)
        up, down = n * (V / n) + V / n, V / n + n * (V / n)
        time = in_switch.time("all_reduce", dim, Ranks.of(float(n), 1.0 / B), V)
        assert time == pytest.approx(2 * ALPHA + max(up, down) / B)


@pytest.mark.parametrize("kind", list(table.LIBRARY))
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather", "all_to_all"])
def test_scalars_equal_arrays(kind: str, collective: str) -> None:
    """Open axes of ranks, bandwidth, latency and size: each element is what the numbers give, bit for bit."""
    counts = np.array([1.0, 2.0, 3.0, 8.0])[:, None, None, None]
    rates = np.array([1e9, 3e10])[:, None, None]
    latencies = np.array([0.0, 1e-6])[:, None]
    volumes = np.array([0.0, 1e3, 7e8])
    dim = Dim(name="d", kind=kind, size=8.0, bandwidth=rates, latency=latencies)
    found = np.broadcast_to(table.fastest(collective, dim, Ranks.of(counts, 1.0 / rates), volumes), (4, 2, 2, 3))
    for i, j, k, m in np.ndindex(4, 2, 2, 3):
        rate, latency = float(rates[j, 0, 0]), float(latencies[k, 0])
        one = Dim(name="d", kind=kind, size=8.0, bandwidth=rate, latency=latency)
        ranks = Ranks.of(float(counts[i, 0, 0, 0]), 1.0 / rate)
        assert table.fastest(collective, one, ranks, float(volumes[m])) == found[i, j, k, m]
