"""Measured runs: a row of normalized columns -> inputs -> prediction -> error.

Columns are those of the normalized table of published runs (docs/validation.md explains them); an empty cell is not
known and never guessed. A row that cannot be predicted is skipped with a reason, not dropped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.evidence import models
from tradespace.inputs.cluster import Cluster
from tradespace.inputs.files import CATALOG, entries, read
from tradespace.inputs.load import cluster, device, optimizer, precision, profile
from tradespace.inputs.model import Model
from tradespace.inputs.strategies import MODULES
from tradespace.inputs.strategy import RECOMPUTE_CODES, Overlap, Precision, Strategy
from tradespace.predict import predict
from tradespace.step import Step

PACKAGED = CATALOG / "published" / "megatron.csv"
LARGEST_FILE, LARGEST_CELL = 64_000_000, 1e7
SWITCHES = ("flash",)  # columns that may be 0 although they are 1 where nothing is stated
BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0}
NEEDED = ("layers", "hidden", "heads", "seq_len", "device", "n_devices", "global_batch", "step_s", "framework")
Row = Mapping[str, str]


class SkipError(Exception):
    """A row that cannot be predicted, with the reason."""


@dataclass(frozen=True, eq=False)
class Compared:
    """A measured run and its prediction; `step` is None where the row was skipped for `skipped`."""

    id: str
    source: str
    framework: str
    device: str
    measured: float
    measured_memory: float | None
    step: Step | None
    skipped: str

    @property
    def error(self) -> float:
        """Predicted over measured step time, minus 1."""
        assert self.step is not None
        return float(self.step.step_time) / self.measured - 1.0


@cache
def _systems() -> dict[str, Any]:
    return read(CATALOG / "published" / "systems.toml")


def rows_of(path: Path | str) -> list[dict[str, str]]:
    """Rows of a CSV file of runs; the first column is the id whatever its header."""
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{path}: no such file; --data takes a CSV of runs with the columns of docs/validation.md")
    if file.stat().st_size > LARGEST_FILE:
        raise InputError(
            f"{path}: {file.stat().st_size / 1e6:.0f} MB, but at most {LARGEST_FILE / 1e6:.0f} MB are read"
        )
    try:
        rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8")), restval=""))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a CSV file in UTF-8 ({error})") from error
    if not rows:
        raise InputError(f"{path}: no runs; --data takes a CSV of runs with the columns of docs/validation.md")
    missing = [name for name in NEEDED if name not in rows[0]]
    if missing:
        raise InputError(f"{path}: columns missing: {', '.join(missing)}; docs/validation.md lists them")
    return rows


def number(row: Row, name: str, default: float | None = None) -> float:
    """A numeric cell; the default where it is empty, SkipError where there is none or where it cannot be right."""
    text = (row.get(name) or "").strip()
    if not text:
        if default is None:
            raise SkipError(f"{name} is not stated")
        return default
    try:
        value = float(text)
    except ValueError:
        raise SkipError(f"{name} = {text!r:.40} is not a number") from None
    may_be_zero = default == 0.0 or name in SWITCHES
    if not 0.0 <= value <= LARGEST_CELL or (value == 0.0 and not may_be_zero):
        raise SkipError(f"{name} = {text!r:.40} is out of range")
    if value % 1.0 and (default == 1.0 or (default is None and name != "step_s")):
        raise SkipError(f"{name} = {text!r:.40} is no whole number")
    return value


def model_of(row: Row) -> Model:
    """The model of a row; a row whose columns do not give one is skipped."""
    return models.model_of(row, number, SkipError)


def cluster_of(row: Row) -> Cluster:
    """The row's devices on the network of its system, with the row's own rate between nodes.

    Links inside a node are the device's (a row that repeats a simulator's setting does not measure them); a switched
    domain takes the row's size.
    """
    found = _system_of(row)
    base = cluster(found["cluster"])
    key = found.get("device", row["device"])
    if base.device.key != key:
        base = replace(base, device=device(key))
    *inner, outer = base.network
    devices = number(row, "n_devices")
    if len(inner) == 1 and inner[0].kind == "switch":
        domain = whole_domain(devices, number(row, "domain_size", float(inner[0].size)))
        inner = [replace(inner[0], size=domain)]
    rate = number(row, "inter_gbps_bytes", float(outer.bandwidth) / 1e9) * 1e9
    network = (*inner, replace(outer, size=0.0, bandwidth=rate))
    return replace(base, network=network, devices=devices)


def _system_of(row: Row) -> dict[str, str]:
    """The first system rule that matches a row: by source, by device variant, else by device."""
    systems = _systems()
    for rule in systems["system"]:
        in_source = rule.get("source", "") in row.get("source", "")
        if in_source and rule["device"] == row["device"] and rule.get("variant", "") in row.get("device_variant", ""):
            return {"cluster": rule["cluster"], "device": rule.get("part", row["device"])}
    if row["device"] not in systems["cluster"]:
        raise SkipError(f"no system is known for device {row['device']}")
    return {"cluster": systems["cluster"][row["device"]]}


def whole_domain(devices: float, domain: float) -> float:
    """Devices of a domain that a job fills when it is spread evenly: the largest divisor of its devices that fits in
    (256 devices on racks of 72 take 64 of each).

    >>> whole_domain(256.0, 72.0), whole_domain(16.0, 8.0)
    (64.0, 8.0)
    """
    return max(float(d) for d in range(1, int(min(domain, devices)) + 1) if devices % d == 0)


def precision_of(row: Row) -> Precision:
    """The recipe of a row: its GEMM type with the bytes of its own parameter and gradient types."""
    kind = row.get("gemm_dtype") or "bf16"
    if kind == "mxfp8":
        kind = "fp8"  # block scales change neither the rate nor, to what is published, the cast traffic
    if kind not in ("bf16", "fp16", "fp8", "fp32"):
        raise SkipError(f"GEMMs in {kind} are not modelled yet")
    if row.get("param_dtype") == "fp8" and row["device"] in _systems()["fp8_weights"]["devices"]:
        kind = "fp8-weights"
    recipe = precision(kind)
    gradient = BYTES.get(row.get("grad_dtype") or "", float(recipe.gradient))
    return replace(recipe, gradient=gradient, reduce=gradient)


def profile_of(row: Row) -> str:
    """Key of the framework profile: the first rule of catalog/published/systems.toml that matches, or the profile
    that the row itself names."""
    year = number(row, "year", 9999.0)
    for rule in _systems()["rule"]:
        here = rule.get("source", "") in row.get("source", "") and year <= rule.get("until", 9999)
        if here and rule.get("framework", row["framework"]) == row["framework"]:
            return str(rule["profile"])
    if row["framework"] in entries("profiles"):
        return row["framework"]
    raise SkipError(f"no profile for framework {row['framework']}{nearest(row['framework'], entries('profiles'))}")


def strategy_of(row: Row) -> Strategy:
    """The strategy of a row; recomputation that is not published or not modelled is skipped."""
    kind = row.get("recompute_kind") or "unknown"
    modules = tuple((row.get("recompute_modules") or "attention_core").split(";"))
    unknown = [module for module in modules if module not in MODULES]
    if kind not in RECOMPUTE_CODES or (kind == "selective" and unknown):
        raise SkipError(f"recompute {' '.join([kind, *unknown])} is not modelled yet")
    hidden = number(row, "a2a_overlap", 0.0)
    return Strategy(
        profile=profile(profile_of(row)),
        precision=precision_of(row),
        optimizer=optimizer("adam"),
        global_batch=number(row, "global_batch"),
        tensor=number(row, "tp", 1.0),
        sequence_parallel=number(row, "sequence_parallel", 0.0),
        context=number(row, "cp", 1.0),
        pipeline=number(row, "pp", 1.0),
        virtual_stages=number(row, "virtual_stages", 1.0),
        zero=number(row, "zero", 0.0),
        shard=number(row, "shard_degree", 0.0),
        micro_batch=number(row, "micro_batch_device"),
        recompute=RECOMPUTE_CODES[kind],
        flash=number(row, "flash", 1.0),
        cuda_graphs=number(row, "cuda_graphs", 0.0),
        modules=modules,
        expert=number(row, "ep", 1.0),
        expert_tensor=1.0,
        overlap=Overlap(expert=hidden),
    )


def compare(row: Row) -> Compared:
    """One measured run beside its prediction."""
    name = str(next(iter(row.values()))).rsplit(":", 1)[-1]
    step, skipped, measured = None, "", 0.0
    try:
        measured = number(row, "step_s")
        step = predict(model_of(row), cluster_of(row), strategy_of(row))
    except SkipError as reason:
        skipped = str(reason)
    memory = (row.get("measured_memory_bytes") or "").strip()
    return Compared(
        id=name,
        source=name.rsplit("-", 1)[0],
        framework=row["framework"],
        device=row["device"],
        measured=measured,
        measured_memory=float(memory) if memory else None,
        step=step,
        skipped=skipped,
    )


def usable(row: Row) -> bool:
    """Rows to validate on: `use` = test and `complete` = 1, where the table has these columns."""
    return row.get("use", "test") == "test" and row.get("complete", "1") == "1"


def summary(compared: Iterable[Compared]) -> dict[str, float]:
    """Errors of a group: number, median and mean of |error|, median signed error (bias)."""
    return errors_summary([row.error for row in compared if row.step is not None])


def errors_summary(errors: Sequence[float]) -> dict[str, float]:
    """Number, median and mean of |error|, median signed error (bias); empty without errors."""
    if not errors:
        return {}
    size = [abs(error) for error in errors]
    return {
        "n": len(errors),
        "median_abs_error": median(size),
        "mean_abs_error": mean(size),
        "bias": median(errors),
    }
