"""A refresh may bring regions that opened after this release: they are planned on, and said to be unknown."""

from dataclasses import replace

from planner.answer import Infeasible
from planner.job import Constraints, DataSource
from planner.plan import plan
from tests.planner.test_what_may_be_chosen import JOB, SETTINGS, market, offer, planned

NEW = "atlantis-1"
UNKNOWN = f"gpuplan does not know where aws:{NEW} lies"


def test_the_cheapest_offer_may_stand_in_a_region_that_no_table_knows() -> None:
    job = replace(JOB, data=DataSource(provider="gcp", region="us-central1", dataset_gb=100.0))
    found = planned(market(offer(region=NEW, usd=10.0), offer()), job)
    assert found.phases[0].choice.offer.region == NEW
    assert any(said.startswith(UNKNOWN) for said in found.warnings)
    assert any(f"storage in aws:{NEW} is taken at the price of" in said for said in found.assumptions)
    assert found.cost.expected > 0


def test_a_known_region_is_not_said_to_be_unknown() -> None:
    found = planned(market(offer(region=NEW, usd=90.0), offer()))
    assert not any("does not know where" in said for said in found.warnings)


def test_a_geography_leaves_out_a_region_that_nobody_can_place_and_says_so() -> None:
    job = replace(JOB, constraints=Constraints(geography=("us",)))
    found = planned(market(offer(region=NEW, usd=1.0), offer()), job)
    assert found.phases[0].choice.offer.region == "us-east-1"
    said = f"constraints.geography leaves out aws:{NEW}: gpuplan does not know where they lie; name regions instead"
    assert any(each.startswith(said) for each in found.warnings)


def test_where_only_such_a_region_is_left_the_way_out_names_it() -> None:
    job = replace(JOB, constraints=Constraints(geography=("us",)))
    found = plan(job, market(offer(region=NEW)), settings=SETTINGS)
    assert isinstance(found, Infeasible)
    assert ("constraints.geography",) in found.conflicts
    assert any(f"aws:{NEW}" in each for each in found.warnings)


def test_such_a_region_can_be_named() -> None:
    job = replace(JOB, constraints=Constraints(regions=(NEW,)))
    assert planned(market(offer(region=NEW), offer(usd=1.0)), job).phases[0].choice.offer.region == NEW


def test_many_such_regions_are_counted() -> None:
    offers = [offer(region=f"atlantis-{i}") for i in range(9)]
    job = replace(JOB, constraints=Constraints(geography=("us",)))
    [said] = [each for each in planned(market(offer(), *offers), job).warnings if "atlantis" in each]
    assert "aws:atlantis-4 and 4 more:" in said
