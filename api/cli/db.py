"""`gpuplan db`: the database's tables, backups of it, and whether it can be used."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.standard_output import answers

if TYPE_CHECKING:
    from catalog.store import Store

#: Earlier releases know of no queue.
_FIRST_WITH_QUEUE = "0007"
BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup, one file.")]


def db_commands() -> typer.Typer:
    """The commands as a group."""
    group = typer.Typer(help="Upgrade, check, back up and restore the database.", no_args_is_help=True)
    for command in (upgrade, downgrade, current, check, backup, restore):
        group.command()(command)
    return group


def upgrade() -> None:
    """Bring the tables to this release; others may go on using them. Any number of processes may do so at once."""
    with closing(_store()) as store:
        said = [f"tables at revision {_revision(store)}"]
        if _has_queue(store):
            from api.tasks.queue_schema import upgrade_queue

            applied = upgrade_queue(store)
            said.append("queue made up to date" if applied else "queue up to date")
        _say(f"{store.name}: {', '.join(said)}")


def downgrade(
    revision: Annotated[str, typer.Argument(help="The revision of the earlier release, such as 0004.")],
) -> None:
    """Take the tables back to those of an earlier release, dropping what only later ones know. Back up first."""
    from catalog.database import connect, database_url, named_failures
    from catalog.migrate import downgrade as go_back
    from catalog.store import Store

    url = database_url(_url())
    with named_failures(url), closing(Store(connect(url), url)) as store:
        go_back(store.engine, url, revision)
        if _has_queue(store) and revision < _FIRST_WITH_QUEUE:
            from api.tasks.queue_schema import drop_queue

            drop_queue(store)
    _say(f"tables at revision {revision}; start the earlier release now, since this one would upgrade them again")


def current() -> None:
    """The revision of the tables, and that of this release."""
    from catalog.database import connect, database_url, named_failures, shown
    from catalog.migrate import HEAD, revision_of

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
    """Whether the tables and the queue are those of this release, and every row and index is sound. Changes nothing."""
    from catalog.database import connect, database_url, named_failures, sqlite_file
    from catalog.errors import StoreFailure
    from catalog.integrity import damage
    from catalog.store import Store
    from catalog.table_rows import sums, tables_there

    url = database_url(_url())
    with named_failures(url), closing(Store(connect(url), url)) as store:
        store.ping()
        file = sqlite_file(url)
        if file is not None and (said := damage(file)) is not None:
            advice = "restore a backup, or `sqlite3 FILE REINDEX` where an index alone is spoilt"
            raise StoreFailure(f"database {store.name}: it is damaged: {said}; {advice}")
        with store.engine.connect() as connection:
            found = sums(connection, tables_there(connection))
        if _has_queue(store):
            from api.tasks.queue_schema import require_queue

            require_queue(store)
    for name, each in sorted(found.items()):
        _say(f"{name:20} {each.rows:>10,} rows  {each.sha256_sum[:16]}")
    _say(f"{store.name}: usable")


def backup(file: BackupFile) -> None:
    """Write everything that the database holds at this moment into one file, while it is in use."""
    from catalog.backup import back_up

    with closing(_store()) as store:
        manifest = back_up(store, file)
    rows = sum(each.rows for each in manifest.tables.values())
    _say(f"{file}: {rows:,} rows of {len(manifest.tables)} tables at revision {manifest.revision}")


def restore(file: BackupFile) -> None:
    """Restore a backup into an empty database of either kind, verify it, and bring its tables to this release."""
    from catalog.restore import restore as bring_back

    manifest = bring_back(file, _url())
    rows = sum(each.rows for each in manifest.tables.values())
    with closing(_store()) as store:
        if _has_queue(store):
            from api.tasks.queue_schema import upgrade_queue

            upgrade_queue(store)  # no part of a backup, but of what this release needs
        _say(f"{store.name}: {rows:,} rows of {len(manifest.tables)} tables as of {manifest.taken_at}, verified")


def _store() -> "Store":
    from catalog.store import Store

    return Store.open(_url())


def _has_queue(store: "Store") -> bool:
    return store.url.get_backend_name() == "postgresql"


def _revision(store: "Store") -> str | None:
    from catalog.migrate import revision_of

    with store.engine.connect() as connection:
        return revision_of(connection)


def _say(line: str) -> None:
    answers().write(f"{line}\n")


def _url() -> str | None:
    from api.settings import Environment

    return Environment().database_url
