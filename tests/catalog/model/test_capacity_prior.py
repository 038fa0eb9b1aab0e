"""The table of chances says what it should: newer, larger and spot are never easier to get."""

from itertools import pairwise

from gpuplan.catalog.model.capacity_prior import AGE_CLASSES, TABLE, capacity_prior
from gpuplan.catalog.model.data_tables import data_table


def test_newer_accelerators_and_more_nodes_are_never_easier_to_get() -> None:
    prior = capacity_prior()
    for kinds in (prior.spot, prior.on_demand):
        for older, newer in pairwise(AGE_CLASSES):
            assert kinds[newer].chance <= kinds[older].chance
            assert kinds[newer].node_exponent >= kinds[older].node_exponent >= 0


def test_spot_is_never_easier_to_get_than_on_demand() -> None:
    prior = capacity_prior()
    for age in AGE_CLASSES:
        spot, on_demand = prior.spot[age], prior.on_demand[age]
        assert spot.chance < on_demand.chance <= 1
        assert spot.node_exponent >= on_demand.node_exponent - 0.01
        assert spot.size_exponent >= on_demand.size_exponent


def test_an_age_class_follows_from_the_years() -> None:
    prior = capacity_prior()
    assert [prior.age_class(introduced=2020, year=year) for year in (2020, 2022, 2023, 2024, 2025, 2030)] == [
        "newest",
        "newest",
        "current",
        "current",
        "old",
        "old",
    ]


def test_every_row_has_a_source_and_a_date() -> None:
    for row in data_table(TABLE):
        assert row["source"].startswith(("fitted", "assumption", "stated rule"))
        assert row["as_of"]
