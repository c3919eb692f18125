"""Sobol indices of functions with known ones, and populations beside exhaustive fronts."""

from __future__ import annotations

import numpy as np
import pytest

from tradespace.errors import InputError
from tradespace.explore.exploration import explore
from tradespace.explore.population import population
from tradespace.explore.sensitivity import sobol
from tradespace.explore.space import Axis, Space
from tradespace.inputs import load

CLUSTER = load.cluster("dgx-h100", 64.0)
MODEL = load.model("llama-3.1-8b")
BASE = load.strategy("tp=2,global_batch=256", cluster=CLUSTER)


def test_indices_of_a_product_are_known() -> None:
    """For x y with x uniform on 1 +- a and y on 1 +- b: variances u = a^2/3, v = b^2/3; first u/(u+v+uv), total
    (u+uv)/(u+v+uv) (Saltelli et al. 2008, Global Sensitivity Analysis, chapter 1)."""
    ranges = {"device.peak": (0.5e15, 1.5e15), "network.fabric.bandwidth": (50e9, 150e9)}
    found = sobol(MODEL, CLUSTER, BASE, ranges, of="device.peak * network.fabric.bandwidth / 1e26", samples=4096)
    u = v = 0.5**2 / 3.0
    for index in found:
        assert index.first == pytest.approx(u / (u + v + u * v), abs=0.01)
        assert index.total == pytest.approx((u + u * v) / (u + v + u * v), abs=0.01)


def test_a_dense_model_hangs_on_the_peak() -> None:
    found = sobol(MODEL, CLUSTER, BASE)
    by_name = {index.field: index for index in found}
    assert found[0].field == "device.peak"
    assert found[0].total > 0.9
    assert by_name["device.memory.hbm.capacity"].total == pytest.approx(0.0, abs=1e-3)
    assert sum(index.first for index in found) == pytest.approx(1.0, abs=0.05)
    again = sobol(MODEL, CLUSTER, BASE)
    assert [index.total for index in again] == [index.total for index in found]


def test_bad_ranges() -> None:
    with pytest.raises(InputError, match="empty"):
        sobol(MODEL, CLUSTER, BASE, {"device.peak": (2e15, 1e15)})
    with pytest.raises(InputError, match="power of two"):
        sobol(MODEL, CLUSTER, BASE, samples=1000)
    with pytest.raises(InputError, match="no field"):
        sobol(MODEL, CLUSTER, BASE, {"peek": (1.0, 2.0)})


def test_a_population_finds_the_front_of_a_sweep() -> None:
    pytest.importorskip("pymoo")
    axes = (
        Axis.of("tp", [1, 2, 4, 8]),
        Axis.of("pp", [1, 2, 4, 8]),
        Axis.of("zero", [0, 1, 2, 3]),
        Axis.of("micro_batch", [1, 2, 4, 8]),
        Axis.of("recompute", [0, 1, 2]),
    )
    space = Space(MODEL, CLUSTER, BASE, axes)
    names = ("step_time_s", "memory_total")
    exact = explore(space, pareto=names).table("pareto")
    found = population(space, names, size=64, generations=30)
    # Hypervolume against a common corner: the share of what the exact front dominates.
    corner = [float(np.max(exact[name])) * 1.1 for name in names]
    assert _dominated(found, names, corner) > 0.97 * _dominated(exact, names, corner)
    assert bool(found["fits"].all())


def _dominated(table: dict[str, np.ndarray], names: tuple[str, str], corner: list[float]) -> float:
    points = sorted(zip(table[names[0]], table[names[1]], strict=True))
    area, height = 0.0, corner[1]
    for x, y in points:
        if x < corner[0] and y < height:
            area += (corner[0] - x) * (height - y)
            height = y
    return area


def test_bad_objectives() -> None:
    space = Space(MODEL, CLUSTER, BASE, (Axis.of("tp", [1, 2]),))
    with pytest.raises(InputError, match="two or more"):
        population(space, ["mfu"])
    with pytest.raises(InputError, match="no result"):
        population(space, ["mfu", "speed"])
