"""Every price of the neoclouds is listed as its source states it, and planned on only as far as it is documented."""

import csv
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import gpuplan
from gpuplan.catalog.model.accelerators import accelerators, find_accelerator
from gpuplan.catalog.model.exchange_rates import stated_rates
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.provider_names import provider_kind, provider_names
from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import columns_of
from tools.catalogue_build.fact_tables import Row, fact_table
from tools.catalogue_build.neocloud_prices import machine_name, neocloud_prices

PROVIDERS = [
    "coreweave",
    "crusoe",
    "digitalocean",
    "hyperstack",
    "lambda",
    "nebius",
    "oci",
    "paperspace",
    "runpod",
    "scaleway",
    "together",
    "vast",
    "verda",
    "vultr",
]
#: The price kind under which each listed kind is offered.
KINDS = {"on_demand": "on_demand", "spot": "spot", "community": "on_demand", "reserved_contract": "reserved_contract"}


@pytest.fixture
def listed(own_store: str, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str, str, str, str], dict[str, object]]:
    """What `gpuplan offers` lists, by key."""
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", own_store)
    rows: list[dict[str, object]] = [row for name in PROVIDERS for row in gpuplan.offers(provider=name)]
    return {_key(row): row for row in rows}


def _key(row: dict[str, object]) -> tuple[str, str, str, str, str]:
    provider, region, zone, name, kind = (
        str(row[field]) for field in ("provider", "region", "zone", "instance_type", "price_kind")
    )
    return provider, region, zone, name, kind


def _newest(rows: list[Row]) -> Iterator[Row]:
    newest: dict[tuple[str, ...], Row] = {}
    for row in rows:
        fields = ("provider", "region", "zone", "instance_type", "accelerator", "accelerator_count", "price_kind")
        key = tuple(row[name] for name in fields)
        if key not in newest or row["observed_at"] > newest[key]["observed_at"]:
            newest[key] = row
    yield from newest.values()


@pytest.mark.shared_data
def test_every_collected_price_is_listed_to_the_micro_dollar(
    shared_data: Path, listed: dict[tuple[str, str, str, str, str], dict[str, object]]
) -> None:
    with (shared_data / "neoclouds" / "prices.csv").open(encoding="utf-8", newline="") as file:
        rows = list(_newest(list(csv.DictReader(file))))
    assert len(rows) == 443
    for row in rows:
        names = row | {"listed_instance_type": row["instance_type"], "listed_price_kind": row["price_kind"]}
        region = row["region"] or UNKNOWN_REGION
        offer = listed[row["provider"], region, row["zone"], machine_name(names), KINDS[row["price_kind"]]]
        usd = (
            Decimal(row["amount"]) * stated_rates()["EUR"].usd
            if row["currency"] == "EUR"
            else Decimal(row["usd_per_hour"])
        )
        assert usd_micros(Decimal(str(offer["usd_per_hour"]))) == usd_micros(usd)
        assert str(offer["observed_at"]).startswith(row["observed_at"])
        assert offer["accelerator"] == find_accelerator(row["accelerator"]).name
        boards = 4 if row["accelerator"] == "A16" else 1
        assert offer["accelerator_count"] == Fraction(row["accelerator_count"]) * boards
        assert offer["vcpus"] == (float(row["vcpus"]) if row["vcpus"] else offer["vcpus"])
        assert row["source"] in str(offer["source"])


def test_community_rows_are_on_demand_at_a_marketplace() -> None:
    community = [row for row in fact_table("neocloud_prices") if row["listed_price_kind"] == "community"]
    assert len(community) == 89
    assert {provider_kind(row["provider"], machine_name(row)) for row in community} == {"marketplace"}
    assert {provider_kind(row["provider"], machine_name(row)) for row in fact_table("neocloud_prices")} == {
        "cloud",
        "neocloud",
        "marketplace",
    }


def test_contracts_without_a_stated_term_are_listed_and_never_planned_on() -> None:
    snapshot = embedded_snapshot()
    columns = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    contracts = [i for i, row in enumerate(columns.offers) if not price_kinds()[row.price_kind].has_stated_term]
    assert len(contracts) == 12
    assert not columns.plannable[contracts].any()


def test_euro_prices_name_their_amount_and_the_rate_with_its_day() -> None:
    euro = [offer for offer in embedded_snapshot().offers if offer.provider == "scaleway"]
    assert len(euro) == 32
    assert all("EUR at 1.1225 USD (2026-10-04" in offer.source for offer in euro)


def test_how_well_a_sale_is_documented_decides_whether_it_is_planned_on() -> None:
    offers = [offer for offer in embedded_snapshot().offers if offer.provider in PROVIDERS]
    by_evidence = {
        "sold": [row for row in offers if row.available and "obtainability" not in row.modelled],
        "stock unknown": [row for row in offers if row.available and "obtainability" in row.modelled],
        "no evidence": [row for row in offers if not row.available],
    }
    assert {row.region for row in by_evidence["sold"]} == {
        row.region for row in offers if row.region != UNKNOWN_REGION
    } - {"me-west1", "uk-south1"}
    assert UNKNOWN_REGION in {row.region for row in by_evidence["stock unknown"]}
    assert {row.provider for row in by_evidence["no evidence"]} == {"digitalocean", "hyperstack", "nebius"}
    assert sum(map(len, by_evidence.values())) == 443


def test_a_quarter_of_an_a16_board_is_one_device() -> None:
    a16 = [row for row in embedded_snapshot().instance_types if row.accelerator == "A16" and row.provider == "vultr"]
    assert [row.accelerator_count for row in a16] == [1]


def test_every_accelerator_that_neoclouds_rent_is_in_the_table_with_a_source() -> None:
    rented = {find_accelerator(row["accelerator"]).name for row in fact_table("neocloud_prices")}
    assert all(accelerators()[name].source and accelerators()[name].as_of for name in rented)


def test_every_neocloud_has_a_kind_and_is_not_taken_for_one_that_is_refreshed() -> None:
    for name in PROVIDERS:
        assert provider_names()[name].is_rented


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"currency": "CHF"}, "line 2: currency 'CHF' is not in exchange_rates.csv"),
        ({"accelerator": "H1000"}, "unknown accelerator 'H1000'"),
        ({"accelerator_count": "0.3"}, "0.3 of A10 is no whole number of devices"),
        ({"usd_per_hour": "0"}, "a price of zero means unknown"),
        ({"usd_per_hour": "-1"}, "not a plausible price"),
        ({"listed_price_kind": "haggled"}, "haggled"),
        ({"intranode_link": "string"}, "string"),
    ],
)
def test_a_row_that_cannot_be_true_is_a_problem_by_name(change: Row, message: str) -> None:
    row = next(row for row in fact_table("neocloud_prices") if row["listed_instance_type"] == "gpu_1x_a10")
    harvest = neocloud_prices([row | change])
    assert harvest.offers == []
    assert len(harvest.problems) == 1
    assert message in harvest.problems[0]
