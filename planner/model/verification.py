"""The answer of `verify`: a plan compared with its snapshot, figure by figure."""

from dataclasses import dataclass
from typing import Any, Literal

from gpuplan.planner.model.shared import Moment, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongFigure:
    """A figure that is not what it should be."""

    figure: str
    """A pointer into the plan."""
    check: str
    stated: Any
    found: Any
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule, and how many figures it was applied to."""

    check: str
    says: str
    basis: str
    passed: bool
    figures: int
    wrong: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanComparison:
    """How many choices the plan and its bound were compared with."""

    offers: int
    offers_that_requirements_or_standing_refuse: int
    offers_compared: int
    of_these_dearer_than_the_plan_even_at_dense_peak: int
    configurations_compared_by_estimate: int
    best_trades_of_cost_against_time: int
    node_counts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleComparison(PlanComparison):
    """The choices where the job stays on one configuration."""

    plans_in_phases: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasedComparison(PlanComparison):
    """The choices where the job may move, and how far below the plan any plan in phases could be."""

    pairs_in_phases_priced_exactly: int
    pairs_in_phases_left_to_the_bound_alone: str
    no_plan_in_any_number_of_phases_costs_less_than_usd: Usd | None
    which_is_below_the_plan_by_percent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InfeasibleComparison:
    """How many choices break a requirement, and which requirements they break together."""

    offers: int
    offers_that_can_be_had: int
    configurations: int
    nodes_up_to: int
    pairs_in_phases_priced_exactly: int
    marks: dict[str, int]
    """Configurations by the requirements that they break, joined by ` + `; the eight most frequent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked, on what basis, and what is wrong."""

    id: str
    of: str
    snapshot_id: str
    made_by: str
    wrong: tuple[WrongFigure, ...]
    """At most the first hundred."""
    wrong_count: int
    checks: tuple[Check, ...]
    bases: dict[str, str]
    covers: SingleComparison | PhasedComparison | InfeasibleComparison
    """What the bound was compared with, and how far the plan is from it."""
    taken_on_trust: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationMeta:
    """When it was checked, how long that took, and by which release."""

    checked_at: Moment
    milliseconds: float
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationAnswer:
    """Whether every figure of the plan holds."""

    outcome: Literal["verified", "not_verified"]
    verification: Verification
    meta: VerificationMeta
