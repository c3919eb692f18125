"""What makes a step fit: single changes of the strategy, or pairs of them, cheapest first; searched, not guessed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from tradespace.explore.plan import experts_of
from tradespace.inputs.strategies import SHORT
from tradespace.inputs.strategy import RECOMPUTE_CODES
from tradespace.predict import predict
from tradespace.step import Step

Change = dict[str, Any]
SHOWN = 5


@dataclass(frozen=True, eq=False)
class Fix:
    """A change of the strategy under which the step surely fits; `price` = its step time over the original one."""

    change: Change
    step: Step
    price: float

    def __str__(self) -> str:
        words = {code: word for word, code in RECOMPUTE_CODES.items()}
        short = {long: key for key, long in SHORT.items()}
        shown = ",".join(
            f"{short.get(name, name)}={words[value] if name == 'recompute' else f'{value:g}'}"
            for name, value in self.change.items()
        )
        size, time = float(self.step.memory_total) / 1e9, float(self.step.step_time)
        return f"{shown}: {size:.1f} GB, {time:.4g} s per step ({self.price - 1.0:+.1%})"


def fixes(step: Step, shown: int = SHOWN) -> list[Fix]:
    """Changes that make a single candidate surely fit, by the step time that they lead to; pairs where no single one
    does. Devices, global batch and model stay.

    >>> from tradespace.inputs import load
    >>> cluster = load.cluster("dgx-h100", devices=8)
    >>> strategy = load.strategy("global_batch=64,zero=0", cluster=cluster)
    >>> large = predict(load.model("llama-3.1-8b", 8192), cluster, strategy)
    >>> bool(large.fits), [sorted(fix.change) for fix in fixes(large)][0]
    (False, ['zero'])
    """
    single = list(_changes(step))
    found = _fitting(step, single)
    if not found:
        pairs = [{**a, **b} for a, b in combinations(single, 2) if not a.keys() & b.keys()]
        found = _fitting(step, pairs)
    return sorted(found, key=lambda fix: fix.price)[:shown]


def _fitting(step: Step, changes: list[Change]) -> list[Fix]:
    found = []
    for change in changes:
        tried = predict(step.model, step.cluster, replace(step.strategy, **change))
        if bool(tried.legal) and bool(tried.fits_surely):
            found.append(Fix(change, tried, float(tried.step_time) / float(step.step_time)))
    return found


def _changes(step: Step) -> Iterator[Change]:
    """One step further along each way to save memory."""
    s = step.strategy
    for code in (1.0, 2.0):
        if float(s.recompute) < code:
            yield {"recompute": code}
    for stage in (1.0, 2.0, 3.0):
        if float(s.zero) < stage:
            yield {"zero": stage}
    if float(s.fused_loss) == 0.0:
        yield {"fused_loss": 1.0}
    half = float(s.micro_batch) / 2.0
    while half >= 1.0 and half == int(half):
        yield {"micro_batch": half}
        half /= 2.0
    for factor in (2.0, 4.0, 8.0):
        yield {"tensor": float(s.tensor) * factor, "sequence_parallel": 1.0}
        yield {"pipeline": float(s.pipeline) * factor}
        yield {"context": float(s.context) * factor}
        if experts_of(step.model):
            yield {"expert": float(s.expert) * factor}
