"""A whole training run: from the time of a step to days, device-hours, money, energy and carbon."""

from __future__ import annotations

from dataclasses import dataclass

from tradespace.cost.goodput import best_interval, checkpoint_time, goodput, job_mtbf
from tradespace.cost.price import rate, site_power
from tradespace.num import Num, ceil, maximum, where
from tradespace.step import Step


@dataclass(frozen=True, eq=False)
class Goodput:
    """Share of the time that trains, and what it rests on: seconds per checkpoint, between them, between failures."""

    share: Num
    write: Num
    interval: Num
    mtbf: Num
    checkpoint: Num


@dataclass(frozen=True, eq=False)
class Run:
    """Training on `tokens` tokens: steps, seconds with failures and checkpoints, USD, joule, kg CO2 equivalent."""

    tokens: Num
    steps: Num
    seconds: Num
    device_seconds: Num
    usd: Num
    joule: Num
    kg: Num
    failures: Num
    goodput: Goodput


def checkpoint_bytes(step: Step) -> Num:
    """Bytes of a checkpoint: the weights, their masters and the optimizer's states of every parameter.

    Source: bigscience-workshop/bigscience train/tr11-176B-ml: 14 bytes per parameter, 8 + 4 + 2.
    """
    strategy = step.strategy
    each = strategy.precision.weight + strategy.precision.master + strategy.optimizer.state
    return step.parameters["total"] * each


def run_goodput(step: Step) -> Goodput:
    """Goodput of a job at the best checkpoint interval; 1 where no failure rate is known."""
    economics, devices = step.cluster.economics, step.cluster.devices
    size = checkpoint_bytes(step)
    known = economics.mtbf > 0.0
    mtbf = where(known, job_mtbf(economics.mtbf, devices), 1e30)
    write = checkpoint_time(size, economics.checkpoint_bandwidth, devices)
    interval = maximum(best_interval(write, mtbf), 1.0)  # below a second writing costs nothing: any interval will do
    share = where(known, goodput(write, interval, mtbf, economics.restart), 1.0)
    return Goodput(share, write, interval, mtbf, size)


def run(step: Step, tokens: Num) -> Run:
    """The run that trains on `tokens` tokens with this step: its time is the steps' over the goodput.

    >>> import tradespace as ts
    >>> cluster = ts.cluster("dgx-h100", devices=64)
    >>> step = ts.predict(ts.model("llama-3.1-8b"), cluster, ts.strategy("tp=2,global_batch=256", cluster=cluster))
    >>> found = run(step, 1e12)
    >>> 15 < found.seconds / 86400 < 25, found.goodput.share > 0.99
    (True, True)
    """
    cluster = step.cluster
    steps = ceil(tokens / (step.strategy.global_batch * step.model.seq))
    found = run_goodput(step)
    seconds = steps * step.step_time / found.share
    joule = seconds * site_power(cluster)
    return Run(
        tokens=tokens,
        steps=steps,
        seconds=seconds,
        device_seconds=seconds * cluster.devices,
        usd=seconds * rate(cluster),
        joule=joule,
        kg=joule * cluster.economics.carbon,
        failures=seconds / found.mtbf,
        goodput=found,
    )
