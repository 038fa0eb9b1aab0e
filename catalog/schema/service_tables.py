"""What a service must remember besides prices: plans, runs, watches, who may ask, what Slack was told."""

import sqlalchemy as sa

from catalog.schema.columns import Texts, UtcMicros, metadata, text

#: No foreign key to `snapshots`: a plan may rest on a snapshot joined with the user's own machines.
plans = sa.Table(
    "plans",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("snapshot_id"),
    text("job"),
    text("outcome"),
    sa.Column("created_at", UtcMicros, nullable=False),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    text("request_hash"),
    text("response"),
    sa.Column("created_at", UtcMicros, nullable=False, index=True),
)

#: What runs of plans measured; `expected` is what the plan had said, so that old reports stay what they were.
actuals = sa.Table(
    "actuals",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("plan_id", index=True),
    text("task"),
    text("accelerator"),
    sa.Column("reported_at", UtcMicros, nullable=False),
    text("reported_by"),
    sa.Column("running", sa.Boolean, nullable=False),
    sa.Column("share_done", sa.Double, nullable=False),
    sa.Column("hours", sa.Double),
    sa.Column("throughput", sa.Double),
    sa.Column("peak_memory_gib", sa.Double),
    sa.Column("preemptions", sa.Integer),
    text("expected"),
    sa.ForeignKeyConstraint(["plan_id"], ["plans.id"]),
)

#: One row per refresh that was run, also of one that wrote no snapshot; `report` is what it printed, as JSON.
refreshes = sa.Table(
    "refreshes",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("started_at", UtcMicros, nullable=False, index=True),
    sa.Column("finished_at", UtcMicros, nullable=False),
    text("outcome"),
    sa.Column("snapshot_id", sa.Text),
    text("report"),
    sa.CheckConstraint("outcome IN ('whole', 'partial', 'refused', 'failed')", name="outcome"),
)

#: Saved jobs that are planned again after each refresh; `last_told` is what changes are told against, as JSON.
watches = sa.Table(
    "watches",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("name"),
    text("job"),
    sa.Column("channels", Texts, nullable=False),
    sa.Column("threshold_percent", sa.Double, nullable=False),
    sa.Column("created_at", UtcMicros, nullable=False),
    text("last_told"),
    sa.Column("tellings", sa.Integer, nullable=False),
    sa.Column("checked_at", UtcMicros),
    text("problem"),
    sa.Column("ended_at", UtcMicros),
)

#: What watches have to say, written with the change it tells of and sent after; one per telling and channel.
notifications = sa.Table(
    "notifications",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("watch_id", index=True),
    sa.Column("telling", sa.Integer, nullable=False),
    text("snapshot_id"),
    text("channel"),
    text("event"),
    text("payload"),
    sa.Column("created_at", UtcMicros, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("held_until", UtcMicros),
    sa.Column("delivered_at", UtcMicros, index=True),
    sa.Column("given_up_at", UtcMicros),
    text("last_error"),
    sa.UniqueConstraint("watch_id", "telling", "channel"),
)

#: Work that outlives its request: what was asked, how far it is, and what came of it, all as JSON. Whoever is at it
#: moves `beat_at`; a run that is queued or running and silent for too long has lost its process. One that a queue hands
#: out counts in `attempt` how often it was begun; the queue itself takes care of those whose process was lost.
runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("kind"),
    text("status"),
    text("request"),
    sa.Column("created_at", UtcMicros, nullable=False, index=True),
    sa.Column("started_at", UtcMicros),
    sa.Column("finished_at", UtcMicros),
    sa.Column("beat_at", UtcMicros, nullable=False),
    sa.Column("cancel_asked", sa.Boolean, nullable=False),
    text("progress"),
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
    text("failure"),
)

#: One row: the oldest revision whose release works on these tables, so that it goes on while a newer one is rolled out.
compatible_since = sa.Table("compatible_since", metadata, sa.Column("revision", sa.Text, primary_key=True))

#: Keys without their secrets, of which only the SHA-256 is here.
api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("name"),
    text("secret_hash"),
    sa.Column("scopes", Texts, nullable=False),
    sa.Column("created_at", UtcMicros, nullable=False),
    text("created_by"),
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
    text("secret_hash"),
    text("key_id"),
    text("key_hash"),
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
    text("identity", index=True),
    text("name"),
    text("via"),
    text("action"),
    text("subject"),
    text("outcome"),
    text("request_id"),
    text("address"),
)

#: What was asked in Slack, kept until the answer is told and then for `last`; `request` and `message` are JSON.
slack_answers = sa.Table(
    "slack_answers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("team_id"),
    text("user_id"),
    text("channel_id"),
    text("kind"),
    text("request"),
    text("response_url"),
    sa.Column("created_at", UtcMicros, nullable=False, index=True),
    sa.Column("held_until", UtcMicros, nullable=False),
    sa.Column("message", sa.Text),
    text("plan_id", index=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("delivered_at", UtcMicros, index=True),
    sa.Column("given_up_at", UtcMicros),
    text("last_error"),
)

#: What may happen once: requests from Slack that were seen, and installations that were begun; `mark` is whose it is.
slack_once = sa.Table(
    "slack_once",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    text("mark"),
    sa.Column("until", UtcMicros, nullable=False, index=True),
)

#: Slack workspaces, and whole enterprises, that may ask.
slack_workspaces = sa.Table(
    "slack_workspaces",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("identity"),
    text("scope"),
    sa.Column("created_at", UtcMicros, nullable=False),
)

#: What installing the Slack app left, its token among it, as JSON.
slack_installations = sa.Table(
    "slack_installations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("installation"),
    sa.Column("installed_at", UtcMicros, nullable=False),
)

#: Whose a plan, run or watch is; the identity is empty where it is everybody's. One without a row was made before there
#: were owners, or where no keys were in force, and is everybody's too. Ids of plans and decisions follow from their
#: content, so that one may have several owners.
object_owners = sa.Table(
    "object_owners",
    metadata,
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("object_id", sa.Text, primary_key=True),
    sa.Column("identity", sa.Text, primary_key=True),
)

#: Links by which others may read a plan, run or watch; of the secret in the link only the SHA-256 is here.
shares = sa.Table(
    "shares",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("secret_hash"),
    text("kind"),
    text("object_id", index=True),
    text("created_by"),
    sa.Column("created_at", UtcMicros, nullable=False),
    sa.Column("revoked_at", UtcMicros),
)

#: Who has opened a link, and so may read what it leads to until it is revoked.
share_readers = sa.Table(
    "share_readers",
    metadata,
    sa.Column("share_id", sa.Text, primary_key=True),
    sa.Column("identity", sa.Text, primary_key=True),
)
