"""Cursors and ETags of another life: of another listing, of a snapshot that is gone, made up, or of nothing at all."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, many_offers

pytestmark = pytest.mark.slow(reason="starts the service several times")

NAME = "p5.48xlarge"
NIGHTS = [
    many_offers(6, {0: 1_000_000 + night, 1: 1_000_001 + night}, observed_at=NIGHT + timedelta(days=night))
    for night in range(3)
]
#: Listings that come in pages of one row, by their address without a cursor.
LISTINGS = {
    "offers": f"/v1/offers?instance_type={NAME}&limit=1",
    "prices": f"/v1/prices?instance_type={NAME}&limit=1",
    "diff": f"/v1/snapshots/{NIGHTS[2].id}/diff?against={NIGHTS[0].id}&limit=1",
    "audit": "/v1/audit?limit=1",
}


@pytest.fixture
def gpuplan(tmp_path: Path) -> Iterator[Services]:
    url = f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"
    settings = tmp_path / "settings.yaml"
    settings.write_text("retention: {every_snapshot_days: 1, weekly_snapshot_days: 1}", encoding="utf-8")
    store = Store.open(url)
    for night in NIGHTS:
        store.put_snapshot(night, source="refresh")
    store.close()
    gpuplan = open_services(Environment(database_url=url, settings=settings))
    yield gpuplan
    gpuplan.store.close()


@pytest.fixture
def site(gpuplan: Services) -> Iterator[TestClient]:
    with TestClient(create_service(gpuplan)) as client:
        yield client


def asked(site: TestClient, listing: str, **filters: str) -> Any:
    return site.get(f"{LISTINGS[listing]}&{urlencode(filters)}")


def cursor_of(site: TestClient, listing: str) -> str:
    cursor: str = site.get(LISTINGS[listing]).json()["next_cursor"]
    assert cursor
    return cursor


def inside(cursor: str) -> list[Any]:
    parts: list[Any] = json.loads(base64.urlsafe_b64decode(cursor))
    return parts


def made_of(*parts: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


def refused_at_cursor(response: Any, status: int) -> str:
    assert response.status_code == status, response.text
    [error] = response.json()["errors"]
    assert (error["pointer"], error["in"]) == ("/cursor", "query")
    detail: str = error["detail"]
    return detail


@pytest.mark.parametrize("listing", ["offers", "prices"])
def test_a_cursor_of_a_snapshot_that_retention_dropped_is_told_at_the_cursor(
    site: TestClient, gpuplan: Services, listing: str
) -> None:
    cursor = cursor_of(site, listing)
    gpuplan.store.put_snapshot(many_offers(6, {1: 7_000_000}, observed_at=NIGHT + timedelta(days=4)), source="refresh")
    assert asked(site, listing, cursor=cursor).status_code == 200
    assert gpuplan.retention.retain(now=NIGHT + timedelta(days=30))["snapshots"] == len(NIGHTS)
    gone = asked(site, listing, cursor=cursor)
    assert "no longer stored; start again at the first page" in refused_at_cursor(gone, 404)
    # Who names the snapshot hears of it there, as ever.
    if listing == "offers":
        named = asked(site, listing, snapshot=NIGHTS[2].id)
        assert [error["pointer"] for error in named.json()["errors"]] == ["/snapshot"]


@pytest.mark.parametrize("listing", ["offers", "prices", "diff"])
def test_a_cursor_counts_for_its_own_listing_alone(site: TestClient, listing: str) -> None:
    cursor = cursor_of(site, listing)
    assert asked(site, listing, cursor=cursor).status_code == 200
    for other in LISTINGS.keys() - {listing}:
        refused_at_cursor(asked(site, other, cursor=cursor), 422)
    assert site.get("/catalogue", params={"instance_type": NAME, "cursor": cursor}).status_code == 422


def test_a_cursor_that_was_altered_is_none(site: TestClient) -> None:
    cursor = cursor_of(site, "offers")
    snapshot, digest, index = inside(cursor)
    altered = [
        cursor[:-1],
        f"{cursor}A",
        cursor[:9] + "!" + cursor[10:],
        made_of(snapshot, digest[:-1] + "x", index),
        *(made_of(snapshot, digest, other) for other in (-1, 2**31, 1.0, True, "1", None)),
        *(made_of(other, digest, index) for other in (None, 7, [snapshot])),
        made_of(snapshot, digest),
        made_of(),
    ]
    for changed_cursor in altered:
        refused_at_cursor(asked(site, "offers", cursor=changed_cursor), 422)
    unknown = asked(site, "offers", cursor=made_of("0" * 32, digest, index))
    refused_at_cursor(unknown, 404)


def test_who_holds_whatever_there_is_still_hears_that_there_is_nothing(site: TestClient) -> None:
    anything = {"If-None-Match": "*"}
    for listing in ("offers", "prices", "diff"):
        assert site.get(LISTINGS[listing], headers=anything).status_code == 304
    for path in (
        "/v1/offers?instance_type=p9",
        "/v1/prices?instance_type=p9",
        f"/v1/snapshots/{NIGHTS[2].id}/diff?provider=ibm",
    ):
        assert site.get(path, headers=anything).status_code == 422
        assert site.get(path, headers=[("If-None-Match", '"x"'), ("If-None-Match", "*")]).status_code == 422


@pytest.mark.parametrize("listing", ["offers", "prices"])
def test_an_etag_holds_for_one_snapshot_and_for_it_again(site: TestClient, gpuplan: Services, listing: str) -> None:
    held = {"If-None-Match": site.get(LISTINGS[listing]).headers["etag"]}
    assert site.get(LISTINGS[listing], headers=held).status_code == 304
    gpuplan.store.put_snapshot(many_offers(6, {1: 7_000_000}, observed_at=NIGHT + timedelta(days=4)), source="refresh")
    assert site.get(LISTINGS[listing], headers=held).status_code == 200


def test_a_pinned_snapshot_is_answered_as_before_while_another_becomes_the_current_one(
    site: TestClient, gpuplan: Services
) -> None:
    pinned = f"/v1/offers?snapshot={NIGHTS[1].id}"
    before = site.get(pinned)
    gpuplan.store.put_snapshot(many_offers(6, {1: 7_000_000}, observed_at=NIGHT + timedelta(days=4)), source="refresh")
    after = site.get(pinned)
    assert (after.content, after.headers["etag"]) == (before.content, before.headers["etag"])
