"""The run limit of a phase: the later of the deadline and 1.5 x its 95 % quantile, and what it costs by then."""

from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter

from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.cost.run_limit import cost_micros, limit_hours, p95_of_phase, with_run_limits
from gpuplan.planner.model.shared import Hours, Phase
from tests.api.exports.documents import Document, in_phases, phase

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
    micros = cost_micros(
        160.5, nodes=2, usd_micros_per_node_hour=12_345_600, expected_hours=80.25, costs=COSTS, kind=ON_DEMAND
    )
    assert micros == 2 * 12_345_600 * 160.5 + 2 * 3_000_000 + 7_000_000


def test_a_commitment_costs_its_term_whatever_runs() -> None:
    kind = price_kinds()["reserved_1y"]
    micros = cost_micros(
        160.5, nodes=2, usd_micros_per_node_hour=12_345_600, expected_hours=80.25, costs=COSTS, kind=kind
    )
    assert micros == 1_990_000_000 + 2 * 3_000_000 + 7_000_000


def test_a_phase_is_late_as_the_plan_is_and_a_standby_for_all_of_it() -> None:
    assert p95_of_phase(hours=60.0, expected=80.0, p95=100.0, switches=False) == 75.0
    assert p95_of_phase(hours=60.0, expected=80.0, p95=100.0, switches=True) == 100.0


def typed(*rows: Document) -> tuple[Phase, ...]:
    """Phases as a plan has them; what their limits do not rest on is the same everywhere."""
    rest = {
        "price_observed_at": "2026-11-01T00:00:00Z",
        "price_observed_approximately": False,
        "price_source": "a price list",
        "training_hours": 50.0,
        "hours_with_goodput": 60.0,
        "throughput": {"value": 1e5, "unit": "tokens/s"},
        "mfu": 0.4,
        "memory_gib_per_accelerator": 40.0,
        "capacity_gib_per_accelerator": 79.0,
        "log_sigma": 0.1,
        "interruptions_per_node_hour": 0.0,
        "modelled": (),
        "moved": None,
    }
    return TypeAdapter(tuple[Phase, ...]).validate_python(tuple(row | rest for row in rows))


def test_a_plan_states_the_limit_of_every_phase_and_the_sum_of_their_costs() -> None:
    hours = Hours(expected=80.25, median=80.0, confident=90.0, p95=100.0)
    start = datetime(2026, 11, 28, 12, tzinfo=UTC)
    phases, whole = with_run_limits(typed(*in_phases()["plan"]["phases"]), hours, start, 120.0)
    limits = [phase.run_limit for phase in phases if phase.run_limit is not None]
    assert [limit.hours for limit in limits] == [120, 150, 150]
    assert whole.cost_usd == sum(limit.cost_usd for limit in limits)
    (alone,), _ = with_run_limits(typed(phase(nodes=16, hours=100.0)), hours, start, None)
    assert alone.run_limit is not None
    assert alone.run_limit.hours == 187
    assert float(alone.run_limit.cost_usd) == pytest.approx(16 * 12.3456 * 187 + 3.000001 * 1.87 + 7)
