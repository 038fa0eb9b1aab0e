"""A watch that was asked for in Slack is told there, by the service, once, and by nobody else."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.schemas.watch_answers import Deliveries
from gpuplan.api.services.composition import open_services
from gpuplan.api.slack.channel_watches import Place, place_of
from gpuplan.api.slack.workspaces import allow
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.catalog.store.watch_store import Notification
from gpuplan.providers.capacity import capacity_queries
from tests.api.slack.conftest import PAGE, Acme, Served
from tests.api.slack.test_slash_commands import links
from tests.catalog.snapshots_for_tests import TYPES, offer, t4_on_spot
from tests.clouds.azure import SUBSCRIPTION
from tests.clouds.azure_capacity import AzureCapacityCloud
from tests.clouds.server import answering
from tests.clouds.slack import CHANNEL, TEAM, USER
from tests.patience import until

START = datetime.now(UTC)
JOB = "plan llama-3-8b tokens=200M sequence=4096 method=lora precision=bf16 by=36h nodes=1 providers=aws name=nightly"


@dataclass(slots=True)
class Nights:
    """A store of its own, whose prices change."""

    acme: Acme

    def price(self, usd: float) -> None:
        made = offer(round(usd * 1e6), observed_at=START + timedelta(seconds=usd))
        self.acme.gpuplan.store.put_snapshot(snapshot_of(TYPES[:1], (made,)), source="refresh")

    def notification(self, watch_id: str) -> Notification:
        _, [notification] = self.acme.gpuplan.store.watching.one(watch_id)
        return notification


@pytest.fixture
def nights(acme: Acme, own_store: str, served: Served) -> Iterator[Nights]:
    gpuplan = open_services(Environment(database_url=own_store))
    allow(gpuplan, TEAM, scope="plan", name=None)
    with served(create_service(gpuplan, slack=acme.settings)) as service:
        nights = Nights(Acme(acme.slack, service, gpuplan, acme.settings))
        nights.price(98.32)
        yield nights
    gpuplan.store.close()


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureCapacityCloud]:
    cloud = AzureCapacityCloud(score="Low")
    monkeypatch.setattr(capacity_queries, "LIMIT_SECONDS", 60.0)
    with cloud.running() as server:
        monkeypatch.setenv("GPUPLAN_AZURE_ARM_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
        monkeypatch.setenv("GPUPLAN_ANONYMOUS", "1")
        yield cloud


def watch_id_in(text: str) -> str:
    return text.partition("(")[2].partition(")")[0]


def test_a_watch_tells_its_channel_when_a_plan_gets_cheaper(nights: Nights) -> None:
    acme = nights.acme
    acme.asks(JOB)
    watch_id = watch_id_in(acme.asks("watch last 5%").text)
    nights.price(49.0)
    checked = acme.gpuplan.watches.check()
    # The check sends what settings know; what is told in Slack is left to the service, and is no failure.
    assert [change.event for change in checked.told] == ["cheaper"]
    assert checked.deliveries == Deliveries(sent=0, held_elsewhere=0, failed=())
    message = acme.slack.wait_for(3)[2]
    assert (message.how, message.channel, message.only_for) == ("chat.postMessage", CHANNEL, None)
    assert "nightly is cheaper now" in message.text
    assert "/gpuplan unwatch ends it" in message.text
    assert links(message) == [f"{PAGE}/plans/{nights.notification(watch_id).payload['data']['plan_id']}"]
    _settled(nights, watch_id)
    time.sleep(0.3)
    assert len(acme.slack.seen) == 3


def test_a_watch_that_slack_does_not_take_waits_and_is_told_in_the_end(nights: Nights) -> None:
    acme = nights.acme
    acme.asks(JOB)
    watch_id = watch_id_in(acme.asks("watch last").text)
    acme.slack.members_of.clear()
    acme.slack.server.break_with(answering(503, b"down"))
    nights.price(40.0)
    acme.gpuplan.watches.check()
    notification = until(
        lambda: (
            notification
            if (notification := nights.notification(watch_id)).last_error and notification.held_until is not None
            else None
        )
    )
    assert notification.held_until is not None
    assert notification.held_until > datetime.now(UTC) + timedelta(seconds=5)
    acme.slack.server.faults.clear()
    acme.gpuplan.store.watching.settle(notification.id, attempts=0, error=notification.last_error)
    message = acme.slack.wait_for(3)[2]
    assert (message.how, message.channel) == ("chat.postMessage", USER)
    _settled(nights, watch_id)


def test_a_place_is_read_back_as_it_was_written() -> None:
    for enterprise in ("", "E0ACME"):
        place = Place(team_id=TEAM, channel_id=CHANNEL, user_id=USER, enterprise_id=enterprise)
        assert place_of(place.name) == place
    for wrong in ("slack:", "slack:T1:C1", "slack:T1:C1:U1:E1:X1", "slack:T1:../x:U1", "team"):
        with pytest.raises(ValueError, match="is not a channel in Slack"):
            place_of(wrong)


def _settled(nights: Nights, watch_id: str) -> None:
    until(lambda: nights.notification(watch_id).delivered_at)


def test_a_channel_waits_for_machines(azure: AzureCapacityCloud, nights: Nights) -> None:
    acme = nights.acme
    acme.gpuplan.store.put_snapshot(t4_on_spot(START), source="refresh")
    asked = acme.asks("watch capacity Standard_NC4as_T4_v3 nodes=2 region=eastus chance=0.8 under=$99")
    assert "2 x Standard_NC4as_T4_v3, spot is watched" in asked.text
    assert "chance 0.15" in asked.text
    azure.score = "High"
    acme.gpuplan.watches.check(now=datetime.now(UTC) + timedelta(hours=1), capacity_only=True)
    assert "can be obtained now" in acme.slack.wait_for(2)[1].text
    assert "a chance of 0.8 or more" in acme.asks("watches").text
