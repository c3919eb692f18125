"""The rows behind COMET's figures, each from calls of `predict` with open axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradespace.inputs import load
from tradespace.inputs.settings import replace_path
from tradespace.predict import predict
from tradespace.step import Step
from tradespace.studies.comet import STUDY, Curve
from tradespace.studies.presets import Case, case, preset

Rows = list[dict[str, Any]]
PAPER = ("dgx", "tpu", "dojo")
"""Clusters of the paper's first version."""
CURVES = {"dgx": 256, "tpu": 512, "dojo": 64}
"""Largest tensor degree drawn."""
LITTLE = 1.1
"""A doubling of a resource that gains less than this no longer pays: a convention of the figure."""


def label(degree: float, devices: float) -> str:
    """MPx_DPy.

    >>> label(64.0, 1024.0)
    'MP64_DP16'
    """
    return f"MP{degree:.0f}_DP{devices / degree:.0f}"


def _part(values: Any, curve: Curve, i: int) -> float:
    return float(np.broadcast_to(values, curve.degrees.shape)[i])


def step_rows() -> Rows:
    """Figure 1: seconds per 1,024 sequences by part, degree and cluster."""
    return _curve_rows(lambda curve, i: {p: _part(v, curve, i) for p, v in curve.step.time.items()}, "seconds")


def memory_rows() -> Rows:
    """Figure 2: GB per device by part, degree and cluster."""
    stage = "first"
    return _curve_rows(
        lambda curve, i: {p: _part(v, curve, i) / 1e9 for p, v in curve.step.stages[stage].items()}, "GB"
    )


def _curve_rows(parts: Any, value: str) -> Rows:
    rows: Rows = []
    for name in PAPER:
        curve = Curve.of(name)
        devices = float(curve.case.cluster.devices)
        scale = curve.case.per / float(curve.case.strategy.global_batch) if value == "seconds" else 1.0
        for i, degree in enumerate(curve.degrees):
            if degree > CURVES[name]:
                break
            found = parts(curve, i)
            common = {"cluster": name, "panel": curve.case.label, "rank": i, "strategy": label(degree, devices)}
            for order, (part, amount) in enumerate(found.items()):
                if amount > 0.0:
                    rows.append(
                        {**common, "fits": bool(curve.fits[i]), "part": part, "order": order, value: amount * scale}
                    )
    return rows


def capacity_rows() -> Rows:
    """Capacity lines of figure 2: local memory, and with expansion."""
    rows: Rows = []
    for name in PAPER:
        for expanded, kind in ((False, "local"), (True, "local and expanded")):
            found = case(STUDY, name, expanded=expanded)
            size = sum(float(tier.capacity) for tier in found.cluster.device.memory)
            rows.append({"cluster": name, "kind": kind, "GB": size / 1e9})
    return rows


def _grid(found: Case, paths: dict[str, NDArray[np.float64]], keep: Any = None) -> tuple[Step, NDArray[np.float64]]:
    """The step over axes of the cluster (first) and all tensor degrees (last)."""
    cluster = found.cluster
    for i, (path, values) in enumerate(paths.items()):
        shape = [1] * (len(paths) + 1)
        shape[i] = len(values)
        cluster = replace_path(cluster, path, values.reshape(shape))
    degrees = np.asarray(found.degrees, dtype=np.float64)
    if keep is not None:
        degrees = degrees[keep(degrees)]
    return predict(found.model, cluster, replace(found.strategy, tensor=degrees)), degrees


def _best(found: Case, step: Step, shape: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Seconds per 1,024 sequences of the best degree that fits (infinite without one), and its index."""
    seconds = np.where(step.fits & step.legal, found.seconds(step), np.inf)
    full = np.broadcast_to(seconds, shape)
    return full.min(axis=-1), full.argmin(axis=-1)


def expansion_rows() -> Rows:
    """Figure 3: speedup of the best strategy over the best without expansion, by expanded bandwidth and capacity."""
    found = case(STUDY, "dgx", expanded=True)
    base = Curve.of("dgx").best
    capacity = np.array([0.0, 20e9, 40e9, 80e9, 160e9, 240e9, 480e9, 1e12, 2e12])
    bandwidth = np.array([50e9, 100e9, 200e9, 450e9, 900e9, 2039e9])
    paths = {"device.memory.expanded.capacity": capacity, "device.memory.expanded.bandwidth": bandwidth}
    step, degrees = _grid(found, paths)
    best, index = _best(found, step, (len(capacity), len(bandwidth), len(degrees)))
    devices = float(found.cluster.devices)
    return [
        {
            "capacity_GB": size / 1e9,
            "bandwidth_GB_s": rate / 1e9,
            "seconds": float(best[i, j]),
            "speedup": base / float(best[i, j]),
            "strategy": label(degrees[index[i, j]], devices),
        }
        for i, size in enumerate(capacity)
        for j, rate in enumerate(bandwidth)
    ]


def compute_rows() -> Rows:
    """Figure 4: best step time against the peak, memory and network fixed; `pays` until a doubling gains under 10 %."""
    rows: Rows = []
    factors = 2.0 ** np.arange(-2.0, 6.5, 0.5)
    for name in PAPER:
        for expanded in (False, True):
            found = case(STUDY, name, expanded=expanded)
            peaks = float(found.cluster.device.peak) * factors
            step, degrees = _grid(found, {"device.peak": peaks})
            best, index = _best(found, step, (len(peaks), len(degrees)))
            gains = [best[i] / best[min(i + 2, len(best) - 1)] for i in range(len(best))]
            stop = next((i for i, gain in enumerate(gains) if gain < LITTLE), len(best) - 1)
            rows += [
                {
                    "cluster": found.cluster.device.name,
                    "memory": "with expansion" if expanded else "local memory",
                    "factor": float(factors[i]),
                    "TFLOP_s": peaks[i] / 1e12,
                    "seconds": float(best[i]),
                    "strategy": label(degrees[index[i]], float(found.cluster.devices)),
                    "stops_paying": i == stop,
                }
                for i in range(len(peaks))
                if np.isfinite(best[i])
            ]
    return rows


def network_rows() -> Rows:
    """Figure 5: best seconds on DGX A100 by bandwidth inside and between pods."""
    found = case(STUDY, "dgx")
    inner = np.array([75e9, 150e9, 300e9, 450e9, 600e9, 900e9])
    outer = np.array([6.25e9, 12.5e9, 25e9, 31.25e9, 50e9, 100e9, 200e9])
    step, degrees = _grid(found, {"network.pod.bandwidth": inner, "network.fabric.bandwidth": outer})
    best, index = _best(found, step, (len(inner), len(outer), len(degrees)))
    devices = float(found.cluster.devices)
    return [
        {
            "pod_GB_s": a / 1e9,
            "fabric_GB_s": b / 1e9,
            "seconds": float(best[i, j]),
            "strategy": label(degrees[index[i, j]], devices),
        }
        for i, a in enumerate(inner)
        for j, b in enumerate(outer)
    ]


def ratio_rows() -> Rows:
    """Figure 5: a fixed sum of both bandwidths, split in different ratios."""
    rows: Rows = []
    ratios = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0])
    for total in (325e9, 650e9):
        for degree in (16.0, 64.0):
            found = case(STUDY, "dgx")
            cluster = replace_path(found.cluster, "network.fabric.bandwidth", total / (1.0 + ratios))
            cluster = replace_path(cluster, "network.pod.bandwidth", total * ratios / (1.0 + ratios))
            step = predict(found.model, cluster, replace(found.strategy, tensor=degree))
            name = f"{label(degree, float(cluster.devices))}, {total / 1e9:.0f} GB/s"
            rows += [
                {"case": name, "ratio": float(ratio), "seconds": float(seconds)}
                for ratio, seconds in zip(ratios, np.broadcast_to(found.seconds(step), ratios.shape), strict=True)
            ]
    return rows


def dlrm_rows(bandwidths: Sequence[float] | None = None) -> Rows:
    """Figure 6: milliseconds per step and samples per second and node of DLRM-1.2T, by nodes and expanded bandwidth
    (in byte/s; the study's where none are given).

    Efficiency is per node, over 64 nodes whose local memory holds the tables.
    """
    found = case(STUDY, "dgx", expanded=True)
    table = preset(STUDY)["dlrm"]
    nodes = np.asarray(table["nodes"], dtype=np.float64)
    bandwidth = np.array(table["expanded_bandwidths"] if bandwidths is None else bandwidths, dtype=np.float64)
    cluster = replace_path(found.cluster, "device.memory.expanded.bandwidth", bandwidth[:, None])
    cluster = replace_path(cluster, "device.memory.expanded.capacity", float(table["expanded_capacity"]))
    strategy = replace(found.strategy, global_batch=float(table["batch"]), recompute=0.0, tensor=1.0)
    step = predict(load.model(table["model"]), replace(cluster, devices=nodes[None, :]), strategy)
    shape = (len(bandwidth), len(nodes))
    seconds, fits = (np.broadcast_to(x, shape) for x in (step.step_time, step.fits))
    rate = strategy.global_batch / seconds / nodes[None, :]
    reference = rate[-1, list(nodes).index(float(table["reference_nodes"]))]
    return [
        {
            "nodes": int(n),
            "expanded": f"{b / 1e9:,.0f} GB/s",
            "bandwidth_GB_s": b / 1e9,
            "milliseconds": float(seconds[i, j]) * 1e3,
            "samples_per_s_per_node": float(rate[i, j]),
            "efficiency": float(rate[i, j] / reference),
            "GB_per_node": float(np.broadcast_to(step.memory_total, shape)[i, j]) / 1e9,
        }
        for i, b in enumerate(bandwidth)
        for j, n in enumerate(nodes)
        if fits[i, j]
    ]


def dlrm_break_even() -> dict[int, float]:
    """Expanded bandwidth, in GB/s per node, above which so few nodes do more work each than 64 nodes without expansion;
    to 1 %."""
    found: dict[int, float] = {}
    for row in dlrm_rows([float(rate) for rate in 100e9 * 1.01 ** np.arange(400)]):
        if row["efficiency"] >= 1.0 and row["nodes"] < preset(STUDY)["dlrm"]["reference_nodes"]:
            found.setdefault(row["nodes"], float(row["bandwidth_GB_s"]))
    return found


def cluster_rows() -> Rows:
    """Figure 7: every cluster at its best strategy that fits, with and without expansion, over DGX A100 without."""
    base = Curve.of("dgx").best
    rows: Rows = []
    for name in preset(STUDY)["clusters"]:
        for expanded in (False, True):
            curve = Curve.of(name, expanded=expanded)
            if not curve.best_degree:
                continue
            rows.append(
                {
                    "cluster": curve.case.label,
                    "memory": "with expansion" if expanded else "local memory",
                    "seconds": curve.best,
                    "speedup": base / curve.best,
                    "strategy": label(curve.best_degree, float(curve.case.cluster.devices)),
                }
            )
    return rows
