"""A refresh plans watched jobs on the prices that it brought, tells what changed, and says so itself."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.refresh import render_refresh
from gpuplan.api.schemas.refresh_answers import RefreshReport
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.security.identity import Identity, with_lesser
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.services.refresh_report import watches_failed
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.watch_store import WatchStore
from gpuplan.planner.model.wire import wire
from tests.api.clouds_for_tests import NOWHERE, making
from tests.api.notifications.conftest import JOB, Nights
from tests.clouds.server import answering
from tests.providers.fake_clouds import FakeCloud, price, rows

pytestmark = pytest.mark.slow(reason="refreshes prices")

ONE_PLACE = {"providers": ["aws"], "regions": ["us-east-1"], "instance_types": ["p5.48xlarge"], "max_nodes": 1}
WATCHED = {"job": JOB | {"constraints": ONE_PLACE | {"price_kinds": ["on_demand"]}}, "channels": ["ops"]}
OpenWith = Callable[[int], Services]


@pytest.fixture
def at_price(nights: Nights, embedded_store: Path, tmp_path: Path) -> Iterator[OpenWith]:
    """Makes a gpuplan whose only cloud asks this price for one machine, in micro-dollars per hour."""
    made: list[Services] = []
    url = f"sqlite:///{shutil.copy(embedded_store, tmp_path / 'refreshed.sqlite3')}"

    def make(usd_micros: int) -> Services:
        cloud = FakeCloud(answers={"us-east-1": rows(price("us-east-1", usd_micros=usd_micros))})
        environment: dict[str, Any] = NOWHERE | {"settings": nights.settings}
        made.append(open_services(Environment(database_url=url, **environment), clouds={"aws": making(cloud)}))
        return made[-1]

    yield make
    for gpuplan in made:
        gpuplan.store.close()


def shown(answer: dict[str, Any]) -> str:
    from rich.console import Console

    console = Console(width=300, markup=False)
    with console.capture() as capture:
        print_sections(render_refresh(read_stored(RefreshReport, answer)), on=console)
    return capture.get()


def test_a_refresh_tells_what_its_prices_change_and_shows_it(nights: Nights, at_price: OpenWith) -> None:
    at_price(60_000_000).refreshes.refresh({})
    at_price(60_000_000).watches.add(WATCHED)
    answer = wire(at_price(40_000_000).refreshes.refresh({}))
    [notification] = answer["watches"]["told"]
    assert notification["event"] == "cheaper"
    assert nights.inbox.taken[0]["data"]["snapshot_id"] == answer["snapshot_id"]
    text = shown(answer)
    assert "Watched jobs" in text
    assert notification["summary"] in text
    assert "Watched jobs" not in shown(answer | {"watches": None})
    assert wire(at_price(40_000_000).refreshes.report(answer["id"]))["watches"]["told"] == [notification]


def test_what_a_refresh_makes_and_says_of_a_watch_is_its_owners(nights: Nights, at_price: OpenWith) -> None:
    ann, bob = (
        Requester(identity=Identity(id=f"key:{name}", name=name, scopes=with_lesser(["refresh"]), via="key"))
        for name in ("ann", "bob")
    )
    at_price(60_000_000).refreshes.refresh({})
    with acting_as(ann):
        at_price(60_000_000).watches.add(WATCHED)
    gpuplan = at_price(40_000_000)
    with acting_as(bob):
        answer = wire(gpuplan.refreshes.refresh({}))
        seen = wire(gpuplan.refreshes.report(answer["id"]))["watches"]
        assert (seen["checked"], seen["told"], seen["deliveries"]["sent"]) == (1, [], 1)
    [notification] = answer["watches"]["told"]
    with acting_as(bob), pytest.raises(NotStored):
        gpuplan.plans.saved(notification["plan_id"])
    with acting_as(ann):
        assert gpuplan.plans.saved(notification["plan_id"]).outcome == "planned"
        assert wire(gpuplan.refreshes.report(answer["id"]))["watches"]["told"] == [notification]
        assert gpuplan.runs.one(answer["id"]).status == "done"


def test_watches_that_cannot_be_read_are_a_warning_of_the_refresh_that_is_stored_all_the_same(
    at_price: OpenWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: WatchStore) -> None:
        raise StoreFailure("database x: disk I/O error")

    gpuplan = at_price(60_000_000)
    monkeypatch.setattr(WatchStore, "every", fail)
    answer = wire(gpuplan.refreshes.refresh({}))
    assert answer["outcome"] == "whole"
    assert answer["snapshot_id"] == gpuplan.store.current_snapshot_id()
    assert "watches were not checked: database x: disk I/O error" in answer["warnings"]
    assert "Watched jobs" not in shown(answer)


def test_a_message_that_nobody_takes_is_in_the_line_for_alerting(nights: Nights, at_price: OpenWith) -> None:
    at_price(60_000_000).refreshes.refresh({})
    at_price(60_000_000).watches.add(WATCHED)
    nights.inbox.break_with(answering(410, b"gone"))
    answer = wire(at_price(40_000_000).refreshes.refresh({}))
    assert answer["outcome"] == "whole"
    assert "; 1 of its watch messages and plans failed; " in answer["summary"]
    assert watches_failed(read_stored(RefreshReport, answer)) == 1
    assert wire(at_price(40_000_000).refreshes.report(answer["id"]))["summary"] == answer["summary"]
