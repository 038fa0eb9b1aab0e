"""The quotas of accounts, as their clouds stated them last."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Creates the table; the earlier release does not use it."""
    op.create_table(
        "quota_readings",
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("region", sa.Text, nullable=False),
        sa.Column("read_at", sa.BigInteger, nullable=False),
        sa.Column("quotas", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("account", "provider", "region", name="pk_quota_readings"),
    )


def downgrade() -> None:
    """Drops it; quotas are then read again."""
    op.drop_table("quota_readings")
