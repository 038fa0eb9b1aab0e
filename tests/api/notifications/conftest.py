"""A store of a test's own with prices that change by night, and a receiver on a real socket that hears of it."""

import base64
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from gpuplan.api.notifications.watch_check import check_watches
from gpuplan.api.notifications.webhook_sending import Patience
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.catalog.store.store import Store
from gpuplan.planner.model.wire import wire
from tests.catalog.snapshots_for_tests import TYPES, offer
from tests.clouds.server import CloudServer, Fault, Reply, Request

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
START = datetime(2026, 12, 1, 4, tzinfo=UTC)
JOB = {
    "name": "llama-3-8b-lora",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "deadline": "36h",
    "constraints": {"max_nodes": 1},
}
QUICK = Patience(attempts=3, attempt_seconds=60.0, first_wait_seconds=0.01, longest_wait_seconds=0.3)

Change = Callable[[Reply], Reply]


def json_of(answer: object) -> dict[str, Any]:
    """The answer as the service writes it."""
    document: dict[str, Any] = wire(answer)
    return document


@dataclass(slots=True)
class Inbox:
    """What a receiver took, each checked against its signature as the library of the scheme does."""

    server: CloudServer = field(init=False)
    taken: list[dict[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.server = CloudServer(self.take)

    def break_with(
        self, change: Change, *, times: int | None = None, when: Callable[[Request], bool] = lambda _: True
    ) -> None:
        """From now on the first `times` messages that `when` picks are not taken, but answered with `change`."""
        self.faults.append(Fault(matches=when, change=change, times=times))

    def take(self, request: Request) -> Reply:
        for fault in self.faults:
            if fault.times != 0 and fault.matches(request):
                fault.times = None if fault.times is None else fault.times - 1
                return fault.change(Reply(body=b"not yet"))
        payload = json.loads(request.body)
        if request.path == "/hook":
            payload = Webhook(SECRET).verify(request.body, request.headers)
        with self._lock:
            self.taken.append(payload)
            self.ids.append(request.headers.get("webhook-id", ""))
        return Reply(body=b"ok", content_type="text/plain")

    @property
    def events(self) -> list[str]:
        return [message["data"]["event"] for message in self.taken if "data" in message]


@dataclass(slots=True)
class Nights:
    """gpuplan with one or two channels, and one snapshot after the other."""

    gpuplan: Services
    inbox: Inbox
    url: str
    settings: Path
    night: int = 0

    @property
    def now(self) -> datetime:
        return START + timedelta(days=self.night)

    def prices(self, *offers: Offer) -> str:
        """The prices of the next night, as the current snapshot."""
        self.night += 1
        return self.gpuplan.store.put_snapshot(snapshot_of(TYPES[:1], offers), source="refresh")

    def watch(self, **changes: Any) -> dict[str, Any]:
        return json_of(self.gpuplan.watches.add({"job": JOB, "channels": ["ops"]} | changes, now=self.now))

    def one(self, watch_id: str) -> dict[str, Any]:
        """One watch with its notifications."""
        return json_of(self.gpuplan.watches.one(watch_id))

    @property
    def watches(self) -> list[dict[str, Any]]:
        """Every watch, the oldest first."""
        return list(json_of(self.gpuplan.watches.listed())["watches"])

    def check(self, *, now: datetime | None = None, patience: Patience = QUICK) -> dict[str, Any]:
        current = self.gpuplan.store.current_snapshot_id()
        services = self.gpuplan
        return json_of(
            check_watches(
                services.context, services.plans, services.live_queries, current, now or self.now, patience=patience
            )
        )


def at(usd: float, **changes: Any) -> Offer:
    """An H100 machine at this price, seen in this test's month."""
    return offer(round(usd * 1e6), **{"observed_at": START} | changes)


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    with inbox.server.running():
        yield inbox


@pytest.fixture(scope="session")
def first_night(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store in which one machine's price of the first night has come after those of gpuplan."""
    path = Path(shutil.copy(embedded_store, tmp_path_factory.mktemp("nights")))
    store = Store.open(f"sqlite:///{path}")
    store.put_snapshot(snapshot_of(TYPES[:1], [at(98.32)]), source="refresh")
    store.close()
    return path


@pytest.fixture
def nights(inbox: Inbox, first_night: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nights]:
    monkeypatch.setenv("OPS_SECRET", SECRET)
    monkeypatch.setenv("TEAM_SLACK", f"{inbox.server.url}/slack")
    settings = tmp_path / "settings.yaml"
    ops = {"name": "ops", "kind": "webhook", "url": f"{inbox.server.url}/hook", "secret_from": "OPS_SECRET"}
    channels = [ops | {"private": True}, {"name": "team", "kind": "slack", "url_from": "TEAM_SLACK", "private": True}]
    settings.write_text(json.dumps({"channels": channels}))
    url = f"sqlite:///{shutil.copy(first_night, tmp_path)}"
    gpuplan = open_services(Environment(database_url=url, settings=settings))
    nights = Nights(gpuplan, inbox, url, settings, night=1)
    yield nights
    gpuplan.store.close()
