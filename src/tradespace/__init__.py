"""tradespace: predict a training step, explore how to run it and what to buy.

>>> import tradespace as ts
>>> cluster = ts.cluster("dgx-h100", devices=8)
>>> strategy = ts.strategy("tp=2,global_batch=64,recompute=selective", cluster=cluster)
>>> step = ts.predict(ts.model("llama-3.1-8b"), cluster, strategy)
>>> round(step.to_dict()["mfu"], 1)
0.4
"""

import importlib
from typing import Any

from tradespace.errors import InputError
from tradespace.explore.exploration import Explored, explore
from tradespace.explore.plan import Plan, plan
from tradespace.explore.space import Axis, Space
from tradespace.explore.studies import Study, study
from tradespace.explore.sweep import Swept, sweep
from tradespace.inputs.cluster import Cluster, Device, Dim, MemoryTier
from tradespace.inputs.load import cluster, device, model, strategy
from tradespace.inputs.model import Model
from tradespace.inputs.settings import replace_path
from tradespace.inputs.strategy import Strategy
from tradespace.predict import predict
from tradespace.step import Step
from tradespace.workload.count import flops_per_token, parameters

__version__ = "0.1.0"

_LATER = {
    "Goal": "tradespace.explore.size",
    "query": "tradespace.explore.query",
    "run_study": "tradespace.explore.stored",
    "population": "tradespace.explore.population",
    "size": "tradespace.explore.size",
    "sobol": "tradespace.explore.sensitivity",
    "whatif": "tradespace.explore.whatif",
}
"""Names that are imported when they are first used."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'tradespace' has no attribute '{name}'")
    return getattr(importlib.import_module(_LATER[name]), name)


__all__ = [
    "Axis",
    "Cluster",
    "Device",
    "Dim",
    "Explored",
    "InputError",
    "MemoryTier",
    "Model",
    "Plan",
    "Space",
    "Step",
    "Strategy",
    "Study",
    "Swept",
    "cluster",
    "device",
    "explore",
    "flops_per_token",
    "model",
    "parameters",
    "plan",
    "predict",
    "query",
    "replace_path",
    "run_study",
    "strategy",
    "study",
    "sweep",
]
