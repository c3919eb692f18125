"""Money, energy and goodput of a step or a run: documents and the lines of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from tradespace.cost.price import million_tokens, rate
from tradespace.cost.run import run_goodput
from tradespace.inputs.economics import basis
from tradespace.step import Step
from tradespace.workload.loops import is_looped

KWH, HOUR, DAY = 3.6e6, 3600.0, 86400.0


def cost_document(step: Step) -> dict[str, Any]:
    """What one candidate costs and draws; null where no price, power or failure rate is known.

    `usd_per_device_hour` is the rent, or the cost of owning where there is none; `basis` names the row and date of each
    number. Energy and power are those of the site: servers, network adapters, cooling.
    """
    economics, device = step.cluster.economics, step.cluster.device.key
    devices, per_second = _number(step.cluster.devices), _number(rate(step.cluster))
    unit = "samples" if is_looped(step.model) else "tokens"
    rented = _number(economics.rent) > 0.0
    found = run_goodput(step)
    priced = per_second > 0.0
    return {
        "usd_per_step": _known(step.cost),
        f"usd_per_million_{unit}": _known(million_tokens(per_second, step.tokens_per_s_per_device * devices)),
        "usd_per_device_hour": _known(per_second * HOUR / devices),
        "terms": ("rented" if rented else "owned") if priced else None,
        "kwh_per_step": _known(step.energy / KWH),
        "megawatts": _known(step.power / 1e6),
        "kg_co2e_per_step": _known(step.energy * economics.carbon),
        "goodput": _number(found.share),
        "checkpoint_interval_s": _number(found.interval) if _number(economics.mtbf) else None,
        "checkpoint_bytes": _number(found.checkpoint),
        "mean_time_between_failures_s": _number(found.mtbf) if _number(economics.mtbf) else None,
        "basis": basis(device, economics),
    }


def run_document(step: Step, tokens: float) -> dict[str, Any]:
    """The run that trains on `tokens` tokens: days with failures and checkpoints, device-hours, USD, MWh, t CO2e."""
    found = step.run(tokens)
    return {
        "tokens": tokens,
        "steps": int(_number(found.steps)),
        "days": _number(found.seconds / DAY),
        "device_hours": _number(found.device_seconds / HOUR),
        "usd": _known(found.usd),
        "mwh": _known(found.joule / KWH / 1e3),
        "t_co2e": _known(found.kg / 1e3),
        "failures": _number(found.failures) if _number(step.cluster.economics.mtbf) else None,
        "goodput": _number(found.goodput.share),
    }


def cost_lines(cost: dict[str, Any]) -> list[str]:
    """The cost of a step as lines of a table: money with its price row, energy, goodput."""
    lines = []
    each = next(value for key, value in cost.items() if key.startswith("usd_per_million"))
    unit = next(key for key in cost if key.startswith("usd_per_million")).removeprefix("usd_per_million_")
    if each is not None:
        where = cost["basis"].get("rent" if cost["terms"] == "rented" else "capital", "given").partition(" (")[0]
        lines.append(
            f"{cost['usd_per_step']:,.4g} USD per step, {each:,.3g} USD per million {unit}, "
            f"{cost['usd_per_device_hour']:.3g} USD per device-hour {cost['terms']} ({where})"
        )
    else:
        lines.append("No price known: --set cluster.economics.rent='2 USD/h' gives one")
    if cost["megawatts"] is not None:
        lines.append(f"{cost['kwh_per_step']:,.3g} kWh per step, {cost['megawatts']:,.3g} MW at the site's meter")
    if cost["mean_time_between_failures_s"] is not None:
        lines.append(
            f"Goodput {cost['goodput']:.1%}: a failure every {cost['mean_time_between_failures_s'] / HOUR:,.3g} h, "
            f"a checkpoint every {cost['checkpoint_interval_s'] / 60:,.3g} min"
        )
    return lines


def run_line(run: dict[str, Any]) -> str:
    """The run as one sentence."""
    usd = f", {run['usd'] / 1e6:,.4g} M USD" if run["usd"] is not None else ""
    mwh = f", {run['mwh']:,.4g} MWh" if run["mwh"] is not None else ""
    carbon = f", {run['t_co2e']:,.4g} t CO2e" if run["t_co2e"] is not None else ""
    fails = f", {run['failures']:,.0f} failures" if run["failures"] is not None else ""
    return (
        f"{run['tokens']:.4g} tokens: {run['steps']:,} steps, {run['days']:,.4g} days, "
        f"{run['device_hours']:,.4g} device-hours{usd}{mwh}{carbon}{fails}"
    )


def _number(value: Any) -> float:
    return float(np.asarray(value, dtype=np.float64).reshape(-1)[0])


def _known(value: Any) -> float | None:
    """The number, None where it is 0 because nothing is known."""
    found = _number(value)
    return found if found > 0.0 else None
