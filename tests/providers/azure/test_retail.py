"""Rows of Azure's price list read by themselves: what is a price, of which kind, and which of several."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.providers.azure.retail import KINDS, Prices, prices_of
from tests.clouds.azure import price_row

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)
T4 = "Standard_NC4as_T4_v3"
H100 = "Standard_ND96isr_H100_v5"


def read(*rows: Any, region: str = "eastus") -> Prices:
    return prices_of(rows, region=region, read_at=NOW)


def by_kind(*rows: Any) -> dict[str, int]:
    result = read(*rows)
    assert not result.quarantined
    return {price.kind: price.usd_micros_per_hour for price in result.prices}


def row(**changes: Any) -> dict[str, Any]:
    return price_row(T4, "eastus", changes.pop("usd", 0.526), **changes)


def only_reason(*rows: Any) -> str:
    result = read(*rows)
    assert not result.prices
    (quarantined,) = result.quarantined
    return quarantined.reason


def test_a_reservation_is_the_total_of_its_term_although_the_unit_says_one_hour() -> None:
    one = price_row(H100, "eastus", 551221.0, type="Reservation", reservationTerm="1 Year")
    three = price_row(H100, "eastus", 1_000_000.0, type="Reservation", reservationTerm="3 Years")
    assert by_kind(one, three) == {"reserved_1y": 62_924_772, "reserved_3y": 38_051_750}


@pytest.mark.parametrize(("term", "kind"), [("1 year", "1y"), ("P1Y", "1y"), ("3 Year", "3y"), (" 3 years ", "3y")])
def test_a_term_in_any_spelling_of_azure_is_the_same_term(term: str, kind: str) -> None:
    plan = {"retailPrice": 0.3, "term": term}
    result = by_kind(row(savingsPlan=[plan]), row(usd=2628.0, type="Reservation", reservationTerm=term))
    assert set(result) == {"on_demand", f"savings_plan_{kind}", f"reserved_{kind}"}


def test_the_unit_of_one_hour_is_read_in_any_case_and_spacing() -> None:
    assert by_kind(row(unitOfMeasure="1  hour ")) == {"on_demand": 526_000}
    assert "is not 1 Hour" in only_reason(row(unitOfMeasure="10 Hours"))


def test_a_reservation_of_five_years_is_left_out_with_a_note() -> None:
    result = read(row(type="Reservation", reservationTerm="5 Years", usd=9000.0))
    assert (result.prices, result.quarantined) == ([], [])
    assert result.notes == ["eastus: 1 prices with a term of 5 Years left out; gpuplan knows 1 Year and 3 Years"]


def test_nested_savings_plans_are_hourly_and_their_order_does_not_matter() -> None:
    plans = [{"unitPrice": 0.2, "retailPrice": 0.2, "term": "3 Years"}, {"retailPrice": 0.3, "term": "1 Year"}]
    expected = {"on_demand": 526_000, "savings_plan_3y": 200_000, "savings_plan_1y": 300_000}
    assert by_kind(row(savingsPlan=plans)) == expected
    assert by_kind(row(savingsPlan=plans[::-1])) == expected


def test_a_savings_plan_price_of_zero_leaves_the_hourly_price_whole() -> None:
    result = read(row(savingsPlan=[{"retailPrice": 0.0, "term": "1 Year"}]))
    assert [price.kind for price in result.prices] == ["on_demand"]
    assert "1 Year: retailPrice 0.0 is unknown, never free" in result.quarantined[0].reason


@pytest.mark.parametrize(
    "product", ["Virtual Machines NCasT4_v3 Series Windows", "Virtual Machines NCCadsv5 Srs Win", "NC Windows Series"]
)
def test_a_windows_price_is_told_by_the_product_name_alone_and_never_taken_for_linux(product: str) -> None:
    assert by_kind(row(), row(usd=0.9, productName=product)) == {"on_demand": 526_000}


def test_a_product_name_that_only_contains_win_inside_a_word_is_kept() -> None:
    assert by_kind(row(productName="Virtual Machines Windermere Series")) == {"on_demand": 526_000}


@pytest.mark.parametrize("product", ["NCasT4 v3 Series Cloud Services", "NCasT4v3 Series CloudServices"])
def test_cloud_services_reuse_the_size_and_are_left_out(product: str) -> None:
    assert by_kind(row(), row(usd=0.9, productName=product)) == {"on_demand": 526_000}


def test_spot_and_low_priority_are_told_by_sku_or_meter_name() -> None:
    rows = [
        row(),
        row(usd=0.1, skuName="NC4as T4 v3 Spot", meterName="NC4as T4 v3 Spot"),
        row(usd=0.12, skuName="NC4as T4 v3 Low Priority", meterName="NC4as T4 v3 Low Priority"),
    ]
    assert by_kind(*rows) == {"on_demand": 526_000, "spot": 100_000}


def test_spot_is_told_by_the_meter_name_where_there_is_no_sku_name() -> None:
    assert by_kind(row(skuName=None, meterName="NC4as_T4_v3 Spot")) == {"spot": 526_000}


def test_spot_at_or_above_pay_as_you_go_is_kept_as_it_is() -> None:
    spot = row(usd=0.6, skuName="NC4as T4 v3 Spot", meterName="NC4as T4 v3 Spot")
    assert by_kind(row(), spot) == {"on_demand": 526_000, "spot": 600_000}


def test_a_developer_price_is_left_out() -> None:
    assert by_kind(row(), row(usd=0.4, type="DevTestConsumption")) == {"on_demand": 526_000}


def test_a_dedicated_host_and_an_expired_meter_and_a_promotion_are_left_out() -> None:
    rows = [
        row(usd=5.0, productName="Dedicated Host Reservation"),
        row(usd=0.2, meterName="NC4as T4 v3 - Expired"),
        row(usd=0.3, armSkuName=f"{T4}_Promo"),
    ]
    assert by_kind(row(), *rows) == {"on_demand": 526_000}


def test_the_product_name_has_no_common_prefix_or_end() -> None:
    names = ["NCads A100 v4 Series Linux", "Virtual Machines NDMI300Xv5 Srs", "Virtual Machines NDsr H100 v5 Series"]
    for name in names:
        assert by_kind(row(productName=name)) == {"on_demand": 526_000}


def test_a_price_of_zero_is_unknown_and_never_free() -> None:
    assert only_reason(row(usd=0.0)) == "retailPrice 0.0 is unknown, never free"


def test_is_primary_meter_region_does_not_choose_between_rows() -> None:
    assert by_kind(row(isPrimaryMeterRegion=False)) == {"on_demand": 526_000}


def test_a_price_that_starts_in_the_future_or_has_ended_is_not_in_force() -> None:
    rows = [
        row(usd=9.0, effectiveStartDate="2026-12-01T00:00:00Z"),
        row(usd=8.0, effectiveStartDate="2026-01-01T00:00:00Z", effectiveEndDate="2026-11-21T03:00:00Z"),
    ]
    assert by_kind(row(), *rows) == {"on_demand": 526_000}


def test_a_price_that_ends_later_or_carries_the_year_one_is_in_force() -> None:
    assert by_kind(row(effectiveEndDate="2027-01-01T00:00:00.0000000Z")) == {"on_demand": 526_000}
    assert by_kind(row(effectiveEndDate="0001-01-01T00:00:00Z")) == {"on_demand": 526_000}


def test_of_two_prices_in_force_the_one_since_later_counts() -> None:
    older, newer = row(usd=0.7), row(usd=0.5, effectiveStartDate="2025-01-01T00:00:00Z")
    assert by_kind(older, newer) == by_kind(newer, older) == {"on_demand": 500_000}


def test_savings_plans_of_a_price_that_was_followed_by_another_end_with_it() -> None:
    older = row(usd=0.7, savingsPlan=[{"retailPrice": 0.4, "term": "1 Year"}])
    newer = row(usd=0.5, effectiveStartDate="2025-01-01T00:00:00Z")
    assert by_kind(older, newer) == {"on_demand": 500_000}


def test_meter_names_in_any_style_do_not_matter_since_prices_join_on_size_and_region() -> None:
    for meter in ("ND96asr_A100_v4", "NC4asT4v3", "NC24ads A100 v4"):
        assert by_kind(row(meterName=meter, skuName=meter)) == {"on_demand": 526_000}


def test_duplicate_meters_that_disagree_are_quarantined_with_both_prices_named() -> None:
    reason = only_reason(row(usd=0.178), row(usd=0.086, meterId="another"))
    assert "0.086 and 0.178 USD per hour" in reason


def test_duplicate_meters_that_agree_are_one_price() -> None:
    assert by_kind(row(), row(meterId="another")) == {"on_demand": 526_000}


def test_a_further_tier_is_not_the_price() -> None:
    assert by_kind(row(), row(usd=0.2, tierMinimumUnits=500.0)) == {"on_demand": 526_000}


def test_two_spellings_of_one_size_are_one_size() -> None:
    assert by_kind(row(), row(armSkuName=T4.upper())) == {"on_demand": 526_000}


@pytest.mark.parametrize(
    "region", ["", "Global", "eastus2euap", "centraluseuap", "brazilus", "eastusstg", "southcentralusstage", None]
)
def test_test_regions_and_what_is_no_region_are_skipped_although_they_have_no_product_name(region: str | None) -> None:
    result = read({**row(productName=None), "armRegionName": region}, region=str(region or "").lower())
    assert (result.prices, result.quarantined) == ([], [])


def test_a_region_in_another_case_is_the_same_region() -> None:
    assert [price.kind for price in read(price_row(T4, "EastUS", 0.5)).prices] == ["on_demand"]


def test_rows_of_other_regions_services_and_sizes_are_left_aside() -> None:
    rows = [
        price_row(T4, "westus", 0.5),
        price_row("Standard_D2as_v5", "eastus", 0.5),
        price_row("", "eastus", 0.5),
        row(serviceName="Virtual Machines Licenses"),
        row(serviceName=["odd"]),
        row(armSkuName=None),
        "no row",
        None,
    ]
    assert read(*rows) == Prices()


def test_optional_fields_may_be_missing() -> None:
    names = ("armSkuName", "armRegionName", "retailPrice", "unitOfMeasure", "meterName", "productName", "type")
    assert by_kind({name: row()[name] for name in names}) == {"on_demand": 526_000}
    assert by_kind(row(retailPrice=None)) == {"on_demand": 526_000}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"retailPrice": [1]}, "retailPrice [1] is not a number"),
        ({"retailPrice": True}, "retailPrice True is not a number"),
        ({"retailPrice": "cheap"}, "retailPrice 'cheap' is not a number"),
        ({"retailPrice": float("nan")}, "retailPrice nan is not a number"),
        ({"retailPrice": 1e12}, "no plausible price"),
        ({"retailPrice": -1.0}, "retailPrice -1.0 is unknown"),
        ({"unitOfMeasure": "1 GB/Month"}, "unitOfMeasure '1 GB/Month' is not 1 Hour"),
        ({"currencyCode": "EUR"}, "currencyCode 'EUR' is not USD"),
        ({"effectiveStartDate": "soon"}, "effectiveStartDate 'soon' is not a time"),
        ({"tierMinimumUnits": "many"}, "tierMinimumUnits 'many' is not a number"),
        ({"productName": None}, "productName is missing"),
        ({"skuName": None, "meterName": None}, "skuName and meterName are missing"),
        ({"type": None}, "type None is not Consumption or Reservation"),
        ({"type": ["Consumption"]}, "type ['Consumption'] is not"),
    ],
)
def test_a_field_that_changed_its_type_or_meaning_quarantines_that_row_by_name(
    changes: dict[str, Any], field: str
) -> None:
    assert field in only_reason(row(**changes))


def test_a_price_told_as_text_is_read() -> None:
    assert by_kind(row(retailPrice="0.526")) == {"on_demand": 526_000}


def test_savings_plans_of_another_shape_are_quarantined_and_the_price_stands() -> None:
    for plans in ({"term": "1 Year"}, ["1 Year"], "none"):
        result = read(row(savingsPlan=plans))
        assert [price.kind for price in result.prices] == ["on_demand"]
        assert result.quarantined[0].reason == "savingsPlan is not a list of terms and prices"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(
    changes=st.dictionaries(st.sampled_from(sorted([*price_row(T4, "eastus", 1.0), "reservationTerm"])), ANYTHING),
    plans=ANYTHING | st.lists(st.dictionaries(st.sampled_from(["term", "retailPrice", "unitPrice"]), ANYTHING)),
)
def test_whatever_a_row_holds_it_is_read_or_quarantined_and_the_next_one_stands(
    changes: dict[str, Any], plans: Any
) -> None:
    sound = price_row(H100, "eastus", 98.32)
    result = read({**row(), **changes, "savingsPlan": plans}, sound)
    assert ("on_demand", 98_320_000) in {
        (price.kind, price.usd_micros_per_hour) for price in result.prices if price.size == H100
    }


def test_the_kinds_of_the_price_list_are_price_kinds() -> None:
    expected = {"on_demand", "spot", "reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y"}
    assert expected == KINDS
