"""Vast.ai and Oracle Cloud over real sockets: hosts of a marketplace, and a price list without places."""

from typing import Any

import pytest

from gpuplan.catalog.model.provider_names import provider_kind
from gpuplan.catalog.model.regions import UNKNOWN_REGION
from tests.clouds.oci import Oracle, part, shape
from tests.clouds.vast import Vast, offer
from tests.providers.price_lists.reading import prices, read, reasons


def test_the_cheapest_verified_host_of_a_country_is_offered_and_its_least_bid_as_spot() -> None:
    with Vast().server().running() as server:
        rows = read("vast", server)
    assert set(rows) == {"IS", UNKNOWN_REGION}
    assert prices(rows["IS"]) == {
        ("H100 SXM x8", "on_demand"): (18_000_000, True),
        ("H100 SXM x8", "spot"): (10_800_000, True),
    }
    assert prices(rows[UNKNOWN_REGION])["RTX 4090 x1", "on_demand"] == (350_000, True)
    assert provider_kind("vast", "H100 SXM x8") == "marketplace"
    (machine,) = rows["IS"].instance_types
    assert (machine.accelerator, machine.devices, machine.clusters) == ("H100-80GB-SXM", 8, False)


@pytest.mark.parametrize(
    ("offers", "names"),
    [
        ([offer(1, "A100_SXM4", 1, 0.6, gpu_ram=40960), offer(2, "A100 SXM4", 1, 1.1, "Oslo, NO", gpu_ram=81559)], 2),
        ([offer(1, rentable=False), offer(2, rented=True), offer(3, "RTX 4090", 1, 0.4, gpu_ram=24564)], 1),
        ({**offer(1)}, 1),
        ([offer(1, min_bid=None), offer(2, "L4", 1, 0.3, gpu_ram=23034, min_bid=0)], 2),
    ],
)
def test_every_form_of_a_host_is_read(offers: Any, names: int) -> None:
    with Vast(offers=offers).server().running() as server:
        rows = read("vast", server)
    machines = {machine.accelerator for region in rows.values() for machine in region.instance_types}
    assert len(machines) == names
    assert not reasons(rows)


@pytest.mark.parametrize("cut", [64, 100])
def test_a_search_that_is_cut_off_goes_on_at_its_last_price(cut: int) -> None:
    hosts = [offer(number, "L4", 1, 0.2 + number // 2 / 1000, gpu_ram=23034) for number in range(250)]
    with Vast(offers=[*hosts, offer(999, usd=25.0)], cut=cut).server().running() as server:
        rows = read("vast", server)
    assert ("H100 SXM x8", "on_demand") in prices(rows["IS"])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (offer(7, usd=0), "dph_base is 0: a price of zero means unknown"),
        (offer(7, usd=-2.0), "dph_base is -2.0: a price of zero"),
        (offer(7, usd=1.0, dph_base="1.0"), "dph_base is '1.0', not a number"),
        (offer(7, "Z9000"), "unknown accelerator 'Z9000'"),
        (offer(7, gpu_ram=652472), "GiB per accelerator, but H100-80GB-SXM has 80"),
        (offer(7, gpus=None), "num_gpus is missing, not a whole number"),
        (offer(7, usd=9000.0), "not a plausible price"),
    ],
)
def test_an_offer_that_cannot_be_true_is_quarantined_and_the_others_are_read(row: Any, reason: str) -> None:
    with Vast(offers=[offer(1), row | {"geolocation": "Japan, JP"}]).server().running() as server:
        rows = read("vast", server)
    assert ("H100 SXM x8", "on_demand") in prices(rows["IS"])
    assert any(reason in why for why in reasons(rows))


def test_a_shape_costs_its_gpus_and_half_when_preemptible_in_a_place_that_is_not_stated() -> None:
    with Oracle().server().running() as server:
        rows = read("oci", server)[UNKNOWN_REGION]
    assert prices(rows) == {
        ("BM.GPU.H100.8", "on_demand"): (80_000_000, True),
        ("VM.GPU3.1", "on_demand"): (2_950_000, True),
        ("VM.GPU3.1", "spot"): (1_475_000, True),
    }
    assert all(row.modelled == ("obtainability",) for row in rows.offers)
    machine = next(row for row in rows.instance_types if row.name == "BM.GPU.H100.8")
    assert (machine.accelerator, machine.ram_gib, machine.fabric) == ("H100-80GB-SXM", 2048, "RoCE")


@pytest.mark.parametrize(
    ("row", "parts", "reason"),
    [
        (shape("new", "B110519", gb=141), [part("B110519", 0)], "a price of zero means unknown"),
        (shape("new", "B110519", gb=141), [part("B110519", -1)], "not a plausible price"),
        (shape("new", "B110519", gb=141), [part("B110519", "10")], "value is '10', not a number"),
        (shape("new", "B1"), [part("B1", 10, "Z9000")], "unknown accelerator 'Compute - GPU - Z9000'"),
        (
            shape("new", "B110519", gb=141),
            [part("B110519", 10, metricName="GPU Per Month")],
            "metricName is 'GPU Per Month'",
        ),
        (
            shape("new", "B110519", gb=141),
            [part("B110519", 10), part("B110519", 11)],
            "has 2 prices of PAY_AS_YOU_GO in USD, not one",
        ),
        (shape("new", "B110519", gb=141), [part("B110519", 10, currencyCodeLocalizations=[])], "has 0 prices"),
        (
            shape("new", "B110519", gb=141),
            [part("B110519", 10, serviceCategory="VMware")],
            "products is B110519, not one part",
        ),
        (shape("new", "B98415", gb=640), [], "states 640 GiB per accelerator, but H100-80GB-SXM has 80"),
        (shape("new", "B98415", "8"), [], "gpuQty is '8', not a whole number"),
        (shape("BM.GPU.H200.8", "B98415"), [], "gpuplan knows it with 8 x H200-141GB-SXM"),
        ("H100", [], "shape is 'H100', not an object"),
    ],
)
def test_a_shape_that_cannot_be_true_is_quarantined(row: Any, parts: Any, reason: str) -> None:
    cloud = Oracle(parts=[part("B98415", 10.0), *parts], shapes=[shape("BM.GPU.H100.8", "B98415"), row])
    with cloud.server().running() as server:
        rows = read("oci", server)
    assert prices(rows[UNKNOWN_REGION])["BM.GPU.H100.8", "on_demand"] == (80_000_000, True)
    assert any(reason in why for why in reasons(rows))


def test_a_part_that_is_listed_twice_alike_is_read_once() -> None:
    with Oracle(parts=[part("B98415", 10.0)] * 2).server().running() as server:
        assert ("BM.GPU.H100.8", "on_demand") in prices(read("oci", server)[UNKNOWN_REGION])
