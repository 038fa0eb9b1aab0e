"""The embedded catalogue's GCP rows, served in Google's wire formats and read back through Google's clients."""

from collections import Counter

import pytest

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.providers.contract import Rows
from gpuplan.providers.gcp.price_list import SKUS_PER_PAGE
from tests.clouds.gcp import COMPUTE_ENGINE, GcpCatalogue, gcp_catalogue
from tests.clouds.gcp_skus import padding
from tests.providers.gcp.reads import READ_AT, REGION, price, provider_of, serving, small_catalogue, what_counts


@pytest.fixture(scope="module")
def catalogue() -> GcpCatalogue:
    return gcp_catalogue(sku_count=2500)


@pytest.fixture(scope="module")
def rows(catalogue: GcpCatalogue) -> dict[str, Rows]:
    with serving(catalogue) as server:
        gcp = provider_of(server)
        made = {region: gcp.fetch(region) for region in gcp.regions()}
        asked = Counter(request.path for request in server.requests)
    pages = -(-len(catalogue.skus[COMPUTE_ENGINE]) // SKUS_PER_PAGE)
    assert asked.pop(f"/v1/services/{COMPUTE_ENGINE}/skus") == pages
    assert all(count <= 2 for count in asked.values()), "every list is read once for all regions"
    return made


def test_every_served_row_comes_back_with_its_price_kind_and_zone(
    catalogue: GcpCatalogue, rows: dict[str, Rows]
) -> None:
    read = [offer for row in rows.values() for offer in row.offers]
    assert len(read) == len(catalogue.offers) > 3300
    assert {what_counts(offer) for offer in read} == {what_counts(offer) for offer in catalogue.offers}


def test_every_served_machine_comes_back_with_its_hardware(catalogue: GcpCatalogue, rows: dict[str, Rows]) -> None:
    read: dict[str, InstanceType] = {
        instance_type.name: instance_type for made in rows.values() for instance_type in made.instance_types
    }
    assert read == catalogue.instance_types


def test_rows_that_fit_no_unit_prices_are_few(catalogue: GcpCatalogue) -> None:
    assert catalogue.left_out == 18


def test_a_whole_reading_has_no_failures_and_vouches_for_every_kind(rows: dict[str, Rows]) -> None:
    assert not [line for row in rows.values() for line in row.failures]
    assert not [item for made in rows.values() for item in made.quarantined]
    whole = {"on_demand", "spot", "committed_1y", "committed_3y", "flex_start", "calendar"}
    assert all(row.whole_kinds == whole for row in rows.values())


def test_offers_are_observed_when_read_and_name_few_sources(rows: dict[str, Rows]) -> None:
    offers: list[Offer] = [offer for row in rows.values() for offer in row.offers]
    assert {offer.observed_at for offer in offers} == {READ_AT}
    assert len({offer.source for offer in offers}) == 2


def test_every_page_of_skus_is_read_to_the_empty_token() -> None:
    made = small_catalogue()
    made.skus[COMPUTE_ENGINE] = [*padding(SKUS_PER_PAGE), *made.skus[COMPUTE_ENGINE]]
    with serving(made) as server:
        rows = provider_of(server).fetch(REGION)
        pages = [r for r in server.requests if r.path == f"/v1/services/{COMPUTE_ENGINE}/skus"]
    assert len(pages) == -(-len(made.skus[COMPUTE_ENGINE]) // SKUS_PER_PAGE) > 1
    assert {page.parameter("pageSize") for page in pages} == {str(SKUS_PER_PAGE)}
    assert price(rows, "g2-standard-4") == 652_000
