"""Plans that count in the costs of a month, and budgets of teams."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer, readable, refuse_others
from gpuplan.catalog.store.plan_store import Actual, SavedPlan, read_plan
from gpuplan.catalog.store.schema import actuals, adopted_plans, plans, team_budgets
from gpuplan.catalog.store.store_part import StorePart, reads, writes


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedPlan:
    """A plan that counts: when it can have cost, and who adopted it when."""

    plan_id: str
    starts_at: datetime
    ends_at: datetime
    adopted_at: datetime
    adopted_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWithReports:
    """A plan that counts, with the reports on its runs, oldest first."""

    saved: SavedPlan
    reports: tuple[Actual, ...]


def write_adopted(connection: sa.Connection, adopted: AdoptedPlan) -> None:
    """Count the plan from now on; if it counts already, only its end may move, to a later time."""
    table = adopted_plans
    insert_or_ignore(connection, table, adopted)
    later = sa.and_(table.c.plan_id == adopted.plan_id, table.c.ends_at < adopted.ends_at)
    connection.execute(sa.update(table).where(later).values(ends_at=adopted.ends_at))


def delete_adopted(connection: sa.Connection, plan_id: str, viewer: Viewer) -> bool:
    """Count the plan no longer; whether it did. Raises `NotStored` or `NotOwned` at `plan` for a plan of others."""
    read_plan(connection, plan_id, viewer)
    refuse_others(connection, "plan", plan_id, viewer)
    return bool(connection.execute(sa.delete(adopted_plans).where(adopted_plans.c.plan_id == plan_id)).rowcount)


def refuse_change(connection: sa.Connection, plan_id: str, viewer: Viewer) -> None:
    """Raises `NotOwned` at `plan` unless the viewer may change the plan."""
    refuse_others(connection, "plan", plan_id, viewer)


def read_adopted(
    connection: sa.Connection, begins: datetime, ends: datetime, viewer: Viewer = UNRESTRICTED
) -> tuple[PlanWithReports, ...]:
    """The plans that count and may have cost between two times, of those that the viewer may read; oldest first."""
    chosen = (
        sa.select(plans)
        .join(adopted_plans, adopted_plans.c.plan_id == plans.c.id)
        .where(adopted_plans.c.starts_at < ends, adopted_plans.c.ends_at > begins)
        .where(readable("plan", plans.c.id, viewer))
    )
    saved = [SavedPlan(**row._mapping) for row in connection.execute(chosen.order_by(plans.c.created_at, plans.c.id))]
    of_chosen = actuals.c.plan_id.in_(chosen.with_only_columns(plans.c.id))
    rows = connection.execute(sa.select(actuals).where(of_chosen).order_by(actuals.c.reported_at, actuals.c.id))
    reports: dict[str, list[Actual]] = {}
    for row in rows:
        reports.setdefault(row.plan_id, []).append(Actual(**row._mapping))
    return tuple(PlanWithReports(saved=plan, reports=tuple(reports.get(plan.id, ()))) for plan in saved)


def read_adopted_ids(connection: sa.Connection) -> frozenset[str]:
    """The ids of all plans that count."""
    return frozenset(connection.execute(sa.select(adopted_plans.c.plan_id)).scalars())


def write_budget(connection: sa.Connection, team: str, usd_micros: int | None, at: datetime, by: str) -> None:
    """Set a team's budget for each month in place of the earlier one; None removes it."""
    connection.execute(sa.delete(team_budgets).where(team_budgets.c.team == team))
    if usd_micros is not None:
        connection.execute(sa.insert(team_budgets), _budget_row(team, usd_micros, at, by))


def replace_budget(
    connection: sa.Connection, team: str, usd_micros: int | None, at: datetime, by: str, *, seen: int | None
) -> bool:
    """As `write_budget`, in place of the budget `seen`, None if there was none; False if another change came first."""
    row = None if usd_micros is None else _budget_row(team, usd_micros, at, by)
    if seen is None:
        if row is not None:
            return insert_or_ignore(connection, team_budgets, row)
        return connection.execute(sa.select(team_budgets).where(team_budgets.c.team == team)).first() is None
    as_seen = sa.and_(team_budgets.c.team == team, team_budgets.c.usd_micros_per_month == seen)
    change = sa.delete(team_budgets) if row is None else sa.update(team_budgets).values(**row)
    return bool(connection.execute(change.where(as_seen)).rowcount)


def _budget_row(team: str, usd_micros: int, at: datetime, by: str) -> dict[str, object]:
    return {"team": team, "usd_micros_per_month": usd_micros, "set_at": at, "set_by": by}


def read_budgets(connection: sa.Connection) -> Mapping[str, int]:
    """Micro-dollars for each month by team, in alphabetical order."""
    rows = connection.execute(sa.select(team_budgets).order_by(team_budgets.c.team))
    return {row.team: row.usd_micros_per_month for row in rows}


class CostStore(StorePart):
    """Which plans count in the costs of a month, and the budgets of teams."""

    adopt = writes(write_adopted)
    drop = writes(delete_adopted)
    refuse_change = reads(refuse_change)
    adopted = reads(read_adopted)
    adopted_ids = reads(read_adopted_ids)
    set_budget = writes(write_budget)
    replace_budget = writes(replace_budget)
    budgets = reads(read_budgets)
