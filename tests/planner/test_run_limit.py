"""The run limit of a phase: the later of the deadline and 1.5 x its 95 % quantile, and what it costs by then."""

import pytest

from catalog.price_kinds import price_kinds
from planner.run_limit import cost_micros, limit_hours, p95_of_phase, with_run_limits
from tests.api.export.documents import Document, answer, in_phases, phase

ON_DEMAND = price_kinds()["on_demand"]
COSTS = {"compute": 1_980_000_000, "setup": 10_000_000, "storage": 3_000_000, "power": 0, "egress": 7_000_000}


@pytest.mark.parametrize(
    ("p95", "deadline", "hours"), [(100.0, None, 150), (100.0, 149.0, 150), (100.0, 160.0, 160), (0.1, None, 1)]
)
def test_the_limit_is_the_later_of_the_deadline_and_half_as_long_again_as_19_in_20_runs(
    p95: float, deadline: float | None, hours: int
) -> None:
    assert limit_hours(p95_hours=p95, deadline_hours=deadline, kind=ON_DEMAND) == hours


def test_machines_that_are_lent_for_a_week_end_with_it() -> None:
    assert limit_hours(p95_hours=400.0, deadline_hours=None, kind=price_kinds()["flex_start"]) == 168


def test_the_cost_at_the_limit_is_machines_and_storage_for_all_of_it_and_egress_once() -> None:
    found = cost_micros(
        160.5, nodes=2, usd_micros_per_node_hour=12_345_600, expected_hours=80.25, costs=COSTS, kind=ON_DEMAND
    )
    assert found == 2 * 12_345_600 * 160.5 + 2 * 3_000_000 + 7_000_000


def test_a_commitment_costs_its_term_whatever_runs() -> None:
    kind = price_kinds()["reserved_1y"]
    found = cost_micros(
        160.5, nodes=2, usd_micros_per_node_hour=12_345_600, expected_hours=80.25, costs=COSTS, kind=kind
    )
    assert found == 1_990_000_000 + 2 * 3_000_000 + 7_000_000


def test_a_phase_is_late_as_the_plan_is_and_a_standby_for_all_of_it() -> None:
    assert p95_of_phase(hours=60.0, expected=80.0, p95=100.0, switches=False) == 75.0
    assert p95_of_phase(hours=60.0, expected=80.0, p95=100.0, switches=True) == 100.0


def test_a_plan_states_the_limit_of_every_phase_and_the_sum_of_their_costs() -> None:
    plan: Document = with_run_limits(in_phases()["plan"], 120.0)
    assert [row["run_limit"]["hours"] for row in plan["phases"]] == [120, 150, 150]
    costs = [float(row["run_limit"]["cost_usd"]) for row in plan["phases"]]
    assert float(plan["run_limit"]["cost_usd"]) == pytest.approx(sum(costs))
    alone = with_run_limits(answer(phase(nodes=16, hours=100.0))["plan"], None)["phases"][0]["run_limit"]
    assert alone["hours"] == 187
    assert float(alone["cost_usd"]) == pytest.approx(16 * 12.3456 * 187 + 3.000001 * 1.87 + 7)
