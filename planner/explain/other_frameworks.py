"""What the job would cost with code for another framework: machines that the stated one excludes, if they are cheaper."""

from dataclasses import replace

import numpy as np

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.candidates.candidate_set import candidates, over
from gpuplan.planner.candidates.configuration_choice import cheapest, in_words
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.frameworks import framework_of_stack, runs_on
from gpuplan.planner.model.outcome import FrameworkChoice


def cheaper_with_another_framework(question: Question, cost_micros: int) -> FrameworkChoice | None:
    """The cheapest configuration on machines that only code for another framework uses, if it costs less than the plan.

    None for jobs that name accelerators or vendors, which have chosen, for other objectives than cost, and for running
    jobs, which cannot change their framework. It stays on one configuration.
    """
    job = question.job
    chosen = job.constraints.accelerators or job.constraints.vendors
    if job.training.framework == "any" or chosen or job.objective != "cost" or question.origin is not None:
        return None
    excluded = {chip.vendor for chip in accelerators().values() if not runs_on(job.training.framework, chip.stack)}
    other = replace(
        job,
        training=replace(job.training, framework="any"),
        constraints=replace(job.constraints, vendors=tuple(sorted(excluded))),
    )
    other_candidates = candidates(replace(question, job=other))
    rented = [number for number, market in enumerate(question.markets) if not market.owned]
    table = other_candidates.table
    fits = over(table, job.deadline_hours, job.budget_usd) == 0
    index = cheapest(table, fits & np.isin(table.market, rented))
    if index is None:
        return None
    choice = in_words(other_candidates, table, index)
    if choice.cost.expected >= cost_micros:
        return None
    framework = framework_of_stack(accelerators()[choice.accelerator].stack)
    return FrameworkChoice(framework=framework, choice=choice, extra=choice.cost.expected - cost_micros)
