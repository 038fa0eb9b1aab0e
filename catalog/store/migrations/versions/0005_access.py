"""Access control: keys, browser sessions, quotas, and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Creates the four tables and their indexes."""
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("secret_hash", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
        sa.Column("requests_per_minute", sa.Integer),
        sa.Column("plans_per_day", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("secret_hash", sa.Text, nullable=False),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("key_hash", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_table(
        "quota_use",
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("day", sa.Text, nullable=False),
        sa.Column("plans", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("identity", "day", name="pk_quota_use"),
    )
    op.create_table(
        "audit",
        # SQLite assigns row numbers only to a key of type INTEGER.
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_index("ix_audit_identity", "audit", ["identity"])


def downgrade() -> None:
    """Drops them: keys and the log are lost, plans and prices stay."""
    for table in ("audit", "quota_use", "sessions", "api_keys"):
        op.drop_table(table)
