"""Notes on plans, and the plans of threads in Slack."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Creates the tables; the earlier release does not use them."""
    op.create_table(
        "plan_notes",
        sa.Column("plan_id", sa.Text, nullable=False),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("plan_id", "identity", name="pk_plan_notes"),
    )
    op.create_table(
        "slack_threads",
        sa.Column("team_id", sa.Text, nullable=False),
        sa.Column("channel_id", sa.Text, nullable=False),
        sa.Column("thread_ts", sa.Text, nullable=False),
        sa.Column("plan_id", sa.Text, nullable=False),
        sa.Column("answered_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("team_id", "channel_id", "thread_ts", name="pk_slack_threads"),
    )
    op.create_index("ix_slack_threads_answered_at", "slack_threads", ["answered_at"])


def downgrade() -> None:
    """Drops them, with all notes."""
    op.drop_table("slack_threads")
    op.drop_table("plan_notes")
