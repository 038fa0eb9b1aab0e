"""Slack: questions, one-time marks, allowed workspaces, and installations."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Creates the four tables and their indexes."""
    op.create_table(
        "slack_answers",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("team_id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("channel_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("response_url", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("held_until", sa.BigInteger, nullable=False),
        sa.Column("message", sa.Text),
        sa.Column("plan_id", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("delivered_at", sa.BigInteger),
        sa.Column("given_up_at", sa.BigInteger),
        sa.Column("last_error", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_slack_answers"),
    )
    for column in ("created_at", "plan_id", "delivered_at"):
        op.create_index(f"ix_slack_answers_{column}", "slack_answers", [column])
    op.create_table(
        "slack_once",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("mark", sa.Text, nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_slack_once"),
    )
    op.create_index("ix_slack_once_until", "slack_once", ["until"])
    op.create_table(
        "slack_workspaces",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_slack_workspaces"),
    )
    op.create_table(
        "slack_installations",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("installation", sa.Text, nullable=False),
        sa.Column("installed_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_slack_installations"),
    )


def downgrade() -> None:
    """Drops them: unanswered questions stay unanswered, and workspaces must be allowed again."""
    for table in ("slack_installations", "slack_workspaces", "slack_once", "slack_answers"):
        op.drop_table(table)
