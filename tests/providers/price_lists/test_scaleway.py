"""Scaleway over a real socket: zones, pages, stock words, the catalogue's currency, and the day's rate of the euro."""

from typing import Any

import pytest

from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.providers.cloud_registry import made
from gpuplan.providers.refresh.refresh_run import CurrentRows, refresh
from tests.clouds.scaleway import Scaleway, catalogue_row, entry
from tests.clouds.server import Reply, answering
from tests.providers.price_lists.reading import READ_AT, prices, read, reasons, sources


def only(row: Any, **changes: Any) -> Scaleway:
    """One more type beside a usual one in fr-par-2."""
    types = {"fr-par-1": {}, "fr-par-2": {"L4-1-24G": entry(), "NEW-1-24G": row}, "pl-waw-2": {"L4-1-24G": entry()}}
    return Scaleway(types=types, **changes)


def test_a_type_is_offered_in_its_zones_at_the_rate_of_the_day_which_the_source_keeps() -> None:
    with Scaleway().server().running() as server:
        rows = read("scaleway", server)
    assert set(rows) == {"fr-par", "pl-waw"}
    paris = {(offer.zone, offer.instance_type): offer for offer in rows["fr-par"].offers}
    assert set(paris) == {("fr-par-1", "L4-1-24G"), ("fr-par-2", "L4-1-24G"), ("fr-par-2", "H100-SXM-8-80G")}
    assert paris["fr-par-1", "L4-1-24G"].usd_micros_per_hour == round(0.7875 * 1.16 * 1e6)
    assert paris["fr-par-1", "L4-1-24G"].source.endswith("0.7875 EUR at 1.160000 USD (2026-11-26, ECB reference rate)")
    machine = next(row for row in rows["fr-par"].instance_types if row.name == "H100-SXM-8-80G")
    assert (machine.accelerator, machine.devices, machine.vcpus) == ("H100-80GB-SXM", 8, 128)
    assert (machine.local_disk_gb, machine.network_gbps, machine.ram_gib) == (12_800, 20, 48)


@pytest.mark.parametrize(("word", "available"), [("available", True), ("scarce", True), ("shortage", False)])
def test_a_type_stays_listed_with_its_stock_word(word: str, available: bool) -> None:
    with Scaleway(words={"H100-SXM-8-80G": word}).server().running() as server:
        assert prices(read("scaleway", server)["fr-par"])["H100-SXM-8-80G", "on_demand"][1] is available


@pytest.mark.parametrize("counts", [True, False])
def test_all_pages_are_read_by_the_number_of_entries_or_by_links(counts: bool) -> None:
    with Scaleway(counts_pages=counts).server().running() as server:
        assert ("H100-SXM-8-80G", "on_demand") in prices(read("scaleway", server)["fr-par"])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (entry(0), "a price of zero means unknown"),
        (entry(-1.5), "not a plausible price"),
        (entry("0.79"), "hourly_price is '0.79', not a number"),
        (entry(0.013125, monthly_price=574.875), "hourly_price is 0.013125, but monthly_price is 574.875"),
        (entry(gpu="Z9000"), "unknown accelerator 'Z9000'"),
        (entry(gib=192, gpu="L4"), "states 192 GiB per accelerator, but L4 has"),
        (entry(gpus="1"), "gpu is '1', not a whole number"),
        (entry(mig_profile="1g.10gb"), "a slice of a GPU"),
        (entry(gpu_info=None), "gpu_info is missing, not an object"),
        ("L4", "not an object"),
    ],
)
def test_a_type_that_cannot_be_true_is_quarantined_and_the_others_are_read(row: Any, reason: str) -> None:
    with only(row).server().running() as server:
        rows = read("scaleway", server)
    assert ("L4-1-24G", "on_demand") in prices(rows["fr-par"])
    assert any(reason in why and why.startswith("NEW-1-24G") for why in reasons(rows))


@pytest.mark.parametrize(
    ("catalogue", "reason"),
    [
        ([catalogue_row("NEW-1-24G", 0.7875)], "but the catalogue's price comes to 47.25"),
        ([catalogue_row("NEW-1-24G", 0.013125, currency_code="XYZ")], "currency is 'XYZ', for which there is no rate"),
    ],
)
def test_a_catalogue_that_contradicts_the_list_or_has_an_unknown_currency_quarantines(
    catalogue: Any, reason: str
) -> None:
    with only(entry(gpu="L4"), catalogue=catalogue).server().running() as server:
        assert any(reason in why for why in reasons(read("scaleway", server)))


def test_an_unknown_stock_word_is_quarantined() -> None:
    with only(entry(gpu="L4"), words={"NEW-1-24G": "plenty"}).server().running() as server:
        assert any("availability is 'plenty', not one of available" in why for why in reasons(read("scaleway", server)))


def test_another_currency_of_the_catalogue_is_converted_at_its_own_rate() -> None:
    catalogue = [catalogue_row("L4-1-24G", 0.013125, currency_code="CHF")]
    with Scaleway(catalogue=catalogue).server().running() as server:
        rows = read("scaleway", server)
    converted = {
        offer.zone: offer.usd_micros_per_hour for offer in rows["fr-par"].offers if "L4" in offer.instance_type
    }
    assert converted["fr-par-2"] == round(0.7875 * 1.16 / 0.928 * 1e6)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=503), "HTTP 503"),
        (Reply(body=b"<html>"), "no day or no rate of USD"),
        (Reply(body=b"<Cube time='2026-10-01'><Cube currency='USD' rate='1.1'/>"), "the ECB's rates are of 2026-10-01"),
        (Reply(body=b"<Cube time='2026-11-26'><Cube currency='USD' rate='116'/>"), "implausible beside 1.1225"),
    ],
)
def test_without_the_ecb_the_stated_rate_is_taken_with_its_date_and_drift(reply: Reply, reason: str) -> None:
    with Scaleway().server().running() as server:
        server.break_with(lambda _: reply, when=lambda request: request.path == "/ecb.xml")
        rows = read("scaleway", server)
    notes = " ".join(rows["fr-par"].provider_notes)
    assert reason in notes
    assert "EUR at 1.1225 USD of 2026-10-04, 54 days old, typically off by 3.1% by now" in notes
    assert prices(rows["pl-waw"])["L4-1-24G", "on_demand"] == (883_969, True)


def test_without_the_catalogue_euros_are_assumed_and_noted() -> None:
    with Scaleway().server().running() as server:
        server.break_with(answering(403, b"{}"), when=lambda request: "public-catalog" in request.path)
        rows = read("scaleway", server)
    assert any("euros are assumed" in note for note in rows["fr-par"].provider_notes)
    assert prices(rows["pl-waw"])["L4-1-24G", "on_demand"] == (913_500, True)


def test_a_region_that_fails_keeps_its_prices_while_the_other_is_read() -> None:
    with Scaleway().server().running() as server:
        server.break_with(answering(500, b""), when=lambda request: "pl-waw-2" in request.path)
        current = CurrentRows(snapshot=embedded_snapshot(), embedded=embedded_snapshot(), read_at=frozenset())
        after = refresh(
            {"scaleway": lambda: made("scaleway", sources("scaleway", server.url), READ_AT)}, current, at=READ_AT
        )
    assert after.outcome == "partial"
    offers = [offer for offer in after.snapshot.offers if offer.provider == "scaleway"]
    assert {offer.stale_since for offer in offers if offer.region == "pl-waw"} == {READ_AT}
    assert {offer.stale_since for offer in offers if offer.region == "fr-par"} == {None}
