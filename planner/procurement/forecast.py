"""The input of a procurement decision: forecast jobs and scenarios, machines on offer, and limits on space and power."""

from dataclasses import dataclass, fields
from datetime import datetime

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.performance.past_runs import PastRun


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
