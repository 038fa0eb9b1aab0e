"""The first tables: snapshots as price points, plans, idempotency keys."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates every table."""
    _create_snapshots()
    _create_instance_types()
    _create_offers()
    _create_prices()
    _create_memory()


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=False)


def _whole(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=False)


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _create_snapshots() -> None:
    op.create_table(
        "snapshots",
        _text("id"),
        _whole("seq"),
        _time("created_at"),
        _time("observed_at"),
        _text("source"),
        sa.Column("parent", sa.Text),
        _whole("offer_count"),
        sa.PrimaryKeyConstraint("id", name="pk_snapshots"),
        sa.UniqueConstraint("seq", name="uq_snapshots_seq"),
        sa.ForeignKeyConstraint(["parent"], ["snapshots.id"], name="fk_snapshots_parent"),
        sa.CheckConstraint("source IN ('embedded', 'refresh')", name=op.f("ck_snapshots_source")),
    )


def _create_instance_types() -> None:
    op.create_table(
        "instance_types",
        _whole("id"),
        _whole("first_seq"),
        _whole("last_seq"),
        _text("provider"),
        _text("name"),
        _text("accelerator"),
        _text("accelerator_count"),
        sa.Column("accelerator_memory_mib", sa.BigInteger),
        sa.Column("vcpus", sa.Double),
        sa.Column("ram_gib", sa.Double),
        sa.Column("local_disk_gb", sa.Double),
        _text("intranode_link"),
        sa.Column("intranode_gbs", sa.Double),
        _whole("scaleup_domain"),
        sa.Column("network_gbps", sa.Double),
        _text("fabric"),
        _flag("clusters"),
        sa.Column("fixed_nodes", sa.Integer),
        _flag("sold_on_demand"),
        _flag("retired"),
        _text("source"),
        _text("as_of"),
        sa.PrimaryKeyConstraint("id", name="pk_instance_types"),
    )
    op.create_index("ix_instance_types_last_seq", "instance_types", ["last_seq"])


def _create_offers() -> None:
    key = ["provider", "region", "zone", "instance_type", "price_kind"]
    op.create_table(
        "offers",
        _whole("id"),
        *(_text(name) for name in key),
        sa.PrimaryKeyConstraint("id", name="pk_offers"),
        sa.UniqueConstraint(*key, name="uq_offers_" + "_".join(key)),
    )


def _create_prices() -> None:
    op.create_table(
        "readings",
        _whole("reading_id"),
        _whole("first_seq"),
        _whole("last_seq"),
        _text("provider"),
        _text("region"),
        _text("source"),
        _text("modelled"),
        _text("partial"),
        _time("observed_at"),
        _flag("observed_approximately"),
        sa.Column("stale_since", sa.BigInteger),
        sa.PrimaryKeyConstraint("reading_id", "first_seq", name="pk_readings"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_readings_last_seq", "readings", ["last_seq"])
    op.create_table(
        "prices",
        _whole("offer_id"),
        _whole("first_seq"),
        _whole("last_seq"),
        sa.Column("usd_micros_per_hour", sa.BigInteger, nullable=False),
        sa.Column("interruptions_per_hour", sa.Double),
        _flag("available"),
        _whole("reading_id"),
        sa.PrimaryKeyConstraint("offer_id", "first_seq", name="pk_prices"),
        sa.ForeignKeyConstraint(["offer_id"], ["offers.id"], name="fk_prices_offer_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_prices_last_seq", "prices", ["last_seq"])


def _create_memory() -> None:
    op.create_table(
        "plans",
        _text("id"),
        _text("snapshot_id"),
        _text("job"),
        _text("outcome"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_plans"),
    )
    op.create_table(
        "idempotency_keys",
        _text("scope"),
        _text("key"),
        _text("request_hash"),
        _text("response"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("scope", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
