"""A database that was opened: how its transactions begin and end, and whether it is still there."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ENOENT
from os import strerror

import sqlalchemy as sa

from catalog.database import database_url, named_failures, shown, sqlite_file, writer, writing
from catalog.errors import StoreFailure
from catalog.migrate import HEAD, revision_of, suits


class OpenDatabase:
    """One database, for any number of threads. Every method raises `StoreFailure` if it cannot be used."""

    def __init__(self, engine: sa.Engine, url: sa.URL) -> None:
        """On this engine, whose tables are there."""
        self.engine = engine
        self.url = url
        self._writer = writer(engine)
        path = sqlite_file(url)
        self._file = None if path is None else str(path)

    @staticmethod
    def is_there(url: str | None = None) -> bool:
        """Whether there may be anything to read at `url`: False only for a SQLite file that nobody has made yet.

        Raises `UnusableInput` at GPUPLAN_DATABASE_URL for an unusable URL.
        """
        path = sqlite_file(database_url(url))
        return path is None or path.exists()

    @property
    def name(self) -> str:
        """The database as people may see it, without password."""
        return shown(self.url)

    def close(self) -> None:
        """Gives back every connection; the store may be used again and then opens new ones."""
        self.engine.dispose()

    def ping(self) -> None:
        """Raises `StoreFailure` unless the database is there and has this release's tables."""
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
        """What `look` finds, in one transaction that reads."""
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
        """An open connection would go on reading and writing a removed file that nobody else can see."""
        if self._file is not None and not os.path.exists(self._file):  # noqa: PTH110 - a tenth of what `Path` takes
            raise FileNotFoundError(ENOENT, strerror(ENOENT))
