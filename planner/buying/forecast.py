"""What a purchase is decided on: jobs that will come, how sure that is, what may be bought, and what there is room for."""

from dataclasses import dataclass, fields
from datetime import datetime

from catalog.owned import OwnedMachine
from planner.job import TrainingJob
from planner.past_runs import PastRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastJob:
    """Runs of one job: `runs_per_year` has one element per scenario; they grow by `growth` a year (0.1: 10 %)."""

    job: TrainingJob
    runs_per_year: tuple[float, ...]
    growth: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of machine that may be bought, or that the user owns (`own`, free for `free_share` of the hours).

    `parts` holds the machine as it looks to a job on some of its accelerators, by how many, itself the last; each is
    the share count / whole of it. `watts` is the power that a unit draws at most, `slots` those its cards take.
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
    own: OwnedMachine | None = None
    free_share: float = 1.0

    @property
    def whole(self) -> OwnedMachine:
        """The machine with all its accelerators."""
        return self.parts[-1][1]

    @property
    def accelerators(self) -> int:
        """How many it has."""
        return self.parts[-1][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What there is room and money for; None where nothing limits."""

    slots: int | None = None
    power_watts: float | None = None
    cooling_watts: float | None = None
    upfront_usd: float | None = None
    machines: int | None = None

    @property
    def stated(self) -> bool:
        """Whether there is any limit."""
        return any(getattr(self, each.name) is not None for each in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The whole question. `scenarios` are (name, probability); `turned_down` are machines left out and why.

    `past_runs`, the user's own, shift and narrow the estimates. `commitments` are the kinds with a term that may be entered into. With `jobs_wait` runs are put off until a machine
    is free, so that the load is even; else a run that finds none is rented for.
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
    held_years: float | None = None
