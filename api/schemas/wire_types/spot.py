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
