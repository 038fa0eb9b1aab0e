"""What a forecast is answered with, as objects: money in USD at the start's value unless a name says otherwise."""

from dataclasses import dataclass

from catalog.offer import Offer
from planner.answer import Choice
from planner.buying.forecast import Forecast, Machine
from planner.buying.terms import Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """`units` of a machine to buy. `busy` is the share of the hours that they work, `runs_per_year` what they do of
    each job, on average. `breaks_even_years` is when they have earned what they cost, against the same answer without
    them (their work rented) and without selling them; None: not within the horizon. `saves_usd` is what the best
    answer with none of this machine costs more (None: there is none).
    """

    machine: Machine
    units: int
    busy: float
    runs_per_year: tuple[float, ...]
    breaks_even_years: float | None
    saves_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """`units` nodes of `offer` under its term, from `from_year` to `until_year`; `obligation_usd` is what must be paid
    for all of them, used or not, in dollars of the day.
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
    """A savings plan of `usd_per_hour`, from `from_year` to `until_year`; `obligation_usd` is what must be paid for it,
    used or not, in dollars of the day; `busy` is the share of it that runs come to.
    """

    plan: Spending
    usd_per_hour: float
    from_year: float
    until_year: float
    obligation_usd: float
    busy: float
    runs_per_year: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What the user has already, `units` of it (machines, nodes, or USD per hour of a plan), and how much of it works."""

    what: str
    units: float
    busy: float
    runs_per_year: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instead:
    """What the best answer with at least one of a machine costs more; `units` are how many it then has.

    `never` is said of one whose electricity alone costs more than renting, for every job that it can do.
    """

    machine: Machine
    units: int
    extra_usd: float
    never: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A limit without which the answer would cost `saves_usd` less: `instead`. `short` says what does not fit."""

    limit: str
    used: float
    available: float
    short: str
    instead: str
    saves_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One scenario: its probability, what the answer costs there, and what it saves against buying nothing."""

    scenario: str
    probability: float
    total_usd: float
    saves_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What the answer comes to in each scenario, and the probability that it costs more than buying nothing there."""

    outcomes: tuple[Outcome, ...]
    loses_probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rent:
    """What is rented of one job: runs a year on average, the share of all its runs, and on what (None: nothing is)."""

    choice: Choice | None
    runs_per_year: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The whole horizon at the start's value: machines less what they are sold for, terms, running own and committed
    machines, renting. `rent_only_usd` is renting everything (None: some job cannot be rented); `stay_usd` is buying and
    committing to nothing, with what is there already (None: that does not serve every job).
    """

    machines_usd: float
    terms_usd: float
    running_usd: float
    renting_usd: float
    rent_only_usd: float | None
    stay_usd: float | None

    @property
    def total_usd(self) -> float:
        """All parts."""
        return self.machines_usd + self.terms_usd + self.running_usd + self.renting_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The answer at `factor` times the forecast: what it is and costs, proven to within `gap`, relatively; `to` is empty
    where nothing fits the limits.
    """

    factor: float
    to: str
    total_usd: float | None
    gap: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The answer as one figure of the forecast moves: `steps` in rising order, and the nearest factors below and above
    1 at which other kinds of machines or terms come in or go out, with the answer there (None: at no step).
    """

    steps: tuple[Step, ...]
    below: Step | None
    above: Step | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What utilisation (runs of all jobs) and the price of electricity change; None where it changes nothing."""

    utilisation: Sweep
    electricity: Sweep | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was proven: objective and bound in USD, relative gap, and the size of the question."""

    objective_usd: float
    bound_usd: float
    gap: float
    solver: str
    machines: int
    terms: int
    blocks: int
    variables: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What to use, buy, commit to and rent; `instead` are machines that come close to paying and are not bought."""

    forecast: Forecast
    snapshot_id: str
    use: tuple[Use, ...]
    buy: tuple[Purchase, ...]
    commit: tuple[Commit, ...]
    spend: tuple[Spend, ...]
    rent: tuple[Rent, ...]
    costs: Costs
    risk: Risk | None
    binding: tuple[Binding, ...]
    instead: tuple[Instead, ...]
    upfront_usd: float
    watts: float
    slots: int
    sensitivity: Sensitivity
    proof: Proof
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """Why the forecast cannot be served: jobs (by number) that nothing can run, or that must be owned and do not fit."""

    forecast: Forecast
    snapshot_id: str
    jobs: tuple[int, ...]
    reason: str
