"""An open database: transactions and availability checks."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ENOENT
from os import strerror

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.database import database_url, named_failures, shown, sqlite_file, writer, writing
from gpuplan.catalog.store.schema_upgrade import HEAD, revision_of, suits


class OpenDatabase:
    """One database, for any number of threads. Every method raises `StoreFailure` if it cannot be used."""

    def __init__(self, engine: sa.Engine, url: sa.URL) -> None:
        """On an engine whose tables exist."""
        self.engine = engine
        self.url = url
        self._writer = writer(engine)
        path = sqlite_file(url)
        self._file = None if path is None else str(path)

    @staticmethod
    def is_there(url: str | None = None) -> bool:
        """Whether there may be data at `url`: False only for a missing SQLite file.

        Raises `UnusableInput` at GPUPLAN_DATABASE_URL for an unusable URL.
        """
        path = sqlite_file(database_url(url))
        return path is None or path.exists()

    @property
    def name(self) -> str:
        """The database for display, without password."""
        return shown(self.url)

    def close(self) -> None:
        """Close every connection; a later use opens new ones."""
        self.engine.dispose()

    def ping(self) -> None:
        """Raises `StoreFailure` unless the database is reachable and has this release's tables."""
        with self._reading() as connection:
            revision = revision_of(connection)
            usable = revision == HEAD or suits(connection, revision)
        if not usable:
            older = revision is None or revision < HEAD
            what = (
                "bring them there with gpuplan db upgrade, or start again"
                if older
                else "start again with the gpuplan that wrote them"
            )
            raise StoreFailure(
                f"database {self.name}: its tables are not those of this gpuplan (revision {revision}, not {HEAD}); {what}"
            )

    def read[Found](self, look: Callable[[sa.Connection], Found]) -> Found:
        """The result of `look` in one read transaction."""
        with self._reading() as connection:
            return look(connection)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with named_failures(self.url):
            self._refuse_removed_file()
            with self.engine.connect() as connection:
                yield connection

    @contextmanager
    def _writing(self, *, alone: bool = False) -> Iterator[sa.Connection]:
        with named_failures(self.url):
            self._refuse_removed_file()
            with writing(self._writer, alone=alone) as connection:
                yield connection

    def _refuse_removed_file(self) -> None:
        """Reject a removed file: an open connection would keep reading and writing it unseen by others."""
        if self._file is not None and not os.path.exists(self._file):  # noqa: PTH110 - ten times faster than `Path`
            raise FileNotFoundError(ENOENT, strerror(ENOENT))
