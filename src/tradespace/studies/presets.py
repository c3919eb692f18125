"""A study's presets: clusters, strategy and assumptions from catalog/studies, as inputs of `predict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from tradespace.inputs import load
from tradespace.inputs.build import build
from tradespace.inputs.cluster import Cluster, MemoryTier
from tradespace.inputs.files import CATALOG, read
from tradespace.inputs.model import Model
from tradespace.inputs.settings import apply
from tradespace.inputs.strategy import Strategy
from tradespace.num import Num
from tradespace.predict import predict
from tradespace.step import Step

LARGEST_TENSOR = 1024
BATCH, EXPANSION = "sequences_per_device", "expansion."


@dataclass(frozen=True)
class Setting:
    """A value of the preset that is replaced: `path` as in --set, on one cluster of the study or on all ("")."""

    path: str
    value: Any
    cluster: str = ""


@cache
def preset(study: str) -> dict[str, Any]:
    """The catalog entry of a study.

    >>> preset("comet")["per"]
    1024
    """
    return read(CATALOG / "studies" / f"{study}.toml")


@dataclass(frozen=True, eq=False)
class Case:
    """Inputs of one cluster of a study; `per` = sequences that times are given for."""

    model: Model
    cluster: Cluster
    strategy: Strategy
    label: str
    per: float

    def step(self, tensor: Num) -> Step:
        """The step at other tensor degrees."""
        return predict(self.model, self.cluster, replace(self.strategy, tensor=tensor))

    @property
    def degrees(self) -> tuple[int, ...]:
        """Tensor degrees of MPx_DPy: powers of two up to the devices."""
        most = min(int(self.cluster.devices), LARGEST_TENSOR)
        return tuple(2**i for i in range(most.bit_length()))

    @property
    def curve(self) -> Step:
        """The step over all degrees, one axis."""
        return self.step(tensor=np.asarray(self.degrees, dtype=np.float64))

    def seconds(self, step: Step) -> Num:
        """Seconds for `per` sequences."""
        return step.step_time * (self.per / step.strategy.global_batch)


def case(study: str, cluster: str, settings: Sequence[Setting] = (), *, expanded: bool = False) -> Case:
    """The inputs of a cluster of the study, with settings replaced; `expanded` adds the study's memory expansion.

    >>> found = case("comet", "dgx", [Setting("device.peak", "624 TFLOP/s", "dgx")])
    >>> found.cluster.device.peak, found.strategy.global_batch
    (624000000000000.0, 1024.0)
    """
    table = preset(study)
    mine = [setting for setting in settings if setting.cluster in ("", cluster)]
    tier = {"name": "expanded", **table["expansion"]}
    batch = table[BATCH]
    texts = []
    for setting in mine:
        if setting.path == BATCH:
            batch = setting.value
        elif setting.path.startswith(EXPANSION):
            tier[setting.path.removeprefix(EXPANSION)] = setting.value
        else:
            texts.append(f"{setting.path}={setting.value}")
    loaded = _cluster(table, cluster, tier if expanded else None)
    global_batch = batch * float(loaded.devices) if isinstance(batch, (int, float)) else float(table["per"])
    strategy = load.strategy(f"{table['strategy']},global_batch={global_batch:.0f}", cluster=loaded)
    inputs = apply(texts, load.model(table["model"]), loaded, strategy)
    return Case(*inputs, label=table["clusters"][cluster]["label"], per=float(table["per"]))


def _cluster(table: Mapping[str, Any], key: str, tier: Mapping[str, Any] | None) -> Cluster:
    """One cluster of the preset, completed by what is common to all."""
    common, own = table["common"], table["clusters"][key]
    memory = [{**common["memory"], **own["device"]["memory"]}]
    if tier is not None:
        memory.append(dict(tier))
    return load.cluster(
        {
            "key": f"comet-{key}",
            "name": own["label"],
            "device": {**common["device"], **own["device"], "memory": memory},
            "devices": own["devices"],
            "network": [{**common["dim"], **dim} for dim in own["network"]],
            "source": own["device"]["source"],
            **common["cluster"],
        }
    )


def expansion(study: str) -> MemoryTier:
    """The memory expansion of a study."""
    return build(MemoryTier, {"name": "expanded", **preset(study)["expansion"]}, f"studies/{study}.expansion")


def alternatives(study: str) -> list[tuple[Mapping[str, Any], Setting]]:
    """Every assumption with each of its alternative values."""
    return [
        (entry, Setting(entry["path"], value, entry.get("cluster", "")))
        for entry in preset(study)["assumptions"]
        for value in entry["range"]
    ]
