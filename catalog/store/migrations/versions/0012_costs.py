"""Plans that count in the costs of a month, and budgets of teams."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Creates the tables; plans with reports count from the start. The earlier release uses neither."""
    op.create_table(
        "adopted_plans",
        sa.Column("plan_id", sa.Text, nullable=False),
        sa.Column("starts_at", sa.BigInteger, nullable=False),
        sa.Column("ends_at", sa.BigInteger, nullable=False),
        sa.Column("adopted_at", sa.BigInteger, nullable=False),
        sa.Column("adopted_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("plan_id", name="pk_adopted_plans"),
    )
    op.create_table(
        "team_budgets",
        sa.Column("team", sa.Text, nullable=False),
        sa.Column("usd_micros_per_month", sa.BigInteger, nullable=False),
        sa.Column("set_at", sa.BigInteger, nullable=False),
        sa.Column("set_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("team", name="pk_team_budgets"),
    )
    op.execute(
        "INSERT INTO adopted_plans (plan_id, starts_at, ends_at, adopted_at, adopted_by) "
        # To the end of the year 9999 in microseconds: the times of these plans are in the plans.
        "SELECT plan_id, 0, 253402300799000000, MIN(reported_at), '' FROM actuals GROUP BY plan_id"
    )


def downgrade() -> None:
    """Drops both."""
    op.drop_table("team_budgets")
    op.drop_table("adopted_plans")
