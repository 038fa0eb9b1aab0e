"""Queued runs, parts of shared refreshes, and the releases that this schema supports."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Adds the column, which an earlier release leaves empty, and the two tables."""
    op.add_column("runs", sa.Column("attempt", sa.Integer))
    op.create_table(
        "refresh_parts",
        sa.Column("refresh_id", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("region", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary),
        sa.Column("failure", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("refresh_id", "provider", "region", name="pk_refresh_parts"),
    )
    compatible = op.create_table(
        "compatible_since",
        sa.Column("revision", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_compatible_since"),
    )
    op.bulk_insert(compatible, [{"revision": "0004"}])


def downgrade() -> None:
    """Drops them; the earlier release reports runs that still wait for the queue as silent."""
    op.drop_table("compatible_since")
    op.drop_table("refresh_parts")
    op.execute("UPDATE runs SET beat_at = created_at WHERE attempt IS NOT NULL AND status IN ('queued', 'running')")
    # Both databases support this; alembic would rewrite the whole table for SQLite, which could not before 3.35.
    op.execute("ALTER TABLE runs DROP COLUMN attempt")
