"""Runs on interruptible machines: what a policy expects, what to do now, and how it would have gone."""

from typing import Literal, NotRequired, TypedDict

from gpuplan.api.schemas.json_types import Usd
from gpuplan.catalog.parsing.json_object import JsonObject


class SpotPlace(TypedDict):
    """A place of a run, as its chain has it."""

    name: str
    usd_per_hour: float
    speed: float
    availability: float
    preemptions_per_up_hour: float


class RunPolicy(TypedDict):
    """What the policy expects; with `now` in the question, the decision: `action`, `place`, `reasons`."""

    expected_usd: Usd | None
    on_demand_usd: Usd
    assumptions: list[str]
    name: NotRequired[str]
    work_hours: NotRequired[float]
    deadline_hours: NotRequired[float]
    changeover_hours: NotRequired[float]
    step_hours: NotRequired[float]
    checkpoint_every_hours: NotRequired[float | None]
    on_demand_usd_per_hour: NotRequired[float]
    places: NotRequired[list[SpotPlace]]
    deadline_kept: NotRequired[str]
    as_planned: NotRequired[JsonObject | None]
    action: NotRequired[Literal["stay", "checkpoint", "start", "move", "switch to on-demand", "wait"]]
    place: NotRequired[str | None]
    checkpoint_first: NotRequired[bool]
    on_demand_within_hours: NotRequired[float]
    decide_again_in_hours: NotRequired[float]
    reasons: NotRequired[list[str]]


class Traced(TypedDict):
    """A trace that was replayed."""

    name: str
    hours: float
    up: float
    """Share of its time in which enough nodes were there."""


class RuleResult(TypedDict):
    """How one rule did over all starts."""

    rule: str
    mean_usd: Usd
    p95_usd: Usd
    over_omniscient: float
    late_runs: int
    worst_late_hours: float
    spot_hours: float
    on_demand_hours: float
    preemptions: float


class Simulation(TypedDict):
    """The policy beside simple rules and the omniscient optimum."""

    policy: RunPolicy
    runs: int
    seed: int
    traces: list[Traced]
    rules: list[RuleResult]


class LadderPlace(TypedDict):
    """A choice of a ladder, numbered in the order it is tried; the machines on demand come last if they are none."""

    number: int
    provider: str
    region: str
    zone: str
    instance_type: str
    nodes: int
    price_kind: str
    usd_per_hour: Usd
    """Of all nodes."""
    work_hours: float
    """What the work takes without set-up, preemption and waiting."""


class TraceOfChoice(TypedDict):
    """Which trace was taken for a choice."""

    choice: int
    trace: str
    stands_in: bool
    """Whether it is of another zone or machine."""
    up: float


class ZoneSet(TypedDict):
    """Zones that were recorded together, and the starts replayed over them."""

    name: str
    starts: int
    traces: list[TraceOfChoice]


class LeftOutSet(TypedDict):
    """Zones recorded together that could not be used."""

    name: str
    why: str


class ObtainedChoice(TypedDict):
    """What a rule got of a choice: how often it came first and after how long, and mean hours there."""

    choice: int
    first_share: float
    first_after_hours: float | None
    hours: float


class LadderRuleResult(TypedDict):
    """How one rule did over all starts."""

    rule: str
    mean_usd: Usd
    p95_usd: Usd
    over_hindsight: float | None
    """Cost above the cheapest single choice, known beforehand for every start; null if that is free."""
    late_runs: int
    worst_late_hours: float
    mean_hours: float
    preemptions: float
    obtained: list[ObtainedChoice]


class LadderSimulation(TypedDict):
    """A plan's capacity ladder over availability traces, beside its first choice alone and on-demand."""

    plan: str
    name: str | None
    deadline_hours: float
    try_minutes: float
    refused: float
    choices: list[LadderPlace]
    runs: int
    sets: list[ZoneSet]
    left_out: list[LeftOutSet]
    rules: list[LadderRuleResult]
    assumptions: list[str]
