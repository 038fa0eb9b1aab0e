"""Price tables: rows with the range of snapshots in which they are valid.

Snapshots are numbered in the order in which they were written (`seq`). A row of `instance_types`, `readings` or `prices` is
valid from `first_seq` to `last_seq`, and a snapshot is the set of rows valid at its number; so a refresh that changes 2 %
of the prices writes 2 % of the rows. The other fields that rows share (source, time of reading, staleness) form a reading,
which changes for all its rows at once: a refresh that confirms every price adds one row per place, not one per price.
"""

import sqlalchemy as sa

from gpuplan.catalog.store.schema.column_types import Ratio, Texts, UtcMicros, metadata, text

#: `last_seq` of a row that is still valid; an integer rather than NULL, so that one index serves both.
OPEN = 2**31 - 1


def _validity() -> tuple[sa.Column[int], sa.Column[int]]:
    return (
        sa.Column("first_seq", sa.Integer, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False, index=True),
    )


snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False, unique=True),
    sa.Column("created_at", UtcMicros, nullable=False),
    sa.Column("observed_at", UtcMicros, nullable=False),
    text("source"),
    sa.Column("parent", sa.Text, sa.ForeignKey("snapshots.id")),
    sa.Column("offer_count", sa.Integer, nullable=False),
    sa.CheckConstraint("source IN ('embedded', 'refresh')", name="source"),
)

instance_types = sa.Table(
    "instance_types",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    *_validity(),
    text("provider"),
    text("name"),
    text("accelerator"),
    sa.Column("accelerator_count", Ratio, nullable=False),
    sa.Column("accelerator_memory_mib", sa.BigInteger),
    sa.Column("vcpus", sa.Double),
    sa.Column("ram_gib", sa.Double),
    sa.Column("local_disk_gb", sa.Double),
    text("intranode_link"),
    sa.Column("intranode_gbs", sa.Double),
    sa.Column("scaleup_domain", sa.Integer, nullable=False),
    sa.Column("network_gbps", sa.Double),
    text("fabric"),
    sa.Column("clusters", sa.Boolean, nullable=False),
    sa.Column("fixed_nodes", sa.Integer),
    sa.Column("sold_on_demand", sa.Boolean, nullable=False),
    sa.Column("retired", sa.Boolean, nullable=False),
    text("source"),
    text("as_of"),
)

#: All offers, including those without a current price.
offers = sa.Table(
    "offers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    text("provider"),
    text("region"),
    text("zone"),
    text("instance_type"),
    text("price_kind"),
    sa.UniqueConstraint("provider", "region", "zone", "instance_type", "price_kind"),
    sa.Index(None, "instance_type"),
)

#: Fields that a set of rows shares in addition to their figures; `reading_id` is stable, the contents change with each refresh.
readings = sa.Table(
    "readings",
    metadata,
    sa.Column("reading_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("first_seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("last_seq", sa.Integer, nullable=False, index=True),
    text("provider"),
    text("region"),
    text("source"),
    sa.Column("modelled", Texts, nullable=False),
    sa.Column("partial", Texts, nullable=False),
    sa.Column("observed_at", UtcMicros, nullable=False),
    sa.Column("observed_approximately", sa.Boolean, nullable=False),
    sa.Column("stale_since", UtcMicros),
    sqlite_with_rowid=False,
)

prices = sa.Table(
    "prices",
    metadata,
    sa.Column("offer_id", sa.Integer, sa.ForeignKey("offers.id"), primary_key=True, autoincrement=False),
    sa.Column("first_seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("last_seq", sa.Integer, nullable=False, index=True),
    sa.Column("usd_micros_per_hour", sa.BigInteger, nullable=False),
    sa.Column("interruptions_per_hour", sa.Double),
    sa.Column("available", sa.Boolean, nullable=False),
    sa.Column("reading_id", sa.Integer, nullable=False),
    sqlite_with_rowid=False,
)
