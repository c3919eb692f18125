"""Reports on one step and on a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tradespace.explore.plan import Plan
from tradespace.step import Step
from tradespace.views.documents import ladder, scalar, step_document, strategy_text
from tradespace.views.figures import memory_rows, short_text, steps_figure, subtitle, time_rows
from tradespace.views.ladder import ladder_figure
from tradespace.views.money import cost_lines
from tradespace.views.report import Picture, Report, assumed
from tradespace.views.roofline import roofline_figure, roofline_rows
from tradespace.views.stages import stage_rows, stages_figure
from tradespace.workload.loops import is_looped

WORDS = {
    "recompute": "running parts of the forward pass again",
    "exposed_tensor": "waiting for tensor-parallel exchanges",
    "exposed_context": "waiting for context-parallel exchanges",
    "exposed_expert": "waiting for expert dispatch",
    "exposed_data": "waiting for gradients and parameters",
    "exposed_pipeline": "waiting for pipeline transfers",
    "bubble": "the pipeline bubble",
    "offload": "moving offloaded tensors",
    "optimizer": "the optimizer",
    "other": "host launches and fixed costs",
}


def step_report(step: Step, command: str) -> Report:
    """How fast one strategy is, whether it fits and what holds it back."""
    question = f"How fast does {step.model.name} train on {_cluster(step)}, and does it fit?"
    tables = {"Where the time goes": _time_table(step), "From ideal to predicted": ladder(step)}
    return _report(question, answer(step), step, [step], tables, command)


def plan_report(plan: Plan, command: str) -> Report:
    """Which strategy is fastest; when nothing fits, what comes nearest and what would help."""
    steps = plan.top or ([plan.nearest] if plan.nearest else [])
    counts = f"{plan.total:,} strategies were tried, {plan.legal:,} are legal, {plan.fitting:,} fit."
    if not steps:
        return Report(f"Which strategy trains {plan.model.name} best?", f"None is legal. {counts}", command)
    first = steps[0]
    question = f"Which strategy trains {plan.model.name} best on {_cluster(first)}?"
    text = answer(first) if plan.top else f"Nothing fits. {answer(first)}"
    tables: dict[str, Any] = {"Ranked strategies": _ranked(plan)} if plan.top else {}
    if plan.fixes:
        tables["What would make it fit"] = [{"change": fix} for fix in plan.fixes]
    tables["From ideal to predicted"] = ladder(first)
    return _report(question, f"{text} {counts}", first, steps[:10], tables, command)


def _report(
    question: str, said: str, step: Step, steps: Sequence[Step], tables: dict[str, Any], command: str
) -> Report:
    """The parts that both have in common."""
    document = step_document(step)
    basis = document["cost"]["basis"]
    device, profile = step.cluster.device.key, step.strategy.profile.name
    tables["Cost and energy"] = [{"": line} for line in cost_lines(document["cost"])]
    tables["The strategy, resolved"] = [{"key": key, "value": value} for key, value in document["strategy"].items()]
    return Report(
        question=question,
        answer=said,
        command=command,
        setting=subtitle(step),
        numbers=numbers(step),
        pictures=pictures(step, list(steps)),
        tables=tables,
        assumptions=[
            *document["reasons"],
            f"80 % band of the step time: {document['low']:.4g} to {document['high']:.4g} s, from the spread of past "
            f"predictions with profile {profile}",
            *assumed(f"devices/{device}", f"clusters/{step.cluster.key}", f"profiles/{profile}"),
        ],
        sources=[*document["sources"], *(f"{name}: {text}" for name, text in basis.items())],
    )


def pictures(step: Step, steps: list[Step]) -> list[Picture]:
    """Strategies side by side, then the ladder, the stages and the roofline of the first."""

    def bars(dark: bool) -> Any:
        return steps_figure(steps, "Time and memory by part", subtitle(step), dark=dark)

    found = [
        Picture(
            "Step time and memory by part; hatched strategies do not fit",
            bars,
            [*time_rows(steps), *memory_rows(steps)],
        ),
    ]
    if is_looped(step.model):
        return found
    return [
        *found,
        Picture("From the ideal FLOP time to the step", lambda dark: ladder_figure(step, dark=dark), ladder(step)),
        Picture("Memory of each class of stage", lambda dark: stages_figure(step, dark=dark), stage_rows(step)),
        Picture("Roofline of the operators", lambda dark: roofline_figure(step, dark=dark), roofline_rows(step)),
    ]


def answer(step: Step) -> str:
    """One sentence: strategy, time, utilization, memory, and the largest loss."""
    document = step_document(step)
    time = document["step_time_s"]
    losses = {name: document["time"][name] for name in WORDS}
    worst = max(losses, key=lambda name: losses[name])
    loss = f"; the largest loss is {WORDS[worst]} ({losses[worst] / time:.0%})" if losses[worst] > 0.01 * time else ""
    need, have = document["memory"]["total"] / 1e9, document["capacity"] / 1e9
    return (
        f"{short_text(step)} takes {time:.3g} s per step at {document['mfu']:.0%} MFU and {document['verdict']}: "
        f"{need:.1f} of {have:.1f} GB{loss}."
    )


def numbers(step: Step) -> list[tuple[str, str]]:
    """The figures that matter, each with its unit."""
    document = step_document(step)
    cost, unit = document["cost"], "samples" if "samples_per_s" in document else "tokens"
    each = next(value for key, value in cost.items() if key.startswith("usd_per_million"))
    found = [
        ("step time", f"{document['step_time_s']:.4g} s"),
        (f"{unit} per second and device", f"{document['tokens_per_s_per_device']:,.0f}"),
        ("model FLOPs utilization", f"{document['mfu']:.1%}"),
        ("memory of the worst stage", f"{document['memory']['total'] / 1e9:.1f} GB"),
        ("verdict", document["verdict"]),
    ]
    found += [(f"per million {unit}", f"{each:.3g} USD")] if each else []
    return found + ([("at the site's meter", _watts(cost["megawatts"]))] if cost["megawatts"] else [])


def _watts(megawatts: float) -> str:
    return f"{megawatts:.3g} MW" if megawatts >= 1.0 else f"{1e3 * megawatts:.3g} kW"


def _cluster(step: Step) -> str:
    return f"{scalar(step.cluster.devices):,.0f} x {step.cluster.device.name}"


def _time_table(step: Step) -> list[dict[str, Any]]:
    document = step_document(step)
    total = document["step_time_s"]
    return [{"part": k, "seconds": v, "share": f"{v / total:.1%}"} for k, v in document["time"].items() if v]


def _ranked(plan: Plan) -> list[dict[str, Any]]:
    rows = []
    for rank, (step, loss) in enumerate(zip(plan.top, plan.losses, strict=True), 1):
        document = step_document(step)
        row = {"#": rank, "strategy": strategy_text(step), "step s": document["step_time_s"]}
        row |= {"MFU": f"{document['mfu']:.1%}", "GB": document["memory"]["total"] / 1e9}
        rows.append({**row, "verdict": document["verdict"], "why it is not first": loss})
    return rows
