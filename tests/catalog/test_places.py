"""Regions, egress, storage and carbon: what is known of a place, and what is assumed and said."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.model.egress_rates import egress_tiers
from gpuplan.catalog.model.grid_carbon import carbon
from gpuplan.catalog.model.regions import GEOGRAPHIES, is_place_unknown, nearest_with, regions
from gpuplan.catalog.model.storage_rates import storage_usd_per_gb_month


def test_every_region_lies_in_a_geography_that_a_job_may_name() -> None:
    stated = {place: region.geography for place, region in regions().items() if region.geography}
    assert set(stated.values()) == set(GEOGRAPHIES)
    nowhere = {place for place in regions() if place not in stated}
    assert all(is_place_unknown(region) for _, region in nowhere - {("coreweave", "NA")})
    assert {region.partition for region in regions().values()} == {"commercial", "gov", "china"}
    for region in stated:
        assert len(regions()[region].country) == 2
        assert regions()[region].country.isupper()
        assert regions()[region].location


def test_gov_and_china_regions_are_not_commercial() -> None:
    assert {name for (_, name), region in regions().items() if region.partition == "gov"} == {
        "us-gov-west-1",
        "us-gov-east-1",
        "usdodcentral",
        "usdodeast",
        "usgovarizona",
        "usgovtexas",
        "usgovvirginia",
    }
    assert {name for (_, name), region in regions().items() if region.partition == "china"} == {
        "cn-north-1",
        "cn-northwest-1",
    }


def test_regions_opened_since_the_prices_were_read_have_a_place() -> None:
    stream = {
        ("aws", "ap-east-2"): "TW",
        ("aws", "ap-southeast-6"): "NZ",
        ("aws", "ap-southeast-7"): "TH",
        ("aws", "mx-central-1"): "MX",
        ("azure", "austriaeast"): "AT",
        ("azure", "belgiumcentral"): "BE",
        ("azure", "denmarkeast"): "DK",
        ("azure", "newzealandnorth"): "NZ",
    }
    assert {place: regions()[place].country for place in stream} == stream


def test_a_local_zone_abroad_is_not_in_the_country_of_its_parent() -> None:
    santiago, casablanca = regions()["aws", "us-east-1-scl-1"], regions()["aws", "eu-west-3-wl1-cmn1"]
    assert (santiago.geography, santiago.parent_region) == ("south-america", "us-east-1")
    assert (casablanca.geography, casablanca.parent_region) == ("africa", "eu-west-3")


def test_a_default_electricity_price_has_a_source_and_a_date() -> None:
    for region in regions().values():
        assert region.usd_per_kwh is None or (0.02 < region.usd_per_kwh < 0.6)
        assert region.usd_per_kwh is None or (region.usd_per_kwh_source and region.usd_per_kwh_as_of)


def test_the_nearest_region_is_itself_then_the_parent_then_the_country() -> None:
    available = frozenset({"us-east-1", "us-west-2", "eu-west-1"})
    assert nearest_with("aws", "us-west-2", available) == "us-west-2"
    assert nearest_with("aws", "us-west-2-lax-1", available) == "us-west-2"
    assert nearest_with("aws", "us-west-1", available) == "us-east-1"
    assert nearest_with("aws", "eu-central-1", available) == "eu-west-1"
    assert nearest_with("aws", "ap-south-1", available) is None
    assert nearest_with("aws", "nowhere-1", available) is None


def test_data_in_the_region_of_the_job_moves_free() -> None:
    assert egress_tiers("aws", "us-east-1", "aws", "us-east-1").egress_usd(4000) == 0


@pytest.mark.parametrize("origin", [("local", "office"), ("", "")])
def test_data_on_owned_machines_or_everywhere_has_no_egress(origin: tuple[str, str]) -> None:
    assert egress_tiers(*origin, "aws", "us-east-1").egress_usd(4000) == 0


def test_another_region_of_the_provider_costs_the_simplified_rate_and_says_so() -> None:
    rate = egress_tiers("aws", "eu-west-1", "aws", "us-east-1")
    assert rate.egress_usd(4000) == pytest.approx(80)
    assert "simplification" in rate.assumptions[0]


def test_internet_egress_goes_through_the_tiers_from_first_to_last() -> None:
    rate = egress_tiers("aws", "us-east-1", "gcp", "us-central1")
    assert rate.egress_usd(100) == 0
    assert rate.egress_usd(4000) == pytest.approx(3900 * 0.09)
    assert rate.egress_usd(20_000) == pytest.approx(9900 * 0.09 + 10_000 * 0.085)
    assert rate.egress_usd(200_000) == pytest.approx(9900 * 0.09 + 40_000 * 0.085 + 100_000 * 0.07 + 50_000 * 0.05)


def test_gcp_egress_is_priced_per_gib_and_depends_on_where_the_data_goes() -> None:
    a_thousand_gib_in_gb = 1000 * 1.073741824
    to = {place: egress_tiers("gcp", "us-central1", *place).egress_usd(a_thousand_gib_in_gb) for place in [
        ("aws", "us-east-1"), ("aws", "ap-southeast-2"), ("aws", "cn-north-1"), ("local", "office")
    ]}  # fmt: skip
    assert list(to.values()) == pytest.approx([120, 190, 230, 120])


def test_a_tier_stated_in_tib_ends_where_that_is_in_gb() -> None:
    assert egress_tiers("gcp", "us-central1", "aws", "us-east-1").tiers[0][0] == pytest.approx(1099.51, abs=0.01)


def test_the_home_region_stands_for_another_and_says_so() -> None:
    rate = egress_tiers("aws", "eu-west-1", "azure", "westeurope")
    assert rate.tiers == egress_tiers("aws", "us-east-1", "azure", "westeurope").tiers
    assert any("aws:eu-west-1 is taken at the price of us-east-1" in assumption for assumption in rate.assumptions)


@given(
    st.sampled_from(sorted(regions())),
    st.sampled_from(sorted(regions())),
    st.floats(0, 1e7),
    st.floats(0, 1e7),
)
def test_more_data_never_costs_less_and_every_pair_of_regions_has_a_rate(
    origin: tuple[str, str], destination: tuple[str, str], one_gb: float, other_gb: float
) -> None:
    rate = egress_tiers(*origin, *destination)
    less, extra = sorted((one_gb, other_gb))
    assert 0 <= rate.egress_usd(less) <= rate.egress_usd(extra) <= 0.25 * extra + 1e-9
    assert origin == destination or (rate.source and rate.as_of)
    assert origin == destination or rate.assumptions or len(rate.tiers) == 1


@pytest.mark.parametrize("gb", [-1.0, float("nan"), float("inf")])
def test_an_amount_of_data_that_is_none_is_refused(gb: float) -> None:
    with pytest.raises(ValueError, match="not an amount"):
        egress_tiers("aws", "us-east-1", "gcp", "us-central1").egress_usd(gb)


def test_storage_is_the_usual_disk_and_the_standard_bucket_of_the_region() -> None:
    rate = storage_usd_per_gb_month("aws", "eu-central-1")
    assert rate.block_usd_per_gb_month == pytest.approx(0.0952)
    assert rate.object_usd_per_gb_month == pytest.approx(0.023)
    assert rate.assumptions == ("object storage in aws:eu-central-1 is taken at the price of us-east-1",)


def test_a_price_per_gib_is_divided_to_the_gb() -> None:
    assert storage_usd_per_gb_month("gcp", "us-central1").block_usd_per_gb_month == pytest.approx(0.1 / 1.073741824)


def test_the_newest_price_of_the_usual_disk_is_taken() -> None:
    rate = storage_usd_per_gb_month("aws", "us-east-1")
    assert rate.source.startswith("gp3: cloudprice")
    assert rate.assumptions == ()


def test_own_disks_cost_nothing_and_that_is_said() -> None:
    rate = storage_usd_per_gb_month("local", "office")
    assert (rate.block_usd_per_gb_month, rate.object_usd_per_gb_month) == (0, 0)
    assert rate.assumptions


def test_every_region_has_a_storage_price() -> None:
    for provider, region in regions():
        rate = storage_usd_per_gb_month(provider, region)
        assert 0.01 < rate.object_usd_per_gb_month <= rate.block_usd_per_gb_month < 0.5
        assert rate.source
        assert rate.as_of


def test_an_operators_own_newest_figure_stands_before_a_published_factor() -> None:
    iowa = carbon("gcp", "us-central1")
    assert (iowa.grid_g_per_kwh, iowa.grid_as_of) == (412.72, "2024")
    assert iowa.pue == 1.11


def test_carbon_factors_under_other_names_of_a_region_are_found() -> None:
    assert carbon("azure", "swedencentral").grid_g_per_kwh == 5.67
    assert carbon("aws", "eu-north-1").grid_g_per_kwh == 8.8


def test_the_fleets_pue_stands_where_the_region_has_none() -> None:
    assert [carbon(*place).pue for place in [("aws", "us-east-1"), ("gcp", "us-south1"), ("azure", "eastus")]] == [
        1.135,
        1.1,
        1.185,
    ]


def test_an_unknown_grid_is_none_and_never_zero() -> None:
    assert carbon("aws", "us-east-2").grid_g_per_kwh is None
    assert carbon("local", "office").pue is None
    for place in regions():
        known = carbon(*place)
        assert known.grid_g_per_kwh is None or (known.grid_g_per_kwh > 0 and known.grid_source and known.grid_as_of)


def test_all_pairs_of_partitions_have_a_rate() -> None:
    for origin, destination in itertools.product(["us-gov-west-1", "cn-north-1"], ["us-east-1", "us-gov-east-1"]):
        assert egress_tiers("aws", origin, "aws", destination).egress_usd(1000) == pytest.approx(20)
