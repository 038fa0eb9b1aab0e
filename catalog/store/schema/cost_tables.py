"""The tables of costs by month: plans that count, and budgets of teams."""

import sqlalchemy as sa

from gpuplan.catalog.store.schema.column_types import UtcMicros, metadata, text

#: Plans that somebody adopted or reported a run of; from `starts_at` to `ends_at` they can have cost.
adopted_plans = sa.Table(
    "adopted_plans",
    metadata,
    sa.Column("plan_id", sa.Text, primary_key=True),
    sa.Column("starts_at", UtcMicros, nullable=False),
    sa.Column("ends_at", UtcMicros, nullable=False),
    sa.Column("adopted_at", UtcMicros, nullable=False),
    text("adopted_by"),
)

#: A team's budget for each month, in micro-dollars.
team_budgets = sa.Table(
    "team_budgets",
    metadata,
    sa.Column("team", sa.Text, primary_key=True),
    sa.Column("usd_micros_per_month", sa.BigInteger, nullable=False),
    sa.Column("set_at", UtcMicros, nullable=False),
    text("set_by"),
)
