"""`/changes` and `/v1/snapshots/{id}/diff` tell the same of the same two snapshots, row by row and in their counts."""

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from gpuplan.api.http.cursor_pages import next_cursor
from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.api.services.offer_changes import WHAT
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, TYPES, offer

#: More instance types than the page shows, each with another fact the night after.
SHAPES = [replace(TYPES[0], name=f"p5.{number}xlarge") for number in range(205)]


def night(day: int) -> Snapshot:
    """Of 90 offers some get cheaper, some dearer, some go and some come."""
    prices = {number: 1_000_000 + (number % 7 - 3) * 10_000 * day for number in range(day * 5, 90 + day * 8)}
    offers = [
        offer(usd, zone=f"zone-{number}", instance_type=SHAPES[number].name, observed_at=NIGHT + timedelta(days=day))
        for number, usd in prices.items()
    ]
    return snapshot_of([replace(shape, vcpus=100 + day) for shape in SHAPES], offers)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    url = f"sqlite:///{tmp_path_factory.mktemp('changes') / 'gpuplan.sqlite3'}"
    store = Store.open(url)
    for day in range(2):
        store.put_snapshot(night(day), source="refresh")
    store.close()
    with TestClient(create_service(open_services(Environment(database_url=url)))) as client:
        yield client


def cells(text: str, kind: str) -> list[str]:
    contents = re.findall(rf"<{kind}[^>]*>(.*?)</{kind}>", text, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]+>", "", content)).strip() for content in contents]


def shown(site: TestClient) -> tuple[list[list[str]], str]:
    """The rows of all pages of the list, and the first page."""
    rows: list[list[str]] = []
    first = page = site.get("/changes").text
    while True:
        table = page.split('aria-label="Offers that differ"')[1].split("</table>")[0]
        rows += [cells(row, "th") + cells(row, "td") for row in table.split("<tr>")[2:]]
        following = re.search(r'<a[^>]*rel="next"[^>]*href="([^"]*)"', page)
        if following is None:
            return rows, first
        page = site.get(html.unescape(following[1])).text


def diff(site: TestClient) -> dict[str, Any]:
    body: dict[str, Any] = site.get(f"/v1/snapshots/{night(1).id}/diff?limit=10000").json()
    return body


def test_every_change_stands_on_the_page_in_the_order_of_the_interface(site: TestClient) -> None:
    rows, _ = shown(site)
    changes = diff(site)["changes"]
    assert len(rows) == len(changes) > 50
    for row, change in zip(rows, changes, strict=True):
        assert row[0] == change["instance_type"]
        assert row[1] == (f"{change['change_percent']:+.1f} %" if change["change_percent"] else "")
        for cell, usd in zip(row[2:4], (change["usd_per_hour_before"], change["usd_per_hour_after"]), strict=True):
            assert cell == ("–" if usd is None else f"${float(usd):.4f}")


def test_the_counts_of_the_page_are_those_of_the_interface(site: TestClient) -> None:
    _, first = shown(site)
    answer = diff(site)
    [counts] = [
        row for row in first.split("<tr>") if '<th scope="row">aws</th>' in row and row.count("<td") == len(WHAT)
    ]
    dearer, cheaper, new, gone, *others = map(int, cells(counts, "td"))
    [provider] = answer["providers"]
    assert cheaper + dearer == provider["changed"]
    assert cheaper == Counter((change["change_percent"] or 0) < 0 for change in answer["changes"])[True] > 0
    assert (new, gone, sum(others)) == (provider["new"], provider["vanished"], 0)
    assert f"{answer['total']} offers changed: {dearer} dearer, {cheaper} cheaper, {new} new, {gone} gone." in first


def test_after_a_refresh_that_failed_no_price_is_said_to_differ(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"
    store = Store.open(url)
    before = night(0)
    store.put_snapshot(before, source="refresh")
    stale = [replace(offer, stale_since=NIGHT + timedelta(days=1)) for offer in before.offers]
    store.put_snapshot(snapshot_of(before.instance_types, stale), source="refresh")
    store.close()
    with TestClient(create_service(open_services(Environment(database_url=url)))) as client:
        page = client.get("/changes").text
        listed = client.get("/changes", params={"what": "stale"}).text
    assert "no price changed, and no offer came or went." in page
    assert "90 became stale" in page
    assert "Offers that differ" not in page
    assert "Shown are 1 to 50 of 90" in listed


def test_what_is_left_out_of_the_instance_types_is_said(site: TestClient) -> None:
    _, first = shown(site)
    assert len(diff(site)["instance_types"]) == len(SHAPES)
    assert "whose facts differ (205)" in first
    assert "Shown are the first 200" in first


def test_a_cursor_beyond_the_end_is_told(site: TestClient) -> None:
    pinned = {"before": night(0).id, "after": night(1).id}
    cursor = next_cursor(night(1).id, "changes", pinned, 10_000)
    answer = site.get("/changes", params=pinned | {"cursor": cursor})
    assert (answer.status_code, "start at its first page" in answer.text) == (422, True)
