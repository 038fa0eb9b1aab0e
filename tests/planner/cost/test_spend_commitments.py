"""Existing savings plans in the plan of one job: the nodes that they cover, and the inputs that are refused."""

from dataclasses import replace
from typing import Any

import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.cost.spend_commitments import with_spending
from gpuplan.planner.model.settings import Discount, ExistingCommitment, ExistingSpendCommitment, PlannerSettings
from tests.planner.procurement.small import catalogue
from tests.planner.spot_settings import replaced_at_once

COLUMNS = catalogue(on_demand=2.0, savings_plan_1y=1.2)
PLAN = ExistingSpendCommitment(provider="aws", price_kind="savings_plan_1y", usd_per_hour=5.0)


def nodes(settings: PlannerSettings) -> list[int]:
    return [commitment.nodes for commitment in with_spending(settings, COLUMNS).held]


@pytest.mark.parametrize(("usd", "covered"), [(1.19, []), (1.2, [1]), (5.0, [4]), (12.0, [10])])
def test_a_plan_pays_for_as_many_whole_nodes_as_its_dollars_cover(usd: float, covered: list[int]) -> None:
    existing_spend_commitment = ExistingSpendCommitment(provider="aws", price_kind="savings_plan_1y", usd_per_hour=usd)
    assert nodes(replaced_at_once(held_spend=(existing_spend_commitment,))) == covered


def test_two_plans_count_together_and_named_nodes_stay_as_they_are() -> None:
    assert nodes(replaced_at_once(held_spend=(PLAN, PLAN))) == [8]
    named = ExistingCommitment(
        provider="aws", region="us-east-1", instance_type="g6.xlarge", price_kind="savings_plan_1y", nodes=2
    )
    assert nodes(replaced_at_once(held_spend=(PLAN,), held=(named,))) == [2]


def test_the_rate_is_the_negotiated_one() -> None:
    rate = Discount(instance_type="g6.xlarge", price_kind="savings_plan_1y", usd_per_hour=1.0)
    assert nodes(replaced_at_once(held_spend=(PLAN,), discounts=(rate,))) == [5]


def test_settings_that_were_widened_once_are_not_widened_again() -> None:
    widened = with_spending(replaced_at_once(held_spend=(PLAN,)), COLUMNS)
    assert with_spending(widened, COLUMNS) == widened


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"price_kind": "savings_plan_3y"}, "no rates of savings_plan_3y on aws"),
        ({"region": "eu-west-1"}, "regions us-east-1"),
        ({"family": "p5"}, "families g6"),
    ],
)
def test_a_plan_that_covers_nothing_is_refused_with_what_there_is(changes: dict[str, Any], message: str) -> None:
    savings_plan = replace(PLAN, **changes)
    with pytest.raises(UnusableInput) as refused:
        with_spending(replaced_at_once(held_spend=(savings_plan,)), COLUMNS)
    assert refused.value.faults[0].field == "settings.held_spend[0]"
    assert message in refused.value.faults[0].message
