"""Why offers were left out: what is kept for jobs of another length is what each of them would have been told alone."""

from dataclasses import replace

import pytest

from planner.job import Preset
from tests.planner.phases.cases import found_for, rented_case


@pytest.mark.parametrize("most_accelerators", [None, 1, 8])
@pytest.mark.parametrize("seed", range(4))
def test_a_job_is_told_the_same_whichever_jobs_were_asked_about_before(
    seed: int, most_accelerators: int | None
) -> None:
    job, columns, _ = rented_case(seed)
    job = replace(job, constraints=replace(job.constraints, max_accelerators=most_accelerators))
    lengths = (1e9, 3e9, 1e16, 2e9)
    asked = [replace(job, workload=Preset(model="llama-3-8b", tokens=each)) for each in lengths]
    after_others = [found_for(each, columns).rejected for each in asked]
    alone = [found_for(each, replace(columns)).rejected for each in asked]
    assert after_others == alone
    assert any(after_others)
