"""Service tables: plans, runs, watches, access control, Slack."""

import sqlalchemy as sa

from gpuplan.catalog.store.schema.column_types import Texts, UtcMicros, document, metadata, text

#: No foreign key to `snapshots`: a plan may use a snapshot merged with owned machines.
plans = sa.Table(
    "plans",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("snapshot_id"),
    document("job"),
    document("outcome"),
    sa.Column("created_at", UtcMicros, nullable=False),
)

#: Notes of identities on plans; without keys the identity is empty.
plan_notes = sa.Table(
    "plan_notes",
    metadata,
    sa.Column("plan_id", sa.Text, primary_key=True),
    sa.Column("identity", sa.Text, primary_key=True),
    text("note"),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("changed_at", UtcMicros, nullable=False),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    text("request_hash"),
    document("response"),
    sa.Column("created_at", UtcMicros, nullable=False, index=True),
)

#: Measured results of planned runs; `expected` is the plan's prediction, copied so that old reports stay stable.
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
    document("expected"),
    sa.ForeignKeyConstraint(["plan_id"], ["plans.id"]),
)

#: One row per refresh, including those that wrote no snapshot; `report` is its printed report, as JSON.
refreshes = sa.Table(
    "refreshes",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("started_at", UtcMicros, nullable=False, index=True),
    sa.Column("finished_at", UtcMicros, nullable=False),
    text("outcome"),
    sa.Column("snapshot_id", sa.Text),
    document("report"),
    sa.CheckConstraint("outcome IN ('whole', 'partial', 'refused', 'failed')", name="outcome"),
)

#: Saved jobs that are planned again after each refresh; `last_told` is the answer that was last notified, as JSON.
watches = sa.Table(
    "watches",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("name"),
    document("job"),
    sa.Column("channels", Texts, nullable=False),
    sa.Column("threshold_percent", sa.Double, nullable=False),
    sa.Column("created_at", UtcMicros, nullable=False),
    document("last_told"),
    sa.Column("tellings", sa.Integer, nullable=False),
    sa.Column("checked_at", UtcMicros),
    text("problem"),
    sa.Column("ended_at", UtcMicros),
)

#: Notifications of watches, written with the change they describe and sent afterwards; one per change and channel.
notifications = sa.Table(
    "notifications",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("watch_id", index=True),
    sa.Column("telling", sa.Integer, nullable=False),
    text("snapshot_id"),
    text("channel"),
    text("event"),
    document("payload"),
    sa.Column("created_at", UtcMicros, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("held_until", UtcMicros),
    sa.Column("delivered_at", UtcMicros, index=True),
    sa.Column("given_up_at", UtcMicros),
    text("last_error"),
    sa.UniqueConstraint("watch_id", "telling", "channel"),
)

#: Background runs: request, progress and result, all as JSON. The worker updates `beat_at`; a queued or running run that is
#: silent for too long has lost its process. For a run from a queue, `attempt` counts its starts, and the queue detects lost
#: processes.
runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("kind"),
    text("status"),
    document("request"),
    sa.Column("created_at", UtcMicros, nullable=False, index=True),
    sa.Column("started_at", UtcMicros),
    sa.Column("finished_at", UtcMicros),
    sa.Column("beat_at", UtcMicros, nullable=False),
    sa.Column("cancel_asked", sa.Boolean, nullable=False),
    document("progress"),
    document("answer", nullable=True),
    document("error", nullable=True),
    sa.Column("attempt", sa.Integer),
    sa.CheckConstraint("status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="status"),
)

#: Fetched parts of a shared refresh until it is written as a whole: per provider the list of its regions (under an empty
#: region) and the serialised rows of each, or the reason of a failure.
refresh_parts = sa.Table(
    "refresh_parts",
    metadata,
    sa.Column("refresh_id", sa.Text, primary_key=True),
    sa.Column("provider", sa.Text, primary_key=True),
    sa.Column("region", sa.Text, primary_key=True),
    sa.Column("content", sa.LargeBinary),
    text("failure"),
)

#: One row: the oldest revision whose release works on these tables, so that it can run while a newer one is rolled out.
compatible_since = sa.Table("compatible_since", metadata, sa.Column("revision", sa.Text, primary_key=True))

#: Keys without their secrets; only the SHA-256 of a secret is stored.
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

#: Browser sessions; the key may come from the environment and then has no row.
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

#: Plans per identity and day (UTC, as ISO text).
quota_use = sa.Table(
    "quota_use",
    metadata,
    sa.Column("identity", sa.Text, primary_key=True),
    sa.Column("day", sa.Text, primary_key=True),
    sa.Column("plans", sa.Integer, nullable=False),
)

#: The audit log; rows are only added, and deleted by retention.
audit = sa.Table(
    "audit",
    metadata,
    # SQLite assigns row numbers only to a key of type INTEGER.
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

#: Questions from Slack, stored until answered and afterwards for `last`; `request` and `message` are JSON.
slack_answers = sa.Table(
    "slack_answers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("team_id"),
    text("user_id"),
    text("channel_id"),
    text("kind"),
    document("request"),
    text("response_url"),
    sa.Column("created_at", UtcMicros, nullable=False, index=True),
    sa.Column("held_until", UtcMicros, nullable=False),
    document("message", nullable=True),
    text("plan_id", index=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("delivered_at", UtcMicros, index=True),
    sa.Column("given_up_at", UtcMicros),
    text("last_error"),
)

#: One-time marks: seen requests from Slack, and started installations; `mark` identifies the owner.
slack_once = sa.Table(
    "slack_once",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    text("mark"),
    sa.Column("until", UtcMicros, nullable=False, index=True),
)

#: The newest plan of a thread in Slack.
slack_threads = sa.Table(
    "slack_threads",
    metadata,
    sa.Column("team_id", sa.Text, primary_key=True),
    sa.Column("channel_id", sa.Text, primary_key=True),
    sa.Column("thread_ts", sa.Text, primary_key=True),
    text("plan_id"),
    sa.Column("answered_at", UtcMicros, nullable=False, index=True),
)

#: Slack workspaces and enterprises with access.
slack_workspaces = sa.Table(
    "slack_workspaces",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    text("identity"),
    text("scope"),
    sa.Column("created_at", UtcMicros, nullable=False),
)

#: Data of Slack app installations, including the token, as JSON.
slack_installations = sa.Table(
    "slack_installations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    document("installation"),
    sa.Column("installed_at", UtcMicros, nullable=False),
)

#: Owners of plans, runs and watches; an empty identity means everybody. An object without a row dates from before
#: ownership, or from a service without keys, and belongs to everybody too. Ids of plans and decisions derive from their
#: content, so an object may have several owners.
object_owners = sa.Table(
    "object_owners",
    metadata,
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("object_id", sa.Text, primary_key=True),
    sa.Column("identity", sa.Text, primary_key=True),
)

#: Links that let others read a plan, run or watch; only the SHA-256 of the link's secret is stored.
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

#: Identities that opened a link and may read its object until it is revoked.
share_readers = sa.Table(
    "share_readers",
    metadata,
    sa.Column("share_id", sa.Text, primary_key=True),
    sa.Column("identity", sa.Text, primary_key=True),
)
