"""`gpuplan db`: upgrade, check, back up and restore the database."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuplan.api.cli.standard_output import answers

if TYPE_CHECKING:
    from gpuplan.catalog.store.store import Store

#: Releases before this revision have no task queue.
_FIRST_WITH_QUEUE = "0007"
BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup file.")]


def db_commands() -> typer.Typer:
    """The commands under `gpuplan db`."""
    group = typer.Typer(help="Upgrade, check, back up and restore the database.", no_args_is_help=True)
    for command in (upgrade, downgrade, current, check, backup, restore):
        group.command()(command)
    return group


def upgrade() -> None:
    """Upgrade the tables to this release. Safe while the database is in use, and from several processes at once."""
    with closing(_store()) as store:
        results = [f"tables at revision {_revision(store)}"]
        if _has_queue(store):
            from gpuplan.api.jobs.queue.queue_schema import upgrade_queue

            applied = upgrade_queue(store)
            results.append("queue made up to date" if applied else "queue up to date")
        _say(f"{store.name}: {', '.join(results)}")


def downgrade(
    revision: Annotated[str, typer.Argument(help="The revision of the earlier release, such as 0004.")],
) -> None:
    """Downgrade the tables to an earlier release. Drops data that only later releases store. Back up first."""
    from gpuplan.catalog.store.database import connect, database_url, named_failures
    from gpuplan.catalog.store.schema_upgrade import downgrade as go_back
    from gpuplan.catalog.store.store import Store

    url = database_url(_url())
    with named_failures(url), closing(Store(connect(url), url)) as store:
        go_back(store.engine, url, revision)
        if _has_queue(store) and revision < _FIRST_WITH_QUEUE:
            from gpuplan.api.jobs.queue.queue_schema import drop_queue

            drop_queue(store)
    _say(f"tables at revision {revision}; start the earlier release now, since this one would upgrade them again")


def current() -> None:
    """Show the revision of the tables and that of this release."""
    from gpuplan.catalog.store.database import connect, database_url, named_failures, shown
    from gpuplan.catalog.store.schema_upgrade import HEAD, revision_of

    url = database_url(_url())
    with named_failures(url):
        engine = connect(url)
        try:
            with engine.connect() as connection:
                revision = revision_of(connection)
        finally:
            engine.dispose()
    _say(f"{shown(url)}: {'no tables yet' if revision is None else f'revision {revision}'}; this release has {HEAD}")


def check() -> None:
    """Check that tables and queue match this release and that rows and indexes are intact. Changes nothing."""
    from gpuplan.catalog.runtime.errors import StoreFailure
    from gpuplan.catalog.store.backup import damage
    from gpuplan.catalog.store.backup_file import existing_tables, sums
    from gpuplan.catalog.store.database import connect, database_url, named_failures, sqlite_file
    from gpuplan.catalog.store.store import Store

    url = database_url(_url())
    with named_failures(url), closing(Store(connect(url), url)) as store:
        store.ping()
        file = sqlite_file(url)
        if file is not None and (problem := damage(file)) is not None:
            advice = "restore a backup, or run `sqlite3 FILE REINDEX` if only an index is damaged"
            raise StoreFailure(f"database {store.name}: it is damaged: {problem}; {advice}")
        with store.engine.connect() as connection:
            table_sums = sums(connection, existing_tables(connection))
        if _has_queue(store):
            from gpuplan.api.jobs.queue.queue_schema import require_queue

            require_queue(store)
    for name, table in sorted(table_sums.items()):
        _say(f"{name:20} {table.rows:>10,} rows  {table.sha256_sum[:16]}")
    _say(f"{store.name}: usable")


def backup(file: BackupFile) -> None:
    """Write a consistent backup of the database to one file, while it is in use."""
    from gpuplan.catalog.store.backup import back_up

    with closing(_store()) as store:
        manifest = back_up(store, file)
    rows = sum(table.rows for table in manifest.tables.values())
    _say(f"{file}: {rows:,} rows of {len(manifest.tables)} tables at revision {manifest.revision}")


def restore(file: BackupFile) -> None:
    """Restore a backup into an empty SQLite or PostgreSQL database, verify it and upgrade its tables."""
    from gpuplan.catalog.store.restore import restore as bring_back

    manifest = bring_back(file, _url())
    rows = sum(table.rows for table in manifest.tables.values())
    with closing(_store()) as store:
        if _has_queue(store):
            from gpuplan.api.jobs.queue.queue_schema import upgrade_queue

            upgrade_queue(store)  # backups do not contain the queue's tables
        _say(f"{store.name}: {rows:,} rows of {len(manifest.tables)} tables as of {manifest.taken_at}, verified")


def _store() -> "Store":
    from gpuplan.catalog.store.store import Store

    return Store.open(_url())


def _has_queue(store: "Store") -> bool:
    return store.url.get_backend_name() == "postgresql"


def _revision(store: "Store") -> str | None:
    from gpuplan.catalog.store.schema_upgrade import revision_of

    with store.engine.connect() as connection:
        return revision_of(connection)


def _say(line: str) -> None:
    answers().write(f"{line}\n")


def _url() -> str | None:
    from gpuplan.api.schemas.settings_file import Environment

    return Environment().database_url
