"""Where the place of the data decides the place of the run, or makes up much of its cost."""

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.money import usd_display
from gpuplan.catalog.model.regions import place_in_words
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configuration_choice import in_words, micros
from gpuplan.planner.model.outcome import Choice
from gpuplan.planner.strategies.schedule import Schedule

#: A place is named if it saves at least this part of the cost once the data is there, and the cost of bringing the data if
#: it is at least the second part.
LEAST_SAVING, LEAST_SHARE = 0.05, 0.1


def data_gravity(candidates: Candidates, broken: NDArray[np.uint32], schedule: Schedule) -> tuple[str, ...]:
    """Sentences on the cost of bringing the data: to the plan's place, and to the place that is cheapest without it."""
    job, table = candidates.question.job, candidates.table
    if not job.data.provider or not job.data.dataset_gb or job.objective != "cost":
        return ()
    cost, brought = schedule.cost.expected, schedule.cost.egress
    sentences = []
    what = f"bringing {job.data.dataset_gb:,.0f} GB from {job.data.location}"
    if brought >= LEAST_SHARE * cost:
        sentences.append(
            f"{what} costs {usd_display(brought)}, {brought / cost:.0%} of the plan; a later run there saves it"
        )
    run_usd = np.where(broken == 0, table.cost_breakdown.cost_usd - table.cost_breakdown.egress_usd, np.inf)
    if not np.isfinite(run_usd).any():
        # Only plans of several parts meet the requirements.
        return tuple(sentences)
    best = int(np.argmin(run_usd))
    egress, saved = micros(table.cost_breakdown.egress_usd[best]), cost - brought - micros(run_usd[best])
    choice = in_words(candidates, table, best)
    if _place(choice) not in {_place(phase.choice) for phase in schedule.phases} and saved >= LEAST_SAVING * cost:
        sentences.append(
            f"the place of the data decides: {choice.nodes} x {choice.instance_type.name}, {_where(choice)}, costs "
            f"{usd_display(saved)} ({saved / cost:.0%}) less once the data is there, but {what} costs {usd_display(egress)}"
        )
    return tuple(sentences)


def _place(choice: Choice) -> tuple[str, str]:
    return choice.offer.provider, choice.offer.region


def _where(choice: Choice) -> str:
    provider, region = _place(choice)
    return place_in_words(provider, region)
