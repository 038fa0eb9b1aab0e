"""Background runs: long computations and refreshes."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Creates the table and the index that retention reads."""
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("beat_at", sa.BigInteger, nullable=False),
        sa.Column("cancel_asked", sa.Boolean, nullable=False),
        sa.Column("progress", sa.Text, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name=op.f("ck_runs_status")
        ),
    )
    op.create_index("ix_runs_created_at", "runs", ["created_at"])
