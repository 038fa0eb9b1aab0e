"""Machines that are sold to some accounts alone."""

import pytest

from gpuplan.catalog.model.unavailable_machines import sale_notice
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types


@pytest.mark.parametrize(
    ("provider", "name", "restricted"),
    [
        ("aws", "p3.2xlarge", True),
        ("aws", "p3.16xlarge", True),
        ("aws", "p3dn.24xlarge", False),
        ("aws", "p4d.24xlarge", False),
        ("gcp", "p3.2xlarge", False),
    ],
)
def test_p3_is_sold_to_accounts_that_already_use_it(provider: str, name: str, restricted: bool) -> None:
    assert (sale_notice(provider, name) is not None) is restricted


def test_what_is_restricted_is_still_in_the_catalogue_and_not_retired() -> None:
    restricted = [
        instance_type
        for instance_type in embedded_instance_types()
        if sale_notice(instance_type.provider, instance_type.name)
    ]
    assert [item.name for item in restricted] == ["p3.16xlarge", "p3.2xlarge", "p3.8xlarge"]
    assert not any(item.retired for item in restricted)
