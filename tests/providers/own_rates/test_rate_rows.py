"""Lists of own rates as rows: every column, every mistake by name, and the prices of the neoclouds as such a list."""

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.model.exchange_rates import ExchangeRate, stated_rates
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.providers.contract import Rows
from gpuplan.providers.own_rates import rows_by_region
from gpuplan.providers.own_rates.document_rows import MOST_ROWS, document_rows
from gpuplan.providers.own_rates.rate_rows import RatesOrigin
from gpuplan.providers.price_lists.currencies import Rates
from gpuplan.providers.refresh.parallel_fetch import Gathered
from gpuplan.providers.refresh.refresh_acceptance import Accepted
from gpuplan.providers.refresh.refresh_run import CurrentRows, combined

AT = datetime(2026, 11, 27, tzinfo=UTC)
ORIGIN = RatesOrigin(provider="own-campus", where="campus.csv", read_at=AT)
EURO = Rates(
    by_currency={"EUR": ExchangeRate(currency="EUR", usd=Decimal("1.1"), as_of=date(2026, 11, 26), source="ECB")}
)
ROW = {
    "region": "rack-1",
    "instance_type": "8xH100",
    "accelerator": "H100",
    "accelerator_count": "8",
    "price_kind": "on_demand",
    "usd_per_hour": "12.5",
}


def as_csv(*rows: dict[str, str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read(text: str, origin: RatesOrigin = ORIGIN) -> dict[str, Rows]:
    return rows_by_region(document_rows(text, origin.where), origin, EURO)


def reason(**changed: str) -> str:
    """Why a row with these values is set aside, beside one that is sound."""
    read_rows = read(as_csv(ROW, ROW | {"instance_type": "other"} | changed))
    [aside] = [row for rows in read_rows.values() for row in rows.quarantined]
    assert aside.what.startswith("line 3")
    assert [offer.instance_type for rows in read_rows.values() for offer in rows.offers] == ["8xH100"]
    return aside.reason


def test_every_column_arrives() -> None:
    full = ROW | {
        "zone": "a",
        "accelerator_memory_gib": "80",
        "vcpus": "96",
        "memory_gib": "1000",
        "local_disk_gb": "7000",
        "internode_gbps": "3200",
        "fabric": "InfiniBand",
        "intranode_link": "NVLink bridge",
        "observed_at": "2026-11-20",
        "source": "contract 7",
    }
    [rows] = read(as_csv(full)).values()
    [machine], [offer] = rows.instance_types, rows.offers
    assert (machine.provider, machine.accelerator, machine.devices) == ("own-campus", "H100-80GB-SXM", 8)
    assert (machine.vcpus, machine.ram_gib, machine.local_disk_gb) == (96, 1000, 7000)
    assert (machine.fabric, machine.network_gbps, machine.intranode_link) == ("InfiniBand", 3200, "nvlink-bridge")
    assert offer.key == ("own-campus", "rack-1", "a", "8xH100", "on_demand")
    assert (offer.usd_micros_per_hour, offer.observed_at, offer.modelled) == (12_500_000, AT, ())
    assert offer.source == "contract 7; stated on 2026-11-20"


def test_a_json_list_says_the_same_as_a_csv_file() -> None:
    entry: dict[str, Any] = ROW | {"accelerator_count": 8, "usd_per_hour": 12.5, "zone": None}
    assert read(json.dumps([entry])) == read(as_csv(ROW))


def test_an_amount_in_euros_is_converted_and_its_source_says_how() -> None:
    [rows] = read(as_csv(ROW | {"usd_per_hour": "99", "currency": "EUR", "amount": "10"})).values()
    assert rows.offers[0].usd_micros_per_hour == 11_000_000
    assert "10 EUR at 1.1 USD (2026-11-26, ECB)" in rows.offers[0].source


def test_a_machine_without_a_region_or_a_network_says_what_is_assumed() -> None:
    [rows] = read(as_csv(ROW | {"region": ""})).values()
    assert (rows.offers[0].region, rows.offers[0].modelled) == ("unknown", ("obtainability",))
    assert (rows.instance_types[0].fabric, rows.instance_types[0].network_gbps) == ("plain", 10)
    [alone] = read(as_csv(ROW | {"max_nodes": "1"})).values()
    assert (alone.instance_types[0].clusters, alone.instance_types[0].network_gbps) == (False, None)


def test_a_contract_of_unknown_length_is_listed_and_never_planned_and_community_is_on_demand() -> None:
    [rows] = read(as_csv(ROW | {"price_kind": "reserved_contract"}, ROW | {"price_kind": "community"})).values()
    assert [(offer.price_kind, offer.partial) for offer in rows.offers] == [
        ("reserved_contract", ("term",)),
        ("on_demand", ()),
    ]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"usd_per_hour": "3,5"}, "usd_per_hour is '3,5', not a number"),
        ({"usd_per_hour": ""}, "amount is missing"),
        ({"usd_per_hour": "0"}, "a price of zero means unknown"),
        ({"usd_per_hour": "-3"}, "not a plausible price"),
        ({"usd_per_hour": "nan"}, "not a number"),
        ({"currency": "CHF", "amount": "3"}, "currency is 'CHF', for which there is no rate; accepted: USD, EUR"),
        ({"currency": "EUR"}, "amount is missing"),
        ({"accelerator": "Z9000"}, "unknown accelerator 'Z9000'"),
        ({"accelerator_count": "0.5"}, "accelerator_count is '0.5', not a whole number"),
        ({"accelerator_count": "0"}, "accelerator_count is '0', not a whole number"),
        ({"accelerator_memory_gib": "640"}, "accelerator_memory_gib is 640, but H100-80GB-SXM has 80"),
        ({"vcpus": "-1"}, "vcpus -1.0 is not a positive size"),
        ({"price_kind": "monthly"}, "price_kind is 'monthly', not one of on_demand, spot"),
        ({"price_kind": "owned"}, "price_kind is 'owned', not one of"),
        ({"fabric": "infinband", "internode_gbps": "400"}, "fabric is 'infinband', not one of plain, infiniband"),
        ({"fabric": "InfiniBand"}, "internode_gbps is missing"),
        ({"intranode_link": "SLI"}, "intranode_link is 'sli', not one of pcie"),
        ({"min_nodes": "2"}, "min_nodes above 1 cannot be planned on"),
        ({"region": "rack 1"}, "region is 'rack 1'; accepted"),
        ({"instance_type": ""}, "instance_type is ''; accepted"),
        (
            {"instance_type": "8xH100", "accelerator_count": "4"},
            "8xH100 has another accelerator_count in an earlier row",
        ),
        ({"provider": "lambda"}, "provider is 'lambda', but the settings call this list own-campus"),
        ({"observed_at": "20.11.2026"}, "observed_at is '20.11.2026', not a day"),
        ({"observed_at": "2027-11-20"}, "observed_at is 2027-11-20, which is to come"),
    ],
)
def test_a_row_that_cannot_be_true_is_set_aside_with_its_line_and_field(changed: dict[str, str], why: str) -> None:
    assert why in reason(**changed)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("<!doctype html><html></html>", "is an HTML or XML page"),
        ('{"rates": []}', "its top level is no list"),
        ("[", "is not whole JSON"),
        ("[7]", "entry 1 is no object"),
        ("[]", "has no rows"),
        (json.dumps([ROW | {"usd_per_hour": True}]), "entry 1: usd_per_hour is True, neither text nor a number"),
        (as_csv(ROW).replace(",", ";"), "column instance_type is missing; separate columns by commas"),
        (as_csv(ROW).replace("price_kind", "kind"), "column price_kind is missing"),
        (as_csv(ROW | {"colour": "red"}), "column 'colour' is unknown; accepted: provider, region"),
        (as_csv(ROW).replace("usd_per_hour", "note"), "neither column usd_per_hour nor amount"),
        (as_csv(ROW).replace("region", "usd_per_hour"), "a column is there twice"),
        (as_csv(ROW) + "rack-1,8xB200", "line 3 does not have the 6 cells of its header"),
        (as_csv(ROW) + "rack-1,8xB200,B200,8,on_demand,3,5", "line 3 does not have the 6 cells of its header"),
        (as_csv(ROW).splitlines()[0], "has no rows"),
        (as_csv(*[ROW] * (MOST_ROWS + 1)), "more than 20,000 rows"),
        (as_csv(ROW | {"accelerator": "Z9000"}), r"no row can be used: line 2 \(8xH100\): unknown accelerator"),
    ],
)
def test_a_document_that_is_no_list_fails_as_a_whole(text: str, why: str) -> None:
    with pytest.raises(ProviderFailure, match=why) as caught:
        read(text)
    assert "\n" not in str(caught.value)


def refreshed(text: str, before: CurrentRows) -> Any:
    gathered = Gathered(provider="own-campus", listed=tuple(read(text)), rows=read(text))
    return combined({"own-campus": gathered}, before, at=AT, accepted=Accepted())


@pytest.fixture(scope="module")
def first() -> CurrentRows:
    """A snapshot after a refresh that read one H100 machine and one B200 machine."""
    before = CurrentRows(snapshot=embedded_snapshot(), embedded=embedded_snapshot(), read_at=frozenset())
    other = ROW | {"instance_type": "1xB200", "accelerator": "B200", "accelerator_count": "1", "usd_per_hour": "3"}
    return CurrentRows(snapshot=refreshed(as_csv(ROW, other), before).snapshot, embedded=None, read_at=frozenset({AT}))


def rates_of(snapshot: Any) -> dict[str, Any]:
    return {offer.instance_type: offer for offer in snapshot.offers if offer.provider == "own-campus"}


def test_a_price_per_month_or_per_accelerator_names_its_row_and_the_last_price_stays(first: CurrentRows) -> None:
    other = ROW | {"instance_type": "8xH200", "accelerator": "H200", "usd_per_hour": "0.5"}
    same = ROW | {"instance_type": "1xB200", "accelerator": "B200", "accelerator_count": "1", "usd_per_hour": "3"}
    after = refreshed(as_csv(ROW | {"usd_per_hour": "4380"}, other, same), first)
    reasons = {row.what: row.reason for read_ in after.read for row in read_.sifted.aside}
    assert "moved from 12.5 to 4380" in reasons["8xH100/on_demand"]
    assert reasons["8xH200/on_demand"].endswith("; is it the price of one accelerator?")
    assert rates_of(after.snapshot)["8xH100"].usd_micros_per_hour == 12_500_000
    monthly = refreshed(as_csv(ROW, ROW | {"instance_type": "other", "usd_per_hour": "4380"}), first)
    [aside] = monthly.read[0].sifted.aside
    assert (aside.what, aside.reason.endswith("; is it a price per month?")) == ("other/on_demand", True)


def test_two_prices_for_one_machine_are_both_set_aside(first: CurrentRows) -> None:
    after = refreshed(as_csv(ROW, ROW | {"usd_per_hour": "13"}, ROW | {"instance_type": "new"}), first)
    assert {row.reason for row in after.read[0].sifted.aside} == {
        "came 2 times with different contents (12.5 and 13 USD/h)"
    }
    assert rates_of(after.snapshot)["8xH100"].usd_micros_per_hour == 12_500_000


def test_a_machine_that_left_the_list_goes_unless_a_row_was_set_aside(first: CurrentRows) -> None:
    assert set(rates_of(refreshed(as_csv(ROW), first).snapshot)) == {"8xH100"}
    with_mistake = rates_of(refreshed(as_csv(ROW, ROW | {"instance_type": "1xB200", "vcpus": "x"}), first).snapshot)
    assert with_mistake["1xB200"].stale_since == AT


def test_a_list_that_the_settings_dropped_goes_with_the_next_refresh_of_all(first: CurrentRows) -> None:
    ended = CurrentRows(snapshot=first.snapshot, embedded=None, read_at=first.read_at, ended=frozenset({"own-campus"}))
    assert rates_of(combined({}, ended, at=AT, accepted=Accepted()).snapshot) == {}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["lambda", "nebius", "verda", "scaleway", "oci", "crusoe"])
def test_the_list_prices_of_neoclouds_are_such_lists(name: str, shared_data: Path) -> None:
    text = (shared_data / "neoclouds" / "prices.csv").read_text(encoding="utf-8")
    listed = [row for row in csv.DictReader(io.StringIO(text)) if row["provider"] == name]
    origin = RatesOrigin(provider=f"own-{name}", where=name, read_at=AT)
    rows = document_rows(as_csv(*[row | {"provider": ""} for row in listed]), name)
    regions = rows_by_region(rows, origin, Rates(by_currency=stated_rates()))
    assert [row for region in regions.values() for row in region.quarantined] == []
    prices = {
        (offer.region, offer.zone, offer.instance_type, offer.price_kind): offer.usd_micros_per_hour
        for region in regions.values()
        for offer in region.offers
    }
    assert prices == {
        (row["region"] or "unknown", row["zone"], row["instance_type"], row["price_kind"]): usd_micros(
            Decimal(row["amount"]) * (Decimal(1) if row["currency"] == "USD" else stated_rates()[row["currency"]].usd)
        )
        for row in listed
    }
