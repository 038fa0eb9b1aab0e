"""The database: exists, matches this release, is writable, its size, and the age of its prices."""

from datetime import UTC, datetime

import sqlalchemy as sa

from gpuplan.api.observability.doctor.finding import Finding, broken, ok, warning
from gpuplan.catalog.model.provider_names import provider_names
from gpuplan.catalog.store.access_store import has_valid_key
from gpuplan.catalog.store.database import connect, database_url, named_failures, shown
from gpuplan.catalog.store.schema_upgrade import HEAD, revision_of, suits
from gpuplan.catalog.store.snapshot_list import current_snapshot
from gpuplan.catalog.store.store import Store
from gpuplan.catalog.store.store_counts import activity, database_bytes, provider_prices

_NOT_YET = "no database yet: the first command creates it with the prices included in gpuplan"


def database(url: str | None, *, stale_after_hours: float) -> list[Finding]:
    """Open the database as it is, without creating, upgrading or writing anything. Raises `UnusableInput` or
    `StoreFailure`.
    """
    parsed = database_url(url)
    if not Store.is_there(url):
        return [ok("database", f"{shown(parsed)}: {_NOT_YET}")]
    with named_failures(parsed):
        engine = connect(parsed)
        try:
            with engine.connect() as connection:
                revision = revision_of(connection)
                size = database_bytes(connection, parsed)
                fits = revision == HEAD or suits(connection, revision)
            summary = f"{shown(parsed)}, {size / 1e6:.1f} MB"
            if revision is None:
                return [ok("database", f"{summary}: {_NOT_YET}")]
            if not fits:
                return [_other_release(summary, revision)]
            _try_to_write(engine)
            with engine.connect() as connection:
                return [
                    ok("database", f"{summary}, writable, revision {revision}"),
                    *_prices(connection, stale_after_hours),
                ]
        finally:
            engine.dispose()


def any_key(url: str | None) -> bool:
    """Whether the store, opened as it is, has a valid key; False without a database that this release can use. Raises
    `UnusableInput` or `StoreFailure`.
    """
    parsed = database_url(url)
    if not Store.is_there(url):
        return False
    with named_failures(parsed):
        engine = connect(parsed)
        try:
            with engine.connect() as connection:
                revision = revision_of(connection)
                fits = revision is not None and (revision == HEAD or suits(connection, revision))
                return fits and has_valid_key(connection, datetime.now(UTC))
        finally:
            engine.dispose()


def _other_release(summary: str, revision: str) -> Finding:
    if revision == "base" or revision < HEAD:
        summary = f"{summary}: at revision {revision}, this release needs {HEAD}"
        return warning("database", summary, "gpuplan db upgrade; otherwise the next command upgrades it")
    summary = f"{summary}: at revision {revision}, written by a newer gpuplan (this one knows {HEAD})"
    return broken("database", summary, "upgrade gpuplan, or point GPUPLAN_DATABASE_URL elsewhere")


def _try_to_write(engine: sa.Engine) -> None:
    """Create a table and roll back: reading alone does not reveal a full disk or a read-only server.

    Inserts a row, which needs a page of its own: the table's name alone may still fit on a full disk.
    """
    with engine.connect().execution_options(writes=True) as connection:
        transaction = connection.begin()
        try:
            connection.exec_driver_sql("CREATE TABLE gpuplan_doctor_tries_to_write (tried INTEGER)")
            connection.exec_driver_sql("INSERT INTO gpuplan_doctor_tries_to_write VALUES (1)")
        finally:
            transaction.rollback()


def _prices(connection: sa.Connection, stale_after_hours: float) -> list[Finding]:
    current = current_snapshot(connection)
    if current is None:
        return [warning("prices", "no snapshot yet", "any command stores the one included in gpuplan")]
    now = datetime.now(UTC)
    findings = []
    for provider_price in provider_prices(connection, current):
        hours = (now - provider_price.newest_at).total_seconds() / 3600
        summary = f"{provider_price.offers} prices, the newest {_age(hours)} old, {provider_price.stale} not confirmed by the last refresh"
        name = f"prices of {provider_price.provider}"
        known = provider_names().get(provider_price.provider)
        if known is not None and not known.is_refreshed:
            findings.append(
                ok(name, f"{provider_price.offers} prices, the newest {_age(hours)} old; they come with a release")
            )
        elif hours > stale_after_hours:
            findings.append(warning(name, summary, f"gpuplan refresh --provider {provider_price.provider}"))
        else:
            findings.append(ok(name, summary))
    return [*findings, _refreshes(connection)]


def _refreshes(connection: sa.Connection) -> Finding:
    done = activity(connection)
    if not done.refreshes:
        return warning("refreshes", "none yet", "run gpuplan refresh every night (docs/nightly.md)")
    last = done.refreshes[0]
    summary = f"the last one ended {last.finished_at:%Y-%m-%d %H:%M} UTC as {last.outcome}"
    if done.refreshes_not_whole > 1:
        summary += f", {done.refreshes_not_whole} in a row were not whole"
        return warning("refreshes", summary, "read the last report: gpuplan refresh prints it")
    return ok("refreshes", summary)


def _age(hours: float) -> str:
    return f"{hours:.0f} hours" if hours < 72 else f"{hours / 24:.0f} days"
