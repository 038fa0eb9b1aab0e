"""The database and what is in it: there, this release's, writable, how large; how old its prices are."""

from datetime import UTC, datetime

import sqlalchemy as sa

from api.doctor.finding import Finding, broken, ok, warning
from catalog.database import connect, database_url, named_failures, shown
from catalog.figures import activity, database_bytes, provider_prices
from catalog.keys import any_key_holds
from catalog.migrate import HEAD, revision_of, suits
from catalog.snapshot_list import current_snapshot
from catalog.store import Store

_NOT_YET = "no database yet: the first command makes it, with the prices that came with gpuplan"


def database(url: str | None, *, stale_after_hours: float) -> list[Finding]:
    """Opened as it is: nothing is made, upgraded or written. Raises `UnusableInput` or `StoreFailure`."""
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
            found = f"{shown(parsed)}, {size / 1e6:.1f} MB"
            if revision is None:
                return [ok("database", f"{found}: {_NOT_YET}")]
            if not fits:
                return [_other_release(found, revision)]
            _try_to_write(engine)
            with engine.connect() as connection:
                return [
                    ok("database", f"{found}, writable, revision {revision}"),
                    *_prices(connection, stale_after_hours),
                ]
        finally:
            engine.dispose()


def any_key(url: str | None) -> bool:
    """Whether somebody could get in by a key of the store, which is opened as it is; False where there is none that this
    release can use. Raises `UnusableInput` or `StoreFailure`.
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
                return fits and any_key_holds(connection, datetime.now(UTC))
        finally:
            engine.dispose()


def _other_release(found: str, revision: str) -> Finding:
    if revision == "base" or revision < HEAD:
        found = f"{found}: at revision {revision}, this release needs {HEAD}"
        return warning("database", found, "gpuplan db upgrade; otherwise the next command upgrades it")
    found = f"{found}: at revision {revision}, written by a newer gpuplan (this one knows {HEAD})"
    return broken("database", found, "upgrade gpuplan, or point GPUPLAN_DATABASE_URL elsewhere")


def _try_to_write(engine: sa.Engine) -> None:
    """A table made and rolled back: reading alone does not show a disk or a server that takes nothing.

    With a row, which needs a page of its own: names of tables may find room on a full disk.
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
        return [warning("prices", "no snapshot yet", "any command stores the one that came with gpuplan")]
    now = datetime.now(UTC)
    findings = []
    for each in provider_prices(connection, current):
        hours = (now - each.newest_at).total_seconds() / 3600
        found = f"{each.offers} prices, the newest {_age(hours)} old, {each.stale} not confirmed by the last refresh"
        name = f"prices of {each.provider}"
        if hours > stale_after_hours:
            findings.append(warning(name, found, f"gpuplan refresh --provider {each.provider}"))
        else:
            findings.append(ok(name, found))
    return [*findings, _refreshes(connection)]


def _refreshes(connection: sa.Connection) -> Finding:
    done = activity(connection)
    if not done.refreshes:
        return warning("refreshes", "none yet", "run gpuplan refresh every night (docs/nightly.md)")
    last = done.refreshes[0]
    found = f"the last one ended {last.finished_at:%Y-%m-%d %H:%M} UTC as {last.outcome}"
    if done.refreshes_not_whole > 1:
        found += f", {done.refreshes_not_whole} in a row were not whole"
        return warning("refreshes", found, "read what the last report says: gpuplan refresh prints it")
    return ok("refreshes", found)


def _age(hours: float) -> str:
    return f"{hours:.0f} hours" if hours < 72 else f"{hours / 24:.0f} days"
