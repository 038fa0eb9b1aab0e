"""Sections that compare the ways of training a model: all parameters, LoRA and QLoRA."""

from collections.abc import Mapping, Sequence

from gpuplan.api.presentation.infeasibility import in_the_way
from gpuplan.api.presentation.phrases import configuration, job_name, price_estimate
from gpuplan.api.presentation.sections import Headline, Section, Tone, notes, section, table
from gpuplan.api.presentation.short_plan import NAME_LENGTH
from gpuplan.api.presentation.text_formatting import chance, duration, usd
from gpuplan.planner.model.plan import InfeasibleAnswer, PlannedAnswer

_LONGEST_REASON = 80

Answer = PlannedAnswer | InfeasibleAnswer


def method_sections(
    answers: Mapping[str, Answer], dpo: Mapping[str, Answer] | None = None, *, over_usd: float | None = None
) -> Sequence[Section]:
    """A row per method, with DPO behind it and both together where asked, and what the comparison leaves out.

    `over_usd` is a budget of both stages together, above which a sum is marked.
    """
    first = next(iter(answers.values()))
    job = first.plan.job if isinstance(first, PlannedAnswer) else first.infeasible.job
    rows = []
    for method, answer in answers.items():
        behind = (dpo or {}).get(method)
        if behind is None:
            rows.append(_row(method, answer))
        else:
            rows += [_row(f"{method}, sft", answer), _row(f"{method}, dpo", behind)]
            rows.append(_sum(method, answer, behind, over_usd))
    planned = [
        answer.plan for answer in (*answers.values(), *(dpo or {}).values()) if isinstance(answer, PlannedAnswer)
    ]
    estimated = any(price_estimate(phase) for plan in planned for phase in plan.phases)
    sentences = ["Quality is not compared: adapters train a small part of the parameters."]
    sentences += (
        ["The time until the deadline is shared by the FLOPs of both stages."] if dpo and job.get("deadline") else []
    )
    sentences += ["Costs are at the prices that are expected on the day of the start."] if estimated else []
    return (
        section(
            "methods",
            "",
            Headline(text=f"Ways to train {job_name(job, limit=NAME_LENGTH)}, each at its cheapest", tone=Tone.GOOD),
        ),
        section("rows", "", table(("method", "cost", "time", "in time", "where"), rows, figures=(1, 2, 3))),
        section("notes", "", notes(sentences)),
    )


def _sum(method: str, sft: Answer, dpo: Answer, over_usd: float | None) -> tuple[str, str, str, str, str]:
    """Cost and hours of both stages."""
    if isinstance(sft, InfeasibleAnswer) or isinstance(dpo, InfeasibleAnswer):
        return f"{method}, both", "-", "-", "-", "no plan of both"
    cost = sft.plan.cost_usd.expected + dpo.plan.cost_usd.expected
    hours = sft.plan.hours.expected + dpo.plan.hours.expected
    above = "" if over_usd is None or float(cost) <= over_usd else f"above the budget of {usd(over_usd)}"
    return f"{method}, both", usd(cost), duration(hours), "", above


def _row(method: str, answer: Answer) -> tuple[str, str, str, str, str]:
    if isinstance(answer, InfeasibleAnswer):
        conflicts = answer.infeasible.conflicts
        reason = in_the_way(conflicts[0], answer.infeasible.searched_nodes) if conflicts else "no machine can run it"
        return method, "-", "-", "-", f"no plan: {reason}"
    plan = answer.plan
    in_time = "-" if plan.deadline_probability is None else chance(plan.deadline_probability)
    where = ", then ".join(configuration(phase) for phase in plan.phases if not phase.is_standby)
    return method, usd(plan.cost_usd.expected), duration(plan.hours.expected), in_time, where
