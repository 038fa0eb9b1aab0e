"""Refresh records, watches and their notifications; an index for the history of one type."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Creates the index and the three tables."""
    op.create_index("ix_offers_instance_type", "offers", ["instance_type"])
    op.create_table(
        "refreshes",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("snapshot_id", sa.Text),
        sa.Column("report", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_refreshes"),
        sa.CheckConstraint("outcome IN ('whole', 'partial', 'refused', 'failed')", name=op.f("ck_refreshes_outcome")),
    )
    op.create_index("ix_refreshes_started_at", "refreshes", ["started_at"])
    op.create_table(
        "watches",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("job", sa.Text, nullable=False),
        sa.Column("channels", sa.Text, nullable=False),
        sa.Column("threshold_percent", sa.Double, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_told", sa.Text, nullable=False),
        sa.Column("tellings", sa.Integer, nullable=False),
        sa.Column("checked_at", sa.BigInteger),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_watches"),
    )
    op.create_table(
        "notifications",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("watch_id", sa.Text, nullable=False),
        sa.Column("telling", sa.Integer, nullable=False),
        sa.Column("snapshot_id", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("held_until", sa.BigInteger),
        sa.Column("delivered_at", sa.BigInteger),
        sa.Column("given_up_at", sa.BigInteger),
        sa.Column("last_error", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notifications"),
        sa.UniqueConstraint("watch_id", "telling", "channel", name="uq_notifications_watch_id_telling_channel"),
    )
    op.create_index("ix_notifications_watch_id", "notifications", ["watch_id"])
    op.create_index("ix_notifications_delivered_at", "notifications", ["delivered_at"])
