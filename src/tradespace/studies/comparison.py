"""Beyond the paper: clusters on a recommendation model and on a mixture of experts; measured DLRM runs."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import Any

from tradespace.explore.plan import plan
from tradespace.inputs import load
from tradespace.inputs.files import CATALOG
from tradespace.predict import predict
from tradespace.studies.comet import STUDY
from tradespace.studies.presets import case, preset

Rows = list[dict[str, Any]]
DEVICES, GLOBAL_BATCH = 1024.0, 4096
CLUSTERS = {
    "dgx-v100": "fp16",
    "dgx-a100": "bf16",
    "dgx-h100": "bf16",
    "dgx-b200": "bf16",
    "tpu-v4": "bf16",
    "dojo": "bf16",
}
"""Catalog clusters of the comparison, and the 16-bit type that each device multiplies in."""


def dlrm_clusters() -> Rows:
    """DLRM with 1.2 T parameters on 64 devices of each of the study's clusters, with and without expansion; clusters
    that cannot hold it are left out."""
    table = preset(STUDY)["dlrm"]
    rows: Rows = []
    for name in preset(STUDY)["clusters"]:
        for expanded in (False, True):
            found = case(STUDY, name, expanded=expanded)
            cluster = replace(found.cluster, devices=float(table["reference_nodes"]))
            strategy = replace(found.strategy, global_batch=float(table["batch"]), recompute=0.0, tensor=1.0)
            step = predict(load.model(table["model"]), cluster, strategy)
            if step.fits:
                memory = "with expansion" if expanded else "local memory"
                device = cluster.device.name
                rows.append({"cluster": f"64 {device}", "memory": memory, "seconds": float(step.step_time)})
    return rows


def expert_clusters() -> Rows:
    """DeepSeek-V3 on 1,024 devices of catalog clusters, each at its best strategy without context ranks.

    Expanded memory has no effect here: outside COMET's loop tensors stay in local memory.
    """
    model = load.model("deepseek-v3")
    rows: Rows = []
    for key, precision in CLUSTERS.items():
        cluster = load.cluster(key, devices=DEVICES)
        text = f"global_batch={GLOBAL_BATCH},precision={precision}"
        best = plan(model, cluster, load.strategy(text, cluster=cluster), {"context": 1.0}, top=1).best
        if best is not None:
            used = best.to_dict()["strategy"]
            words = " ".join(f"{name.upper()}{used[name]}" for name in ("tp", "ep", "pp", "dp"))
            rows.append(
                {"cluster": f"1,024 {cluster.device.name}", "seconds": float(best.step_time), "strategy": words}
            )
    return rows


def dlrm_runs() -> Rows:
    """Published MLPerf runs of DLRM-DCNv2 beside predictions: {id, device, devices, global_batch, measured_ms,
    predicted_ms, error, skipped}; skipped where the catalog has no cluster of the device."""
    model = load.model("dlrm-dcnv2")
    rows: Rows = []
    with (CATALOG / "published" / "dlrm.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            measured = float(row["step_s"])
            found = {name: row[name] for name in ("id", "device", "devices", "global_batch")}
            found |= {"measured_ms": measured * 1e3, "predicted_ms": None, "error": None, "skipped": ""}
            if row["cluster"]:
                cluster = load.cluster(row["cluster"], devices=float(row["devices"]))
                text = f"global_batch={row['global_batch']},precision=fp16,optimizer=sgd,profile=hugectr"
                seconds = float(predict(model, cluster, load.strategy(text, cluster=cluster)).step_time)
                found |= {"predicted_ms": seconds * 1e3, "error": seconds / measured - 1.0}
            else:
                found["skipped"] = f"the catalog has no cluster of {row['device']}"
            rows.append(found)
    return rows
