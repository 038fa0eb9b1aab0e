"""Measured results of planned runs."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Creates the table of reports on runs."""
    op.create_table(
        "actuals",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("plan_id", sa.Text, nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("accelerator", sa.Text, nullable=False),
        sa.Column("reported_at", sa.BigInteger, nullable=False),
        sa.Column("reported_by", sa.Text, nullable=False),
        sa.Column("running", sa.Boolean, nullable=False),
        sa.Column("share_done", sa.Double, nullable=False),
        sa.Column("hours", sa.Double),
        sa.Column("throughput", sa.Double),
        sa.Column("peak_memory_gib", sa.Double),
        sa.Column("preemptions", sa.Integer),
        sa.Column("expected", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_actuals"),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name="fk_actuals_plan_id"),
    )
    op.create_index("ix_actuals_plan_id", "actuals", ["plan_id"])
