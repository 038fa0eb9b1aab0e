"""The input of a procurement decision: forecast jobs and scenarios, machines on offer, and limits on space and power."""

from dataclasses import dataclass, fields, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configurations import Configurations, configurations
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.job import Constraints, TrainingJob
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance.learned_corrections import learned_from
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.workload import work_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastJob:
    """The runs of one job: `runs_per_year` per scenario, growing by `growth` per year (0.1 is 10 %)."""

    job: TrainingJob
    runs_per_year: tuple[float, ...]
    growth: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of machine that may be bought, or that the user owns (`owned`, free for `free_share` of the hours).

    `parts` are (count, machine) pairs for jobs on `count` of the accelerators, the whole machine last; a part costs its
    share of the machine. `watts` is the highest power draw of a unit, `slots` the slots that its cards need.
    """

    name: str
    parts: tuple[tuple[int, OwnedMachine], ...]
    usd: float
    life_years: float
    residual_usd: float
    watts: float
    slots: int
    source: str
    as_of: str
    modelled: tuple[str, ...] = ()
    owned: OwnedMachine | None = None
    free_share: float = 1.0

    @property
    def whole(self) -> OwnedMachine:
        """The machine with all its accelerators."""
        return self.parts[-1][1]

    @property
    def accelerators(self) -> int:
        """The number of accelerators of the whole machine."""
        return self.parts[-1][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on space, power and money; None means unlimited."""

    slots: int | None = None
    power_watts: float | None = None
    cooling_watts: float | None = None
    upfront_usd: float | None = None
    machines: int | None = None

    @property
    def stated(self) -> bool:
        """Whether any limit is set."""
        return any(getattr(self, field.name) is not None for field in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The input of a procurement decision. `scenarios` are (name, probability), `turned_down` (machine, reason).

    `past_runs` of the user shift and narrow the estimates. `commitments` are the price kinds of new commitments. With
    `jobs_wait` runs wait until a machine is free, so the load is even; otherwise a run without a free machine is
    rented.
    """

    name: str
    start: datetime
    horizon_years: float
    discount_rate: float
    electricity_usd_per_kwh: float
    jobs: tuple[ForecastJob, ...]
    scenarios: tuple[tuple[str, float], ...]
    machines: tuple[Machine, ...]
    commitments: tuple[str, ...]
    limits: Limits = Limits()
    jobs_wait: bool = False
    turned_down: tuple[tuple[str, str], ...] = ()
    assumptions: tuple[str, ...] = ()
    past_runs: tuple[PastRun, ...] = ()
    existing_years: float | None = None


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
