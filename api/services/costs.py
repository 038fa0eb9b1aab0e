"""Planned and actual costs by month: which plans count, what they cost by team or provider, and budgets of teams."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from gpuplan.api.exports.focus import focus
from gpuplan.api.exports.handover_reader import read_handover
from gpuplan.api.schemas.costs import By, parse_budget, read_by, read_month
from gpuplan.api.schemas.costs_answer import (
    CostRow,
    Costs,
    CostTotal,
    LeftOutPlan,
    PlanCosts,
    PlanInCosts,
    TeamBudget,
)
from gpuplan.api.security.authorization import owner, record, viewer
from gpuplan.api.services.month_costs import MonthCosts, month_costs
from gpuplan.api.services.service_context import Document, ServiceContext, an_id
from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.saved_answers import SavedPlan
from gpuplan.catalog.store.stored_costs import AdoptedPlan
from gpuplan.planner.model.wire import wire

ASSUMPTIONS = (
    "A plan counts once somebody adopts it (gpuplan costs adopt PLAN_ID) or reports a run of it; other stored plans do not.",
    "Planned costs are expected costs, split over months (UTC) by the hours of each phase.",
    "Actual costs are reported hours from the start of the plan, at the plan's own prices; no bill is read.",
)


class CostsService:
    """Adds up what plans and runs cost in a month."""

    def __init__(self, context: ServiceContext) -> None:
        """Read the plans and budgets in the store of `context`."""
        self._context = context

    def of_month(self, month: str | None = None, by: str | None = None, *, now: datetime | None = None) -> Costs:
        """The costs of a month, by default the current one, of the plans that the requester may read.

        Raises `UnusableInput` at `month` or `by`.
        """
        grouped_by, begins = read_by(by), read_month(month, now or datetime.now(UTC))
        plans, left_out = self._plans(begins)
        groups: dict[str, _Sum] = defaultdict(_Sum)
        for plan in plans:
            for name, part in _split(plan, grouped_by).items():
                groups[name].add(part)
        budgets = self._context.store.costs.budgets() if grouped_by == "team" else {}
        rows = [_row(name, groups.get(name, _Sum()), budgets.get(name)) for name in dict.fromkeys((*groups, *budgets))]
        whole = _Sum()
        for plan in plans:
            whole.add((plan.planned.total(), plan.actual.total(), plan.expected.total()))
        return Costs(
            outcome="costs",
            month=f"{begins:%Y-%m}",
            by=grouped_by,
            rows=tuple(row for _, row in sorted(rows, key=lambda pair: (-pair[0], pair[1].name))),
            total=CostTotal(**whole.in_usd(), plans=whole.plans),
            plans=tuple(map(_plan_costs, plans)),
            left_out=tuple(left_out),
            assumptions=ASSUMPTIONS,
        )

    def focus(self, month: str | None = None, *, now: datetime | None = None) -> str:
        """The planned charges of the month as a FOCUS dataset. Raises `UnusableInput` at `month`."""
        begins = read_month(month, now or datetime.now(UTC))
        return focus(*(plan.handover for plan in self._plans(begins)[0]), month=begins)

    def adopt(self, plan_id: str, *, now: datetime | None = None) -> PlanInCosts:
        """Count a plan in the costs. Raises `NotStored` or `NotOwned`, and `UnusableInput` for a job without a plan."""
        store = self._context.store
        saved = store.plan(an_id(plan_id, "plan"), viewer())
        store.costs.refuse_change(plan_id, viewer())
        now = now or datetime.now(UTC)
        adopt_ran(self._context, saved, 0.0, now)
        store.access.record(record("costs.adopt", plan_id, now))
        return PlanInCosts(plan_id=plan_id, counts=True)

    def drop(self, plan_id: str, *, now: datetime | None = None) -> PlanInCosts:
        """Count a plan no longer. Raises `NotStored` or `NotOwned`."""
        self._context.store.costs.drop(an_id(plan_id, "plan"), viewer())
        self._context.store.access.record(record("costs.drop", plan_id, now or datetime.now(UTC)))
        return PlanInCosts(plan_id=plan_id, counts=False)

    def set_budget(self, document: Document, *, now: datetime | None = None) -> TeamBudget:
        """Set a team's budget for each month, or remove it. Raises `UnusableInput` at `team` or `usd`."""
        given = parse_budget(document)
        team, micros = str(given.team), given.usd_micros
        now = now or datetime.now(UTC)
        self._context.store.costs.set_budget(team, micros, now, owner() or "")
        self._context.store.access.record(record("costs.budget", team, now))
        return TeamBudget(team=team, usd_per_month=None if micros is None else usd_text(micros))

    def adoptable(self, most: int) -> list[SavedPlan]:
        """The newest plans with an outcome that do not count yet, at most so many."""
        adopted = self._context.store.costs.adopted_ids()
        recent = self._context.store.recent_plans(4 * most, viewer())
        planned = [plan for plan in recent if plan.outcome["outcome"] == "planned" and plan.id not in adopted]
        return planned[:most]

    def _plans(self, month: datetime) -> tuple[list[MonthCosts], list[LeftOutPlan]]:
        """The plans with costs in the month, and those that cannot be read."""
        ends = (month + timedelta(days=32)).replace(day=1)
        plans: list[MonthCosts] = []
        left_out: list[LeftOutPlan] = []
        for adopted in self._context.store.costs.adopted(month, ends, viewer()):
            try:
                costs = month_costs(adopted, month)
            except UnusableInput as error:
                left_out.append(LeftOutPlan(plan_id=adopted.saved.id, reason=str(error)))
                continue
            if costs is not None:
                plans.append(costs)
        return plans, left_out


def adopt_ran(context: ServiceContext, saved: SavedPlan, hours: float, now: datetime) -> None:
    """Count a plan, until the end of its phases or of a run of so many hours.

    Raises `UnusableInput` at `outcome` for a job without a plan.
    """
    handover = read_handover(saved.outcome)
    ends = max(phase.ends_at for phase in handover.phases)
    context.store.costs.adopt(
        AdoptedPlan(
            plan_id=saved.id,
            starts_at=handover.start,
            ends_at=max(ends, handover.start + timedelta(hours=hours)),
            adopted_at=now,
            adopted_by=owner() or "",
        )
    )


class _Sum:
    """Micro-dollars planned, actual and expected, and the number of plans."""

    def __init__(self) -> None:
        self.planned = self.actual = self.expected = self.plans = 0

    def add(self, part: tuple[int, int, int]) -> None:
        """Add a plan's part."""
        planned, actual, expected = part
        self.planned, self.actual, self.expected = (
            self.planned + planned,
            self.actual + actual,
            self.expected + expected,
        )
        self.plans += 1

    def in_usd(self) -> dict[str, str]:
        """The three sums on the wire."""
        return {
            "planned_usd": usd_text(self.planned),
            "actual_usd": usd_text(self.actual),
            "expected_usd": usd_text(self.expected),
        }


def _split(plan: MonthCosts, by: By) -> dict[str, tuple[int, int, int]]:
    """The plan's planned, actual and expected micro-dollars by name."""
    if by in ("team", "project"):
        name = plan.handover.team if by == "team" else plan.handover.project
        return {name: (plan.planned.total(), plan.actual.total(), plan.expected.total())}
    position = 0 if by == "provider" else 1
    sums = [_by_part(costs, position) for costs in (plan.planned, plan.actual, plan.expected)]
    names = dict.fromkeys(name for part in sums for name in part)
    return {name: (sums[0][name], sums[1][name], sums[2][name]) for name in names}


def _by_part(costs: Counter[tuple[str, str]], position: int) -> Counter[str]:
    parts: Counter[str] = Counter()
    for where, micros in costs.items():
        parts[where[position]] += micros
    return parts


def _row(name: str, costs: _Sum, budget: int | None) -> tuple[int, CostRow]:
    """The row, after the micro-dollars that it is sorted by."""
    row = CostRow(
        name=name,
        **costs.in_usd(),
        plans=costs.plans,
        budget_usd=None if budget is None else usd_text(budget),
        left_usd=None if budget is None else usd_text(budget - costs.expected),
    )
    return costs.expected, row


def _plan_costs(plan: MonthCosts) -> PlanCosts:
    handover = plan.handover
    where = list(dict.fromkeys((*plan.planned, *plan.actual)))
    return PlanCosts(
        plan_id=handover.plan_id,
        job=handover.job,
        team=handover.team,
        project=handover.project,
        providers=_named(where, 0),
        kinds=_named(where, 1),
        starts_at=wire(handover.start),
        ends_at=wire(plan.ends_at),
        state=plan.state,
        planned_usd=usd_text(plan.planned.total()),
        actual_usd=usd_text(plan.actual.total()),
        expected_usd=usd_text(plan.expected.total()),
    )


def _named(where: Sequence[tuple[str, str]], position: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(parts[position] for parts in where))
