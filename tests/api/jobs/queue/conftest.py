"""A gpuplan on PostgreSQL with small clouds, and a worker of this process that does what waits."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuplan.api.jobs.queue.queue_schema import upgrade_queue
from gpuplan.api.jobs.queue.queue_worker import work
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.snapshots.snapshot import Snapshot
from gpuplan.catalog.store.schema import metadata
from gpuplan.catalog.store.store import Store
from tests.api.clouds_for_tests import NOWHERE, making
from tests.providers.fake_clouds import SHIPPED_AT, FakeCloud, price, snapshot

REPOSITORY = Path(__file__).resolve().parents[4]
Opens = Callable[..., Services]
#: The tables that a test may have filled.
EMPTIED = (
    *(table.name for table in metadata.sorted_tables if table.name != "compatible_since"),
    "gpuplan_queue.procrastinate_workers",
    "gpuplan_queue.procrastinate_jobs",
)


@pytest.fixture(scope="module")
def database(postgresql_database: str) -> str:
    """The URL of an empty database with all tables and the queue's, for the tests of a module."""
    engine = sa.create_engine(postgresql_database.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA IF EXISTS gpuplan_queue CASCADE")
        connection.exec_driver_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    engine.dispose()
    store = Store.open(postgresql_database)
    upgrade_queue(store)
    store.close()
    return postgresql_database


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """The prices that come with the release, of a release that brings few."""
    shipped = snapshot(
        *(
            price(region, observed_at=SHIPPED_AT, source="shipped")
            for region in ("us-east-1", "us-west-2", "eu-west-1")
        ),
        price("us-central1", "a3-highgpu-8g", 88_000_000, provider="gcp", observed_at=SHIPPED_AT, source="shipped"),
    )
    monkeypatch.setattr("gpuplan.catalog.store.store.embedded_snapshot_id", lambda: shipped.id)
    monkeypatch.setattr("gpuplan.catalog.snapshots.embedded_snapshot.embedded_snapshot", lambda: shipped)
    return shipped


@pytest.fixture
def open_gpuplan(database: str, small: Snapshot) -> Iterator[Opens]:
    """Makes a gpuplan with these clouds on a database in which nothing waits, and a worker is said to live."""
    made: list[Services] = []

    def make(*clouds: FakeCloud) -> Services:
        known = {cloud.name: making(cloud) for cloud in clouds}
        made.append(open_services(Environment(database_url=database, **NOWHERE), clouds=known))  # type: ignore[arg-type]
        return made[-1]

    with make().store.engine.begin() as connection:
        connection.execute(sa.text(f"TRUNCATE {', '.join(EMPTIED)} CASCADE"))
        connection.execute(sa.text("INSERT INTO gpuplan_queue.procrastinate_workers DEFAULT VALUES"))
    yield make
    for gpuplan in made:
        gpuplan.store.close()


@pytest.fixture
def gpuplan(open_gpuplan: Opens) -> Services:
    """One without any cloud."""
    return open_gpuplan()


def work_off(gpuplan: Services, *, concurrency: int = 1) -> None:
    """Does everything that waits, and what comes of it."""
    asyncio.run(work(gpuplan, concurrency=concurrency, wait=False))


def tasks(gpuplan: Services, status: str = "todo") -> list[str]:
    """The names of tasks of this status, without those that keep the queue in order."""
    asked = sa.text(
        "SELECT task_name FROM gpuplan_queue.procrastinate_jobs"
        " WHERE status::text = :status AND queue_name <> 'keeping' ORDER BY id"
    )
    with gpuplan.store.engine.connect() as connection:
        return list(connection.execute(asked, {"status": status}).scalars())
