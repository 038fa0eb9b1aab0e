"""The tables: prices as points that hold from one snapshot to another, plans, and what a service must remember.

Snapshots are numbered in the order in which they were written (`seq`). A row of `instance_types`,
`readings` or `prices` is there from `first_seq` to `last_seq`, and a snapshot is the set of rows that
hold at its number; so a refresh that changes 2 % of the prices writes 2 % of the rows. What rows share
besides their figures (source, time of reading, staleness) is a reading, which changes for all its rows
at once: a night that confirms every price adds one row per place, not one per price.
"""

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

#: `last_seq` of a row that still holds; an integer rather than NULL, so that one index answers both.
OPEN = 2**31 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class UtcMicros(TypeDecorator[datetime]):
    """An aware time as microseconds since 1970 in UTC: exact, and the same on every database.

    Raises `ValueError` for a time without a zone.
    """

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> int | None:
        """The time as it is stored."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        """The stored number as an aware UTC time."""
        return None if value is None else _EPOCH + timedelta(microseconds=value)


class Ratio(TypeDecorator[Fraction]):
    """An exact fraction as text, `1/4` or `8`: a count of accelerators may be part of a card."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Fraction | None, dialect: sa.Dialect) -> str | None:
        """The fraction as it is stored."""
        return None if value is None else str(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Fraction | None:
        """The stored text as a fraction."""
        return None if value is None else Fraction(value)


class Texts(TypeDecorator[tuple[str, ...]]):
    """A tuple of texts as a JSON array."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: sa.Dialect) -> str | None:
        """The texts as they are stored."""
        return None if value is None else json.dumps(value, ensure_ascii=False)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> tuple[str, ...] | None:
        """The stored array as a tuple."""
        if value == "[]":  # nearly always, and a tenth of the time that a parser takes
            return ()
        return None if value is None else tuple(json.loads(value))


metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def _text(name: str, **options: Any) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, **options)


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
    _text("source"),
    sa.Column("parent", sa.Text, sa.ForeignKey("snapshots.id")),
    sa.Column("offer_count", sa.Integer, nullable=False),
    sa.CheckConstraint("source IN ('embedded', 'refresh')", name="source"),
)

instance_types = sa.Table(
    "instance_types",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    *_validity(),
    _text("provider"),
    _text("name"),
    _text("accelerator"),
    sa.Column("accelerator_count", Ratio, nullable=False),
    sa.Column("accelerator_memory_mib", sa.BigInteger),
    sa.Column("vcpus", sa.Double),
    sa.Column("ram_gib", sa.Double),
    sa.Column("local_disk_gb", sa.Double),
    _text("intranode_link"),
    sa.Column("intranode_gbs", sa.Double),
    sa.Column("scaleup_domain", sa.Integer, nullable=False),
    sa.Column("network_gbps", sa.Double),
    _text("fabric"),
    sa.Column("clusters", sa.Boolean, nullable=False),
    sa.Column("fixed_nodes", sa.Integer),
    sa.Column("sold_on_demand", sa.Boolean, nullable=False),
    sa.Column("retired", sa.Boolean, nullable=False),
    _text("source"),
    _text("as_of"),
)

#: What can have a price, whether it has one now or not.
offers = sa.Table(
    "offers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    _text("provider"),
    _text("region"),
    _text("zone"),
    _text("instance_type"),
    _text("price_kind"),
    sa.UniqueConstraint("provider", "region", "zone", "instance_type", "price_kind"),
    sa.Index(None, "instance_type"),
)

#: What a set of rows shares besides their figures; `reading_id` stays, its contents move with each refresh.
readings = sa.Table(
    "readings",
    metadata,
    sa.Column("reading_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("first_seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("last_seq", sa.Integer, nullable=False, index=True),
    _text("provider"),
    _text("region"),
    _text("source"),
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

#: No foreign key to `snapshots`: a plan may rest on a snapshot joined with the user's own machines.
plans = sa.Table(
    "plans",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("snapshot_id"),
    _text("job"),
    _text("outcome"),
    sa.Column("created_at", UtcMicros, nullable=False),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    _text("request_hash"),
    _text("response"),
    sa.Column("created_at", UtcMicros, nullable=False, index=True),
)

#: What runs of plans measured; `expected` is what the plan had said, so that old reports stay what they were.
actuals = sa.Table(
    "actuals",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("plan_id", index=True),
    _text("task"),
    _text("accelerator"),
    sa.Column("reported_at", UtcMicros, nullable=False),
    _text("reported_by"),
    sa.Column("running", sa.Boolean, nullable=False),
    sa.Column("share_done", sa.Double, nullable=False),
    sa.Column("hours", sa.Double),
    sa.Column("throughput", sa.Double),
    sa.Column("peak_memory_gib", sa.Double),
    sa.Column("preemptions", sa.Integer),
    _text("expected"),
    sa.ForeignKeyConstraint(["plan_id"], ["plans.id"]),
)

#: One row per refresh that was run, also of one that wrote no snapshot; `report` is what it printed, as JSON.
refreshes = sa.Table(
    "refreshes",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("started_at", UtcMicros, nullable=False, index=True),
    sa.Column("finished_at", UtcMicros, nullable=False),
    _text("outcome"),
    sa.Column("snapshot_id", sa.Text),
    _text("report"),
    sa.CheckConstraint("outcome IN ('whole', 'partial', 'refused', 'failed')", name="outcome"),
)

#: Saved jobs that are planned again after each refresh; `last_told` is what changes are told against, as JSON.
watches = sa.Table(
    "watches",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("name"),
    _text("job"),
    sa.Column("channels", Texts, nullable=False),
    sa.Column("threshold_percent", sa.Double, nullable=False),
    sa.Column("created_at", UtcMicros, nullable=False),
    _text("last_told"),
    sa.Column("tellings", sa.Integer, nullable=False),
    sa.Column("checked_at", UtcMicros),
    _text("problem"),
    sa.Column("ended_at", UtcMicros),
)

#: What watches have to say, written with the change it tells of and sent after; one per telling and channel.
notifications = sa.Table(
    "notifications",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("watch_id", index=True),
    sa.Column("telling", sa.Integer, nullable=False),
    _text("snapshot_id"),
    _text("channel"),
    _text("event"),
    _text("payload"),
    sa.Column("created_at", UtcMicros, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("held_until", UtcMicros),
    sa.Column("delivered_at", UtcMicros, index=True),
    sa.Column("given_up_at", UtcMicros),
    _text("last_error"),
    sa.UniqueConstraint("watch_id", "telling", "channel"),
)

#: Work that outlives its request: what was asked, how far it is, and what came of it, all as JSON. Whoever is at it
#: moves `beat_at`; a run that is queued or running and silent for too long has lost its process. One that a queue hands
#: out counts in `attempt` how often it was begun; the queue itself takes care of those whose process was lost.
runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("kind"),
    _text("status"),
    _text("request"),
    sa.Column("created_at", UtcMicros, nullable=False, index=True),
    sa.Column("started_at", UtcMicros),
    sa.Column("finished_at", UtcMicros),
    sa.Column("beat_at", UtcMicros, nullable=False),
    sa.Column("cancel_asked", sa.Boolean, nullable=False),
    _text("progress"),
    sa.Column("answer", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("attempt", sa.Integer),
    sa.CheckConstraint("status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="status"),
)

#: What the processes that share a refresh have fetched, until it is written as a whole: per provider the list of its
#: regions (under an empty region) and the rows of each, packed; or why there is none.
refresh_parts = sa.Table(
    "refresh_parts",
    metadata,
    sa.Column("refresh_id", sa.Text, primary_key=True),
    sa.Column("provider", sa.Text, primary_key=True),
    sa.Column("region", sa.Text, primary_key=True),
    sa.Column("content", sa.LargeBinary),
    _text("failure"),
)

#: One row: the oldest revision whose release works on these tables, so that it goes on while a newer one is rolled out.
compatible_since = sa.Table("compatible_since", metadata, sa.Column("revision", sa.Text, primary_key=True))

#: Keys without their secrets, of which only the SHA-256 is here.
api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("name"),
    _text("secret_hash"),
    sa.Column("scopes", Texts, nullable=False),
    sa.Column("created_at", UtcMicros, nullable=False),
    _text("created_by"),
    sa.Column("expires_at", UtcMicros),
    sa.Column("revoked_at", UtcMicros),
    sa.Column("last_used_at", UtcMicros),
    sa.Column("requests_per_minute", sa.Integer),
    sa.Column("plans_per_day", sa.Integer),
)

#: Browsers that have logged in; the key may be one of the environment, which has no row.
sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("secret_hash"),
    _text("key_id"),
    _text("key_hash"),
    sa.Column("created_at", UtcMicros, nullable=False),
    sa.Column("expires_at", UtcMicros, nullable=False, index=True),
)

#: Plans given to an identity on a day (UTC, as ISO text).
quota_use = sa.Table(
    "quota_use",
    metadata,
    sa.Column("identity", sa.Text, primary_key=True),
    sa.Column("day", sa.Text, primary_key=True),
    sa.Column("plans", sa.Integer, nullable=False),
)

#: Who did what; rows are only added, and deleted by retention.
audit = sa.Table(
    "audit",
    metadata,
    # SQLite numbers rows by itself only where the key is called INTEGER.
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("at", UtcMicros, nullable=False, index=True),
    _text("identity", index=True),
    _text("name"),
    _text("via"),
    _text("action"),
    _text("subject"),
    _text("outcome"),
    _text("request_id"),
    _text("address"),
)

#: What was asked in Slack, kept until the answer is told and then for `last`; `request` and `message` are JSON.
slack_answers = sa.Table(
    "slack_answers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("team_id"),
    _text("user_id"),
    _text("channel_id"),
    _text("kind"),
    _text("request"),
    _text("response_url"),
    sa.Column("created_at", UtcMicros, nullable=False, index=True),
    sa.Column("held_until", UtcMicros, nullable=False),
    sa.Column("message", sa.Text),
    _text("plan_id", index=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("delivered_at", UtcMicros, index=True),
    sa.Column("given_up_at", UtcMicros),
    _text("last_error"),
)

#: What may happen once: requests from Slack that were seen, and installations that were begun; `mark` is whose it is.
slack_once = sa.Table(
    "slack_once",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    _text("mark"),
    sa.Column("until", UtcMicros, nullable=False, index=True),
)

#: Slack workspaces, and whole enterprises, that may ask.
slack_workspaces = sa.Table(
    "slack_workspaces",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("identity"),
    _text("scope"),
    sa.Column("created_at", UtcMicros, nullable=False),
)

#: What installing the Slack app left, its token among it, as JSON.
slack_installations = sa.Table(
    "slack_installations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("installation"),
    sa.Column("installed_at", UtcMicros, nullable=False),
)
