"""The answer of `why`: why this plan, why not something named, and what each requirement costs."""

from dataclasses import dataclass
from typing import Literal

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.shared import (
    Breakdown,
    Configuration,
    Figure,
    Meta,
    Moment,
    ObjectiveName,
    RelaxedRequirements,
    Usd,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortPhase(Configuration):
    """A phase of a plan in short."""

    role: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortPlan:
    """A plan in short."""

    cost_usd: Usd
    breakdown: Breakdown
    hours: float
    hours_confident: float
    carbon_kg: float | None
    phases: tuple[ShortPhase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What another plan costs and takes more, part by part; negative is less."""

    usd: Usd
    breakdown: Breakdown
    hours_confident: float
    carbon_kg: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut(RelaxedRequirements):
    """The least change of requirements that allows a plan, and by how much each misses it."""

    short_by: dict[str, Figure]
    cost_usd: Usd
    extra_usd: Usd | None
    plan: Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class RuledOut:
    """Which requirements leave no plan, and by how much each misses it."""

    conflicts: tuple[tuple[str, ...], ...]
    searched_nodes: int
    relaxations: tuple[WayOut, ...]
    rejected: dict[str, int]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherOutcome:
    """Another outcome of the same job beside the plan."""

    outcome: Literal["planned", "infeasible"]
    plan: ShortPlan | None
    extra: Extra | None
    ruled_out: RuledOut | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What the question names, as it was understood."""

    text: str
    field: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinsAt:
    """The price at which something would be used in part."""

    usd_per_node_hour: Usd
    now_usd_per_node_hour: Usd
    on: Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class WinsAt(JoinsAt):
    """The price at which something would win."""

    discount_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What was named: the best plan on it, the price at which it wins, the best plan without it."""

    named: Named
    verdict: str
    best: OtherOutcome | None
    wins_at: WinsAt | None
    joins_at: JoinsAt | None
    without: OtherOutcome | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What giving up one requirement would gain."""

    requirement: str
    asked: str
    binds: bool
    gain: Figure
    needed: str | None
    plan: Configuration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The next slower or faster choice."""

    deadline_hours: float
    extra_usd: Usd
    plan: Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedBy:
    """By how much a requirement is changed: hours as a number, US dollars as a decimal string."""

    value: float | Usd
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What so much more or less of a requirement does."""

    requirement: str
    by: ChangedBy
    possible: bool
    extra_usd: Usd | None
    extra_hours: float | None
    extra_carbon_kg: float | None
    deadline_hours: float | None
    phases: tuple[Configuration, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dual:
    """What one unit of a requirement is worth in the relaxed choice."""

    requirement: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Choices beside the plan."""

    slower: tuple[Step, ...]
    faster: tuple[Step, ...]
    changes: tuple[Change, ...]
    duals: tuple[Dual, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint(Configuration):
    """A choice that no other beats in cost, time and carbon."""

    carbon_kg: float
    within: bool
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Cost against time against carbon."""

    points: tuple[FrontierPoint, ...]
    knee: int | None
    knee_rule: str
    knee_among: int
    configurations: int
    unknown_carbon: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why this plan."""

    id: str
    job: JsonObject
    snapshot_id: str
    version: str
    start: Moment
    currency: Literal["USD"]
    objective: ObjectiveName
    summary: tuple[str, ...]
    plan: ShortPlan | None
    infeasible: RuledOut | None
    about: About | None
    without_chosen: OtherOutcome | None
    requirements: tuple[Requirement, ...]
    steps: Steps | None
    frontier: Frontier
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyAnswer:
    """An explanation of a plan, or of why there is none."""

    outcome: Literal["explained", "infeasible"]
    why: Why
    meta: Meta
