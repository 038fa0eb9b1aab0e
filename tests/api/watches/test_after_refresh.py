"""A refresh plans watched jobs on the prices that it brought, tells what changed, and says so itself."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.app import Gpuplan
from api.identity.asking import Asking, acting_as
from api.identity.who import Identity, with_lesser
from api.refresh_report import watches_failed
from api.render.refresh import render_refresh
from api.settings import Environment
from catalog.errors import StoreFailure
from catalog.snapshot_list import NotStored
from catalog.watch_store import WatchStore
from tests.api.clouds_for_tests import NOWHERE, making
from tests.api.watches.conftest import JOB, Nights
from tests.clouds.server import answering
from tests.providers.fake_clouds import FakeCloud, price, rows

ONE_PLACE = {"providers": ["aws"], "regions": ["us-east-1"], "instance_types": ["p5.48xlarge"], "max_nodes": 1}
WATCHED = {"job": JOB | {"constraints": ONE_PLACE | {"price_kinds": ["on_demand"]}}, "channels": ["ops"]}
OpenWith = Callable[[int], Gpuplan]


@pytest.fixture
def at_price(nights: Nights, embedded_store: Path, tmp_path: Path) -> Iterator[OpenWith]:
    """Makes a gpuplan whose only cloud asks this price for one machine, in micro-dollars per hour."""
    made: list[Gpuplan] = []
    url = f"sqlite:///{shutil.copy(embedded_store, tmp_path / 'refreshed.sqlite3')}"

    def make(usd_micros: int) -> Gpuplan:
        cloud = FakeCloud(answers={"us-east-1": rows(price("us-east-1", usd_micros=usd_micros))})
        environment: dict[str, Any] = NOWHERE | {"settings": nights.settings}
        made.append(Gpuplan(Environment(database_url=url, **environment), clouds={"aws": making(cloud)}))
        return made[-1]

    yield make
    for each in made:
        each.store.close()


def shown(answer: dict[str, Any]) -> str:
    from rich.console import Console

    console = Console(width=300, markup=False)
    with console.capture() as capture:
        console.print(render_refresh(answer))
    return capture.get()


def test_a_refresh_tells_what_its_prices_change_and_shows_it(nights: Nights, at_price: OpenWith) -> None:
    at_price(60_000_000).refresh({})
    at_price(60_000_000).add_watch(WATCHED)
    answer = at_price(40_000_000).refresh({})
    [told] = answer["watches"]["told"]
    assert told["event"] == "cheaper"
    assert nights.inbox.taken[0]["data"]["snapshot_id"] == answer["snapshot_id"]
    text = shown(answer)
    assert "Watched jobs" in text
    assert told["summary"] in text
    assert "Watched jobs" not in shown(answer | {"watches": None})
    assert at_price(40_000_000).refresh_report(answer["id"])["watches"]["told"] == [told]


def test_what_a_refresh_makes_and_says_of_a_watch_is_its_owners(nights: Nights, at_price: OpenWith) -> None:
    ann, bob = (
        Asking(identity=Identity(id=f"key:{name}", name=name, scopes=with_lesser(["refresh"]), via="key"))
        for name in ("ann", "bob")
    )
    at_price(60_000_000).refresh({})
    with acting_as(ann):
        at_price(60_000_000).add_watch(WATCHED)
    gpuplan = at_price(40_000_000)
    with acting_as(bob):
        answer = gpuplan.refresh({})
        seen = gpuplan.refresh_report(answer["id"])["watches"]
        assert (seen["checked"], seen["told"], seen["deliveries"]["sent"]) == (1, [], 1)
    [told] = answer["watches"]["told"]
    with acting_as(bob), pytest.raises(NotStored):
        gpuplan.saved_plan(told["plan_id"])
    with acting_as(ann):
        assert gpuplan.saved_plan(told["plan_id"])["outcome"] == "planned"
        assert gpuplan.refresh_report(answer["id"])["watches"]["told"] == [told]
        assert gpuplan.run(answer["id"])["status"] == "done"


def test_watches_that_cannot_be_read_are_a_warning_of_the_refresh_that_is_stored_all_the_same(
    at_price: OpenWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: WatchStore) -> None:
        raise StoreFailure("database x: disk I/O error")

    gpuplan = at_price(60_000_000)
    monkeypatch.setattr(WatchStore, "every", fail)
    answer = gpuplan.refresh({})
    assert answer["outcome"] == "whole"
    assert answer["snapshot_id"] == gpuplan.store.current_snapshot_id()
    assert "watches were not checked: database x: disk I/O error" in answer["warnings"]
    assert "Watched jobs" not in shown(answer)


def test_a_message_that_nobody_takes_is_in_the_line_for_alerting(nights: Nights, at_price: OpenWith) -> None:
    at_price(60_000_000).refresh({})
    at_price(60_000_000).add_watch(WATCHED)
    nights.inbox.break_with(answering(410, b"gone"))
    answer = at_price(40_000_000).refresh({})
    assert answer["outcome"] == "whole"
    assert "; 1 of its watch messages and plans failed; " in answer["summary"]
    assert watches_failed(answer) == 1
    assert at_price(40_000_000).refresh_report(answer["id"])["summary"] == answer["summary"]
