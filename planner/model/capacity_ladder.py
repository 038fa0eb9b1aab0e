"""What to try next if the machines of a plan are refused, and the chance of obtaining them."""

from dataclasses import dataclass, field

from gpuplan.planner.model.shared import MAY_BE_ABSENT, PROSE, Configuration, Cost, Hours, Moment, Phase, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class ChanceSource:
    """The cloud's own answer that a chance is read from, and when the cloud was asked."""

    published: str
    source: str
    asked_at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class NextChoice(Configuration):
    """What to try if nothing before it on the capacity ladder was obtained; cost and hours count from its own start."""

    after_minutes: float
    """Since the first choice was asked for."""
    chance: float
    """Of obtaining it by itself within a try; modelled unless `chance_source` names a cloud's answer."""
    chance_low: float
    chance_high: float
    """80 % of places and times lie between."""
    chance_when_tried: float
    """Given that everything before it was refused: shortages of a family in a region hit all its machines."""
    chance_source: ChanceSource | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangingMachines:
    """The plan in two phases or with a standby that is cheapest if obtained, where following it is expected to cost more."""

    cost_usd: Cost
    hours: Hours
    finishes_at: Moment
    deadline_probability: float | None
    carbon_kg: float | None
    phases: tuple[Phase, ...]
    chance: float
    """Of obtaining the machines of its first phase."""
    chance_low: float
    chance_high: float
    chance_source: ChanceSource | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityLadder:
    """The chance of obtaining the plan's machines, and the next choices in order if they are refused."""

    modelled: tuple[str, ...] = field(metadata=PROSE)
    """Which figures come from a model and not from a cloud's answer."""
    try_minutes: float
    """How long each choice is tried; the last is waited for."""
    chance: float
    """Of obtaining the plan's own machines at the start."""
    chance_low: float
    chance_high: float
    next_choices: tuple[NextChoice, ...]
    expected_cost_usd: Usd
    """Of following the ladder."""
    nothing_obtained: float
    """Probability that every choice is refused in its first try."""
    covers: str = field(metadata=PROSE)
    """What is proven of the ladder, and what the plan's certificate covers."""
    cheapest_if_obtained: NextChoice | None = field(default=None, metadata=MAY_BE_ABSENT)
    """The configuration of least cost given that it is obtained, as if it were tried first; its cost is the objective of the
    certificate. Absent where the plan itself or `changing_machines` is that."""
    changing_machines: ChangingMachines | None = field(default=None, metadata=MAY_BE_ABSENT)
    """What the objective of the certificate is of, where that changes machines and the plan does not."""
    last_choice_by: Moment | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Until then all but the last choice are asked for again in turn, also after a preemption; work that is done moves it
    later. A try before the latest start of the last choice. Absent without a deadline, and for the least time."""
    chance_source: ChanceSource | None = field(default=None, metadata=MAY_BE_ABSENT)
    """The cloud's answer about the plan's own machines."""
