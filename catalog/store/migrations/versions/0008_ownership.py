"""Ownership: owners of plans, runs and watches, share links, and their readers."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Creates the three tables. Existing objects have no owner, and every key may read them as before."""
    op.create_table(
        "object_owners",
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("object_id", sa.Text, nullable=False),
        sa.Column("identity", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("kind", "object_id", "identity", name="pk_object_owners"),
    )
    op.create_table(
        "shares",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("secret_hash", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("object_id", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_shares"),
    )
    op.create_index("ix_shares_object_id", "shares", ["object_id"])
    op.create_table(
        "share_readers",
        sa.Column("share_id", sa.Text, nullable=False),
        sa.Column("identity", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("share_id", "identity", name="pk_share_readers"),
    )


def downgrade() -> None:
    """Drops them: the earlier release has no owners, and every key may read everything again."""
    for table in ("share_readers", "shares", "object_owners"):
        op.drop_table(table)
