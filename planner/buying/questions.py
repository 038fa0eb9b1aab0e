"""One job of a forecast put to one market: every configuration, not only those that a plan would look at."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.buying.forecast import Forecast, ForecastJob
from planner.candidates.configurations import Configurations, configurations
from planner.candidates.gather import Candidates, over
from planner.candidates.market import Market
from planner.estimate.learned import learned_from
from planner.job import Constraints
from planner.question import Question
from planner.settings import PlannerSettings
from planner.workload import work_of


def question_of(each: ForecastJob, market: Market, forecast: Forecast, settings: PlannerSettings) -> Question:
    """The job put to this market at the start of the forecast, with what past runs teach."""
    job = each.job
    work = work_of(job.workload, job.training)
    learned = learned_from(forecast.past_runs, work.task)
    return Question(job=job, work=work, markets=(market,), start=forecast.start, settings=settings, learned=learned)


def constrained(each: ForecastJob, constraints: Constraints) -> ForecastJob:
    """The same job under other constraints."""
    return replace(each, job=replace(each.job, constraints=constraints))


def in_time(table: Configurations, each: ForecastJob) -> NDArray[np.bool_]:
    """Configurations that finish by the deadline with the asked confidence; money is weighed elsewhere."""
    return np.asarray(over(table, each.job.deadline_hours, None) == 0, np.bool_)


def every(found: Candidates) -> Configurations:
    """Every allowed offer at every node count, also those that another offer of the cell dominates for this job."""
    market, screened = found.question.markets[0], found.screened[0]
    places = market.snapshot.lead[screened.allowed]
    whole = replace(screened, places=places, broken=np.zeros(len(places), np.uint16))
    table = configurations(found.question, 0, whole, found.estimated[0], found.costs[0])
    return table.take(table.broken == 0)
