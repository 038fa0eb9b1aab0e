"""Verda and Hyperstack over real sockets: their fields, kinds and stock."""

from typing import Any

import pytest

from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.catalog.runtime.errors import ProviderFailure
from tests.clouds import hyperstack, verda
from tests.clouds.hyperstack import Hyperstack
from tests.clouds.verda import Verda
from tests.providers.price_lists.reading import prices, read


@pytest.fixture(autouse=True)
def _client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERDA_CLIENT_ID", verda.CLIENT_ID)


def test_verda_sells_each_kind_where_it_is_listed() -> None:
    with Verda().server().running() as server:
        rows = read("verda", server)
    assert set(rows) == {"FIN-01", "FIN-02", "ICE-01", UNKNOWN_REGION}
    assert prices(rows["FIN-01"]) == {("1H100.80S.30V", "on_demand"): (3_740_000, True)}
    assert prices(rows["ICE-01"]) == {("1H100.80S.30V", "spot"): (1_870_000, True)}
    assert prices(rows["FIN-02"]) == {}
    assert prices(rows[UNKNOWN_REGION]) == {
        ("1H100.80S.30V", "on_demand"): (3_740_000, False),
        ("1H100.80S.30V", "spot"): (1_870_000, False),
        ("8H100.80S.176V", "on_demand"): (29_920_000, False),
        ("8H100.80S.176V", "spot"): (14_960_000, False),
    }
    (machine,) = rows["FIN-01"].instance_types
    assert (machine.accelerator, machine.devices, machine.vcpus) == ("H100-80GB-SXM", 1, 30)
    assert rows[UNKNOWN_REGION].provider_notes == ("2 of 4 machines are sold out everywhere",)


def test_verda_without_an_account_has_prices_and_says_that_stock_is_not_known() -> None:
    with Verda().server().running() as server:
        rows = read("verda", server, None)
        assert [request.path for request in server.requests] == ["/instance-types"]
    assert set(rows) == {UNKNOWN_REGION}
    assert prices(rows[UNKNOWN_REGION])["1H100.80S.30V", "on_demand"] == (3_740_000, True)
    assert "stock is not known: set VERDA_CLIENT_ID" in rows[UNKNOWN_REGION].provider_notes[0]


def test_a_secret_of_verda_without_its_client_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERDA_CLIENT_ID")
    with Verda().server().running() as server, pytest.raises(ProviderFailure, match="but not VERDA_CLIENT_ID"):
        read("verda", server)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (verda.entry("new.", "0"), "a price of zero means unknown"),
        (verda.entry("new.", "-5"), "not a plausible price"),
        (verda.entry("new.", "four"), "price_per_hour is 'four', not a number"),
        (verda.entry("new.", None), "price_per_hour is missing, not a number"),
        (verda.entry("new.", "NaN"), "price_per_hour is 'NaN', not a number"),
        (verda.entry("new.", currency="eur"), "currency is 'eur', not one of usd"),
        (verda.entry("new.", model="Z9000 1TB"), "unknown accelerator 'Z9000 1TB'"),
        (verda.entry("new.", gpus=None), "number_of_gpus is missing, not a whole number"),
        (verda.entry("new.", cpu=None), "cpu is missing, not an object"),
        (verda.entry("8H100.80S.176V", "15", "7", 4), "gpuplan knows it with 8 x H100-80GB-SXM"),
    ],
)
def test_a_type_of_verda_that_cannot_be_true_is_quarantined_and_the_others_are_read(row: Any, reason: str) -> None:
    cloud = Verda(types=[verda.entry("1H100.80S.30V"), row])
    with cloud.server().running() as server:
        rows = read("verda", server)
    assert rows["FIN-01"].offers
    assert any(
        reason in aside.reason for aside in rows[UNKNOWN_REGION].quarantined if aside.what == row["instance_type"]
    )


@pytest.mark.parametrize("spot", ["3.74", "0", None])
def test_a_spot_price_of_verda_that_is_none_is_no_offer(spot: Any) -> None:
    with Verda(types=[verda.entry("1H100.80S.30V", spot=spot)]).server().running() as server:
        assert {kind for _, kind in prices(read("verda", server)[UNKNOWN_REGION])} == {"on_demand"}


def test_hyperstack_multiplies_the_price_of_a_gpu_and_sells_a_size_where_there_are_enough() -> None:
    with Hyperstack().server().running() as server:
        rows = read("hyperstack", server)
    assert set(rows) == {"CANADA-1", "NORWAY-1", UNKNOWN_REGION}
    assert prices(rows["CANADA-1"]) == {("n3-H100x8", "on_demand"): (19_200_000, True)}
    # Out of stock by its flag, and by its number of machines of this size.
    assert prices(rows["NORWAY-1"]) == {}
    assert prices(rows[UNKNOWN_REGION])["n3-L40x4", "on_demand"] == (4_000_000, False)
    (machine,) = rows["CANADA-1"].instance_types
    assert (machine.accelerator, machine.devices, machine.ram_gib) == ("H100-80GB-PCIe", 8, 1440)


@pytest.mark.parametrize(
    ("row", "price", "reason"),
    [
        (hyperstack.flavor("new", gpu="Z9000"), "2.40", "gpu is 'Z9000', which /pricebook does not price"),
        (hyperstack.flavor("new", gpus="8"), "2.40", "gpu_count is '8', not a whole number"),
        (hyperstack.flavor("new", stock="yes"), "2.40", "stock_available is 'yes', not true or false"),
        (hyperstack.flavor("new", cpu="many"), "2.40", "cpu is 'many', not a number"),
        (hyperstack.flavor("new"), "0", "a price of zero means unknown"),
        (hyperstack.flavor("new"), "-1", "not a plausible price"),
        (hyperstack.flavor("new"), "free", "value is 'free', not a number"),
    ],
)
def test_a_flavor_of_hyperstack_that_cannot_be_true_is_quarantined(row: Any, price: Any, reason: str) -> None:
    cloud = Hyperstack(
        flavors={"CANADA-1": [row, hyperstack.flavor("n3-L40x4", 4, "L40")]},
        prices=[hyperstack.price("H100-80G-PCIe", price), hyperstack.price("L40", "1.00")],
    )
    with cloud.server().running() as server:
        rows = read("hyperstack", server)
    assert ("n3-L40x4", "on_demand") in prices(rows["CANADA-1"])
    assert [aside.reason for aside in rows[UNKNOWN_REGION].quarantined if reason in aside.reason]
