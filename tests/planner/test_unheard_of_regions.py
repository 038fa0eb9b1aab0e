"""A refresh may bring regions that opened after this release: they are planned on, and said to be unknown."""

from dataclasses import replace

from gpuplan.planner.model.job import Constraints, DataSource
from gpuplan.planner.model.outcome import NoPlan
from gpuplan.planner.planning import plan
from tests.planner.test_what_may_be_chosen import JOB, SETTINGS, market, offer, planned

NEW = "atlantis-1"
UNKNOWN = f"gpuplan does not know where aws:{NEW} lies"


def test_the_cheapest_offer_may_stand_in_a_region_that_no_table_knows() -> None:
    job = replace(JOB, data=DataSource(location="gcp:us-central1", dataset_gb=100.0))
    outcome = planned(market(offer(region=NEW, usd=10.0), offer()), job)
    assert outcome.phases[0].choice.offer.region == NEW
    assert any(warning.startswith(UNKNOWN) for warning in outcome.warnings)
    assert any(f"storage in aws:{NEW} is taken at the price of" in assumption for assumption in outcome.assumptions)
    assert outcome.cost.expected > 0


def test_a_known_region_is_not_said_to_be_unknown() -> None:
    outcome = planned(market(offer(region=NEW, usd=90.0), offer()))
    assert not any("does not know where" in warning for warning in outcome.warnings)


def test_a_geography_leaves_out_a_region_that_nobody_can_place_and_says_so() -> None:
    job = replace(JOB, constraints=Constraints(geography=("us",)))
    outcome = planned(market(offer(region=NEW, usd=1.0), offer()), job)
    assert outcome.phases[0].choice.offer.region == "us-east-1"
    warning_start = (
        f"constraints.geography leaves out aws:{NEW}: gpuplan does not know where they lie; name regions instead"
    )
    assert any(warning.startswith(warning_start) for warning in outcome.warnings)


def test_where_only_such_a_region_is_left_the_way_out_names_it() -> None:
    job = replace(JOB, constraints=Constraints(geography=("us",)))
    outcome = plan(job, market(offer(region=NEW)), settings=SETTINGS)
    assert isinstance(outcome, NoPlan)
    assert ("constraints.geography",) in outcome.conflicts
    assert any(f"aws:{NEW}" in warning for warning in outcome.warnings)


def test_such_a_region_can_be_named() -> None:
    job = replace(JOB, constraints=Constraints(regions=(NEW,)))
    assert planned(market(offer(region=NEW), offer(usd=1.0)), job).phases[0].choice.offer.region == NEW


def test_many_such_regions_are_counted() -> None:
    offers = [offer(region=f"atlantis-{i}") for i in range(9)]
    job = replace(JOB, constraints=Constraints(geography=("us",)))
    [warning_text] = [warning for warning in planned(market(offer(), *offers), job).warnings if "atlantis" in warning]
    assert "aws:atlantis-4 and 4 more:" in warning_text
