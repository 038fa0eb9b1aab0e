"""The typed answer to a forecast: money in USD at present value unless a name says otherwise."""

from dataclasses import dataclass

from gpuplan.catalog.model.offer import Offer
from gpuplan.planner.model.outcome import Choice
from gpuplan.planner.model.procurement import (
    BindingLimit,
    ProcurementCertificate,
    ProcurementRisk,
    ProcurementSensitivity,
    ScenarioYears,
    UnboughtMachine,
)
from gpuplan.planner.model.procurement_sources import ExistingCapacity
from gpuplan.planner.procurement.commitments import Spending
from gpuplan.planner.procurement.forecast import Forecast, Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """A purchase of `units` of a machine.

    `busy` is the share of the hours that they work, `runs_per_year` their average runs of each job.
    `breaks_even_years` compares with the same answer without them (their work rented), resale not counted; None: not
    within the horizon. `saves_usd` is the extra cost of the best answer without this machine (None: no such answer).
    """

    machine: Machine
    units: int
    busy: float
    runs_per_year: tuple[float, ...]
    breaks_even_years: float | None
    saves_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commitment to `units` nodes of `offer` from `from_year` to `until_year`.

    `obligation_usd` must be paid for all of them, used or not, in undiscounted dollars.
    """

    offer: Offer
    accelerator: str
    units: int
    from_year: float
    until_year: float
    obligation_usd: float
    busy: float
    runs_per_year: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """A savings plan of `usd_per_hour` from `from_year` to `until_year`.

    `obligation_usd` must be paid, used or not, in undiscounted dollars; `busy` is the share of it that runs use.
    """

    plan: Spending
    usd_per_hour: float
    from_year: float
    until_year: float
    obligation_usd: float
    busy: float
    runs_per_year: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rent:
    """The rented runs of one job: average per year, share of all runs, and configuration (None: none)."""

    choice: Choice | None
    runs_per_year: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Present value of the whole horizon: machines minus resale, terms, running owned and committed machines, renting.

    `rent_only_usd` is the cost of renting everything (None: some job cannot be rented). `stay_usd` is the cost without
    purchases and new commitments, with existing supply (None: some job cannot be served).
    """

    machines_usd: float
    terms_usd: float
    running_usd: float
    renting_usd: float
    rent_only_usd: float | None
    stay_usd: float | None

    @property
    def total_usd(self) -> float:
        """The sum of the parts."""
        return self.machines_usd + self.terms_usd + self.running_usd + self.renting_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The decision: existing supply, purchases, commitments, rentals; `instead` machines almost break even."""

    forecast: Forecast
    snapshot_id: str
    use: tuple[ExistingCapacity, ...]
    buy: tuple[Purchase, ...]
    commit: tuple[Commit, ...]
    spend: tuple[Spend, ...]
    rent: tuple[Rent, ...]
    costs: Costs
    risk: ProcurementRisk | None
    over_years: tuple[ScenarioYears, ...]
    binding: tuple[BindingLimit, ...]
    instead: tuple[UnboughtMachine, ...]
    upfront_usd: float
    watts: float
    slots: int
    sensitivity: ProcurementSensitivity
    proof: ProcurementCertificate
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """Why the forecast cannot be served: jobs (by number) that nothing can run, or that must be owned and do not fit."""

    forecast: Forecast
    snapshot_id: str
    jobs: tuple[int, ...]
    reason: str
