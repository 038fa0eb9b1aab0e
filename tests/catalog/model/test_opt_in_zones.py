"""Zones that an account must opt in to before it can start anything there."""

import pytest

from gpuplan.catalog.model.regions import location_to_opt_into
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot


@pytest.mark.parametrize(
    ("region", "zone", "location"),
    [
        ("us-east-1", "use1-atl2-az1", "Atlanta"),
        ("us-west-2-lax-1", "us-west-2-lax-1", "Los Angeles"),
        ("us-east-1", "use1-az4", None),
        ("us-east-1", "", None),
    ],
)
def test_a_local_zone_is_told_from_the_regions_own(region: str, zone: str, location: str | None) -> None:
    assert location_to_opt_into("aws", region, zone) == location


def test_every_embedded_zone_apart_from_its_region_must_be_opted_in_to() -> None:
    """The ids of a region's own zones end in -az and a number after the region's short code, which has no dash."""
    apart = {offer for offer in embedded_snapshot().offers if offer.provider == "aws" and offer.zone.count("-") > 1}
    assert apart
    for offer in apart:
        assert location_to_opt_into(offer.provider, offer.region, offer.zone) is not None, offer.zone
