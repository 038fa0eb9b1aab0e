"""The costs of a month, and the answers to changes of what counts."""

from dataclasses import dataclass
from typing import Literal

from gpuplan.api.schemas.json_types import Moment, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """The costs of one team, project, provider or price kind in the month."""

    name: str
    """Empty: the jobs name no team or project."""
    planned_usd: Usd
    """What the plans expect, by the hours of each phase that lie in the month."""
    actual_usd: Usd
    """Reported hours at the prices of their plans."""
    expected_usd: Usd
    """Of a finished run what it cost, of a running one the larger of plan and report, else what is planned."""
    plans: int
    budget_usd: Usd | None
    """Of the team, for the month."""
    left_usd: Usd | None
    """The budget without `expected_usd`; negative where it is exceeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCosts:
    """One plan's costs in the month."""

    plan_id: str
    job: str
    team: str
    project: str
    providers: tuple[str, ...]
    kinds: tuple[str, ...]
    starts_at: Moment
    ends_at: Moment
    state: Literal["planned", "running", "finished"]
    """By the newest report that states hours."""
    planned_usd: Usd
    actual_usd: Usd
    expected_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTotal:
    """The sum of all rows."""

    planned_usd: Usd
    actual_usd: Usd
    expected_usd: Usd
    plans: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutPlan:
    """A plan that counts and cannot be read, as one of another release, so that its costs are missing."""

    plan_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The costs of a month (UTC), the dearest first."""

    outcome: Literal["costs"]
    month: str
    by: Literal["team", "project", "provider", "kind"]
    rows: tuple[CostRow, ...]
    total: CostTotal
    plans: tuple[PlanCosts, ...]
    left_out: tuple[LeftOutPlan, ...]
    assumptions: tuple[str, ...]
    """Which plans count, and what the actual costs are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBudget:
    """A team's budget for each month; null if it has none any more."""

    team: str
    usd_per_month: Usd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInCosts:
    """Whether a plan counts in the costs."""

    plan_id: str
    counts: bool
