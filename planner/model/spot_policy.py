"""Answers about runs on interruptible machines: what a policy expects, what to do now, and its replay over traces."""

from dataclasses import dataclass, field
from typing import Literal

from gpuplan.planner.model.shared import MAY_BE_ABSENT, Usd

type SpotAction = Literal["stay", "checkpoint", "start", "move", "switch to on-demand", "wait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotPlace:
    """A place of a run, as its chain has it."""

    name: str
    usd_per_hour: float
    speed: float
    availability: float
    preemptions_per_up_hour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishAsPlanned:
    """When a saved plan ends if it stays on its machines, and until when it may."""

    mean_hours: float
    p95_hours: float
    probability_in_time: float | None
    """Null for a plan that states no chance."""
    confidence: float
    latest_switch_hours: float | None
    """When on-demand has to be taken at the latest; null where no moment keeps the confidence."""
    spot_first_usd: Usd
    switch_probability: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyExpectation:
    """What a policy was computed for, and what it expects."""

    name: str | None
    work_hours: float
    deadline_hours: float
    changeover_hours: float
    step_hours: float
    checkpoint_every_hours: float | None
    on_demand_usd_per_hour: float
    places: tuple[SpotPlace, ...]
    expected_usd: Usd
    on_demand_usd: Usd
    deadline_kept: str
    assumptions: tuple[str, ...]
    as_planned: FinishAsPlanned | None = field(default=None, metadata=MAY_BE_ABSENT)
    """In the answer for a saved plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDecision:
    """What a policy does now, and why."""

    action: SpotAction
    place: str | None
    """Where to run from now on."""
    checkpoint_first: bool
    """Whether to write a checkpoint before leaving."""
    on_demand_within_hours: float
    """How long on-demand can be put off."""
    expected_usd: Usd | None
    """Still to pay by the policy; null if only on-demand is left, or the time is too tight for its steps."""
    on_demand_usd: Usd
    """Still to pay with on-demand from now on."""
    decide_again_in_hours: float
    reasons: tuple[str, ...]
    assumptions: tuple[str, ...]


#: With `now` in the question, the decision.
type RunPolicy = PolicyExpectation | PolicyDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A trace that was replayed."""

    name: str
    hours: float
    up: float
    """Share of its time in which enough nodes were there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The policy beside simple rules and the omniscient optimum."""

    policy: PolicyExpectation
    runs: int
    seed: int
    traces: tuple[Traced, ...]
    rules: tuple[RuleResult, ...]
