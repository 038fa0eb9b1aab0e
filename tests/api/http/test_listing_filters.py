"""Filters of `/v1/offers` that the catalogue's page has too: both give the same offers, and the same words for what is none."""

import csv
import io

import httpx
import pytest

from gpuplan.catalog.model.regions import GEOGRAPHIES, regions
from gpuplan_client import Client


def places(rows: list[dict[str, str]]) -> list[tuple[str, ...]]:
    return sorted(
        (row["provider"], row["region"], row["zone"], row["instance_type"], row["price_kind"]) for row in rows
    )


def test_offers_of_a_geography_are_those_of_its_regions_and_of_the_page(client: httpx.Client) -> None:
    filters = {"geography": "EU", "accelerator": "H100-80GB-SXM", "kind": "on_demand"}
    with Client(str(client.base_url)) as typed:
        paged = list(typed.offers(geography="eu", accelerator="H100-80GB-SXM", kind="on_demand", limit=7))
    answer = client.get("/v1/offers", params=filters).json()
    assert answer["offers"] == paged
    assert answer["total"] == len(paged) > 7
    assert {regions()[offer["provider"], offer["region"]].geography for offer in paged} == {"eu"}
    page = client.get("/catalogue.csv", params=filters)
    assert places(list(csv.DictReader(io.StringIO(page.text)))) == places(answer["offers"])


def test_every_offer_of_a_cloud_lies_in_one_geography(client: httpx.Client) -> None:
    for cloud in ("aws", "gcp", "azure"):
        counts = [
            client.get("/v1/offers", params={"provider": cloud, "geography": geography, "limit": 1}).json()["total"]
            for geography in GEOGRAPHIES
        ]
        assert sum(counts) == client.get("/v1/offers", params={"provider": cloud, "limit": 1}).json()["total"] > 0


@pytest.mark.parametrize("path", ["/v1/offers", "/catalogue.csv"])
def test_a_geography_that_there_is_not_is_refused_with_those_there_are(client: httpx.Client, path: str) -> None:
    refused = client.get(path, params={"geography": "atlantis"})
    assert refused.status_code == 422
    assert "accepted: africa, asia" in refused.text


def test_a_cursor_of_another_geography_is_refused(client: httpx.Client) -> None:
    cursor = client.get("/v1/offers", params={"geography": "us", "limit": 1}).json()["next_cursor"]
    refused = client.get("/v1/offers", params={"geography": "eu", "limit": 1, "cursor": cursor})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/cursor"]
