"""The tables of what clouds said about getting machines, and about the quotas of accounts."""

import sqlalchemy as sa

from gpuplan.catalog.store.schema.column_types import Texts, UtcMicros, document, metadata, text

#: One row per answer, never changed: recent ones are reused, all are observations. Columns as in `CapacityAnswer`.
capacity_answers = sa.Table(
    "capacity_answers",
    metadata,
    text("provider", primary_key=True),
    text("region", primary_key=True),
    text("zone", primary_key=True),
    text("instance_type", primary_key=True),
    sa.Column("nodes", sa.Integer, primary_key=True, autoincrement=False),
    text("price_kind", primary_key=True),
    sa.Column("asked_at", UtcMicros, primary_key=True),
    sa.Column("probability", sa.Double, nullable=False),
    text("published"),
    text("source"),
    sa.Column("scored_types", Texts, nullable=False),
    sa.Column("interruptions_per_hour", sa.Double),
    text("interruptions_published"),
    sa.Column("uptime_hours", sa.Double),
    sa.Column("quota_available", sa.Boolean),
    sa.Column("starts_at", UtcMicros),
    sa.Column("modelled", Texts, nullable=False),
    sa.Index("ix_capacity_answers_asked_at", "asked_at"),
)

#: The newest reading of each region's quotas by one account; `quotas` is a JSON object, see `capacity_store`.
quota_readings = sa.Table(
    "quota_readings",
    metadata,
    text("account", primary_key=True),
    text("provider", primary_key=True),
    text("region", primary_key=True),
    sa.Column("read_at", UtcMicros, nullable=False),
    document("quotas"),
)
