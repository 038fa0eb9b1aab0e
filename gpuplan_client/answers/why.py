"""The answer of `POST /v1/why`: why this plan, why not something named, and what each requirement costs."""

from typing import Literal, TypedDict

from gpuplan_client.answers.parts import Breakdown, Configuration, Figure, JsonObject, Meta, Moment, ObjectiveName, Usd


class ShortPhase(Configuration):
    """A phase of a plan in short."""

    role: str
    share: float


class ShortPlan(TypedDict):
    """A plan in short."""

    cost_usd: Usd
    breakdown: Breakdown
    hours: float
    hours_confident: float
    carbon_kg: float | None
    phases: list[ShortPhase]


class Extra(TypedDict):
    """What another plan costs and takes more, part by part; less is negative."""

    usd: Usd
    breakdown: Breakdown
    hours_confident: float
    carbon_kg: float | None


WayOut = TypedDict(
    "WayOut",
    {
        "requirement": str,
        "from": str,
        "to": str,
        "short_by": dict[str, Figure],
        "cost_usd": Usd,
        "extra_usd": Usd | None,
        "plan": Configuration,
    },
)


class RuledOut(TypedDict):
    """Which requirements leave no plan, and by how much each misses it."""

    conflicts: list[list[str]]
    searched_nodes: int
    relaxations: list[WayOut]
    rejected: dict[str, int]
    warnings: list[str]


class Other(TypedDict):
    """Another outcome of the same job beside the plan."""

    outcome: Literal["planned", "infeasible"]
    plan: ShortPlan | None
    extra: Extra | None
    ruled_out: RuledOut | None


class Named(TypedDict):
    """What was asked about, as it was understood."""

    text: str
    field: str
    names: list[str]


class JoinsAt(TypedDict):
    """The price at which something would be used in part."""

    usd_per_node_hour: Usd
    now_usd_per_node_hour: Usd
    on: Configuration


class WinsAt(JoinsAt):
    """The price at which something would win."""

    discount_percent: float


class About(TypedDict):
    """What was named: the best plan on it, the price at which it wins, the best plan without it."""

    named: Named
    verdict: str
    best: Other | None
    wins_at: WinsAt | None
    joins_at: JoinsAt | None
    without: Other | None


class Requirement(TypedDict):
    """What giving up one requirement would gain."""

    requirement: str
    asked: str
    binds: bool
    gain: Figure
    needed: str | None
    plan: Configuration | None


class Step(TypedDict):
    """The next slower or faster choice."""

    deadline_hours: float
    extra_usd: Usd
    plan: Configuration


class ChangedBy(TypedDict):
    """By how much a requirement is changed: hours as a number, US dollars as a decimal string."""

    value: float | str
    unit: str


class Change(TypedDict):
    """What so much more or less of a requirement does."""

    requirement: str
    by: ChangedBy
    possible: bool
    extra_usd: Usd | None
    extra_hours: float | None
    extra_carbon_kg: float | None
    deadline_hours: float | None
    phases: list[Configuration]


class Dual(TypedDict):
    """What one unit of a requirement is worth in the relaxed choice."""

    requirement: str
    value: float
    unit: str


class Steps(TypedDict):
    """Choices beside the plan."""

    slower: list[Step]
    faster: list[Step]
    changes: list[Change]
    duals: list[Dual]


class FrontierPoint(Configuration):
    """A choice that no other beats in cost, time and carbon."""

    carbon_kg: float
    within: bool
    factor: float


class Frontier(TypedDict):
    """Cost against time against carbon."""

    points: list[FrontierPoint]
    knee: int | None
    knee_rule: str
    knee_among: int
    configurations: int
    unknown_carbon: list[str]


class Why(TypedDict):
    """Why this plan."""

    id: str
    job: JsonObject
    snapshot_id: str
    version: str
    start: Moment
    currency: Literal["USD"]
    objective: ObjectiveName
    summary: list[str]
    plan: ShortPlan | None
    infeasible: RuledOut | None
    about: About | None
    without_chosen: Other | None
    requirements: list[Requirement]
    steps: Steps | None
    frontier: Frontier
    assumptions: list[str]
    warnings: list[str]


class WhyAnswer(TypedDict):
    """An explanation of a plan, or of why there is none."""

    outcome: Literal["explained", "infeasible"]
    why: Why
    meta: Meta
