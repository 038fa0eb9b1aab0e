"""Planned and actual costs by month: which plans count, what they cost by team or provider, and budgets of teams."""

from collections.abc import Mapping
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
from gpuplan.api.services.month_costs import Amounts, MonthCosts, month_costs
from gpuplan.api.services.service_context import ContextService, Document, ServiceContext, an_id
from gpuplan.catalog.model.money import usd_display, usd_text
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.cost_store import AdoptedPlan
from gpuplan.catalog.store.plan_store import SavedPlan
from gpuplan.planner.model.wire import wire

ASSUMPTIONS = (
    "A plan counts once somebody adopts it (gpuplan costs adopt PLAN_ID) or reports a run of it; other stored plans do not.",
    "Planned costs are expected costs, split over months (UTC) by the hours of each phase.",
    "Actual costs are reported hours from the start of the plan, at the plan's own prices; no bill is read.",
)


class BudgetChanged(UnusableInput):
    """The budget of the team was changed by somebody else after it had been read."""


class CostsService(ContextService):
    """Adds up what plans and runs cost in a month."""

    def of_month(self, month: str | None = None, by: str | None = None, *, now: datetime | None = None) -> Costs:
        """The costs of a month, by default the current one, of the plans that the requester may read.

        Raises `UnusableInput` at `month` or `by`.
        """
        grouped_by, begins = read_by(by), read_month(month, now or datetime.now(UTC))
        plans, left_out = self._plans(begins)
        budgets = self._context.store.costs.budgets() if grouped_by == "team" else {}
        parts: dict[str, list[Amounts]] = {team: [] for team in budgets}
        for plan in plans:
            for name, part in _split(plan, grouped_by).items():
                parts.setdefault(name, []).append(part)
        sums = {name: Amounts.added(of_plans) for name, of_plans in parts.items()}
        dearest_first = sorted(sums, key=lambda name: (-sums[name].expected, name))
        return Costs(
            outcome="costs",
            month=f"{begins:%Y-%m}",
            by=grouped_by,
            rows=tuple(_row(name, sums[name], len(parts[name]), budgets.get(name)) for name in dearest_first),
            total=CostTotal(**_in_usd(Amounts.added(plan.total for plan in plans)), plans=len(plans)),
            plans=tuple(map(_plan_costs, plans)),
            left_out=tuple(left_out),
            assumptions=ASSUMPTIONS,
        )

    def focus(self, month: str | None = None) -> str:
        """The planned charges of the month as a FOCUS dataset. Raises `UnusableInput` at `month`."""
        begins = read_month(month, datetime.now(UTC))
        return focus(*(plan.handover for plan in self._plans(begins)[0]), month=begins)

    def adopt(self, plan_id: str, *, now: datetime | None = None) -> PlanInCosts:
        """Count a plan in the costs. Raises `NotStored` or `NotOwned`, and `UnusableInput` for a job without a plan."""
        store = self._context.store
        saved = store.plan(an_id(plan_id, "plan"), viewer())
        store.costs.refuse_change(plan_id, viewer())
        now = now or datetime.now(UTC)
        adopt_plan(self._context, saved, now)
        store.access.record(record("costs.adopt", plan_id, now))
        return PlanInCosts(plan_id=plan_id, counts=True)

    def drop(self, plan_id: str) -> PlanInCosts:
        """Count a plan no longer. Raises `NotStored` or `NotOwned`."""
        self._context.store.costs.drop(an_id(plan_id, "plan"), viewer())
        self._context.store.access.record(record("costs.drop", plan_id, datetime.now(UTC)))
        return PlanInCosts(plan_id=plan_id, counts=False)

    def set_budget(self, document: Document) -> TeamBudget:
        """Set a team's budget for each month, or remove it. Raises `UnusableInput` at `team` or `usd`."""
        given = parse_budget(document)
        team, micros = str(given.team), given.usd_micros
        now = datetime.now(UTC)
        self._context.store.costs.set_budget(team, micros, now, owner() or "")
        return self._budget_set(team, micros, now)

    def replace_budget(self, document: Document, seen: Mapping[str, int]) -> TeamBudget:
        """As `set_budget`, by somebody who has `seen` these budgets, in micro-dollars by team.

        Raises `BudgetChanged` if that of the team is another one by now.
        """
        given = parse_budget(document)
        team, micros = str(given.team), given.usd_micros
        now = datetime.now(UTC)
        costs = self._context.store.costs
        if not costs.replace_budget(team, micros, now, owner() or "", seen=seen.get(team)):
            current = costs.budgets().get(team)
            reads = "removed" if current is None else f"set to {usd_display(current)}"
            message = (
                f"the budget of {team} was {reads} elsewhere since you loaded the page; send yours again to replace it"
            )
            raise BudgetChanged.at("usd", message=message)
        return self._budget_set(team, micros, now)

    def budgets(self) -> Mapping[str, int]:
        """The budgets of all teams for each month, in micro-dollars."""
        return self._context.store.costs.budgets()

    def _budget_set(self, team: str, micros: int | None, now: datetime) -> TeamBudget:
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


def adopt_plan(context: ServiceContext, saved: SavedPlan, now: datetime, *, ran_hours: float = 0.0) -> None:
    """Count a plan in the months of its phases, and of a run that has taken `ran_hours` since the start.

    Raises `UnusableInput` at `outcome` for a job without a plan.
    """
    handover = read_handover(saved.outcome)
    ends = max(phase.ends_at for phase in handover.phases)
    context.store.costs.adopt(
        AdoptedPlan(
            plan_id=saved.id,
            starts_at=handover.start,
            ends_at=max(ends, handover.start + timedelta(hours=ran_hours)),
            adopted_at=now,
            adopted_by=owner() or "",
        )
    )


def _split(plan: MonthCosts, by: By) -> dict[str, Amounts]:
    """The plan's amounts by team, project, provider or price kind."""
    if by == "team":
        return {plan.handover.team: plan.total}
    if by == "project":
        return {plan.handover.project: plan.total}
    return plan.by_provider() if by == "provider" else plan.by_kind()


def _in_usd(amounts: Amounts) -> dict[str, str]:
    """The amounts as fields of an answer."""
    return {f"{name}_usd": usd_text(micros) for name, micros in amounts._asdict().items()}


def _row(name: str, amounts: Amounts, plans: int, budget: int | None) -> CostRow:
    return CostRow(
        name=name,
        **_in_usd(amounts),
        plans=plans,
        budget_usd=None if budget is None else usd_text(budget),
        left_usd=None if budget is None else usd_text(budget - amounts.expected),
    )


def _plan_costs(plan: MonthCosts) -> PlanCosts:
    handover = plan.handover
    return PlanCosts(
        plan_id=handover.plan_id,
        job=handover.job,
        team=handover.team,
        project=handover.project,
        providers=tuple(plan.by_provider()),
        kinds=tuple(plan.by_kind()),
        starts_at=wire(handover.start),
        ends_at=wire(plan.ends_at),
        state=plan.state,
        **_in_usd(plan.total),
    )
