"""What clouds said about getting machines."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Creates the table; the earlier release does not use it."""
    op.create_table(
        "capacity_answers",
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("region", sa.Text, nullable=False),
        sa.Column("zone", sa.Text, nullable=False),
        sa.Column("instance_type", sa.Text, nullable=False),
        sa.Column("nodes", sa.Integer, nullable=False),
        sa.Column("price_kind", sa.Text, nullable=False),
        sa.Column("asked_at", sa.BigInteger, nullable=False),
        sa.Column("probability", sa.Double, nullable=False),
        sa.Column("published", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("scored_types", sa.Text, nullable=False),
        sa.Column("interruptions_per_hour", sa.Double),
        sa.Column("interruptions_published", sa.Text, nullable=False),
        sa.Column("uptime_hours", sa.Double),
        sa.Column("quota_available", sa.Boolean),
        sa.Column("starts_at", sa.BigInteger),
        sa.Column("modelled", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint(
            "provider",
            "region",
            "zone",
            "instance_type",
            "nodes",
            "price_kind",
            "asked_at",
            name="pk_capacity_answers",
        ),
    )
    op.create_index("ix_capacity_answers_asked_at", "capacity_answers", ["asked_at"])


def downgrade() -> None:
    """Drops it, with all observations."""
    op.drop_table("capacity_answers")
