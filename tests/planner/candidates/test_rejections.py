"""Rejection reasons of offers: cached ones equal those that a job gets without a cache."""

from dataclasses import replace

import pytest

from gpuplan.planner.model.job import Preset
from tests.planner.strategies.phased.cases import found_for, rented_case


@pytest.mark.slow(reason="12 cases")
@pytest.mark.parametrize("most_accelerators", [None, 1, 8])
@pytest.mark.parametrize("seed", range(4))
def test_a_job_is_told_the_same_whichever_jobs_were_asked_about_before(
    seed: int, most_accelerators: int | None
) -> None:
    job, columns, _ = rented_case(seed)
    job = replace(job, constraints=replace(job.constraints, max_accelerators=most_accelerators))
    lengths = (1e9, 3e9, 1e16, 2e9)
    asked = [replace(job, workload=Preset(model="llama-3-8b", tokens=length)) for length in lengths]
    after_others = [found_for(job, columns).rejected for job in asked]
    alone = [found_for(job, replace(columns)).rejected for job in asked]
    assert after_others == alone
    assert any(after_others)
