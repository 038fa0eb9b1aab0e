"""Every configuration of a forecast job in one market, including those that a plan would prune."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configurations import Configurations, configurations
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.job import Constraints
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance.learned_corrections import learned_from
from gpuplan.planner.procurement.forecast import Forecast, ForecastJob
from gpuplan.planner.workload import work_of


def question_of(forecast_job: ForecastJob, market: Market, forecast: Forecast, settings: PlannerSettings) -> Question:
    """The planning problem of a job in this market at the start of the forecast, with corrections from past runs."""
    job = forecast_job.job
    work = work_of(job.workload, job.training)
    learned = learned_from(forecast.past_runs, work.task)
    return Question(job=job, work=work, markets=(market,), start=forecast.start, settings=settings, learned=learned)


def constrained(forecast_job: ForecastJob, constraints: Constraints) -> ForecastJob:
    """The same job under other constraints."""
    return replace(forecast_job, job=replace(forecast_job.job, constraints=constraints))


def in_time(table: Configurations, forecast_job: ForecastJob) -> NDArray[np.bool_]:
    """Configurations that finish by the deadline with the requested confidence; the budget does not count."""
    return np.asarray(over(table, forecast_job.job.deadline_hours, None) == 0, np.bool_)


def every(candidates: Candidates) -> Configurations:
    """Every allowed offer at every node count, dominated offers included."""
    market, screened = candidates.question.markets[0], candidates.screened[0]
    places = market.snapshot.lead[screened.allowed]
    whole = replace(screened, places=places, broken=np.zeros(len(places), np.uint32))
    table = configurations(candidates.question, 0, whole, candidates.estimated[0], candidates.costs[0])
    return table.take(table.broken == 0)
