"""Explicit work: totals pass through, missing fields become stated assumptions, values out of range are refused."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Explicit, Training
from gpuplan.planner.workload import MOST_FLOPS, work_of

FULL = Training()


def test_totals_pass_through_in_units_of_steps() -> None:
    explicit = Explicit(
        total_flops=1e21,
        memory_gib=500,
        min_memory_gib_per_accelerator=8,
        bytes_moved=1e18,
        parameters=7e9,
        steps=2000,
    )
    work = work_of(explicit, FULL)
    assert (work.unit, work.units_total, work.units_per_step) == ("steps", 2000, 1)
    assert work.total_flops == pytest.approx(1e21)
    assert work.vector_bytes_per_unit * work.steps == pytest.approx(1e18)
    assert work.fixed_state_gib == 500
    assert work.min_memory_gib_per_accelerator == 8
    assert work.trainable_parameters == 7e9
    assert work.assumptions == ()


def test_missing_fields_are_stated_as_assumptions() -> None:
    work = work_of(Explicit(total_flops=1e18, memory_gib=4), FULL)
    assert work.steps == 1000
    assumptions = " ".join(work.assumptions)
    assert "1,000 optimizer steps assumed" in assumptions
    assert "bytes_moved not given" in assumptions
    assert "parameters not given" in assumptions


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"total_flops": 1e40}, "workload.total_flops"),
    ({"total_flops": 0.0}, "workload.total_flops"),
    ({"total_flops": -1e18}, "workload.total_flops"),
    ({"total_flops": float("nan")}, "workload.total_flops"),
    ({"total_flops": float("inf")}, "workload.total_flops"),
    ({"memory_gib": 0.0}, "workload.memory_gib"),
    ({"memory_gib": 1e12}, "workload.memory_gib"),
    ({"min_memory_gib_per_accelerator": -1.0}, "workload.min_memory_gib_per_accelerator"),
    ({"bytes_moved": 0.0}, "workload.bytes_moved"),
    ({"parameters": 1e30}, "workload.parameters"),
    ({"steps": 0.5}, "workload.steps"),
]


@pytest.mark.parametrize(("changes", "field"), REFUSED)
def test_absurd_totals_are_refused_by_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        work_of(Explicit(**({"total_flops": 1e18, "memory_gib": 4.0} | changes)), FULL)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_the_bound_on_flops_says_why() -> None:
    with pytest.raises(UnusableInput, match="largest published runs"):
        work_of(Explicit(total_flops=1e40, memory_gib=4), FULL)


@given(st.floats(1.0, MOST_FLOPS), st.floats(1.0, 1e12))
@example(MOST_FLOPS, 153.70024490356445)
def test_steps_divide_the_flops_and_nothing_is_lost(total_flops: float, steps: float) -> None:
    work = work_of(Explicit(total_flops=total_flops, memory_gib=1, steps=steps), FULL)
    assert work.total_flops == pytest.approx(total_flops)
