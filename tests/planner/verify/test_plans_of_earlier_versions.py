"""A plan of three phases, made by the version that still planned them, is read and verified."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpuplan.api.exports.export_formats import exports
from gpuplan.api.schemas.job import parse_job
from gpuplan.planner.model.verification import Verification
from gpuplan.planner.performance.fitted_constants import trying
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.phased.test_migration_costs import rig
from tests.planner.test_what_may_be_chosen import market, offer
from tests.planner.verify.answers import Document, checked, snapshot_columns, tampered

#: Made on 2026-11-23 by the commit before the third phase went: an own machine in both of its windows, the cloud between.
ANSWER: Document = json.loads((Path(__file__).parent / "three_phases.json").read_text(encoding="utf-8"))
#: Hours of the whole work on the rented machine, of which the windows were made.
WHOLE = 15.61607249099078
RIG = rig((0.0, WHOLE / 3), (WHOLE * 0.8, WHOLE * 1.4))
OFFERED = market(offer(usd=20.0))
COLUMNS = snapshot_columns(list(OFFERED.instance_types), list(OFFERED.offers))
#: What that version assumed and had fitted, where its estimates of this job differ from today's.
SETTINGS = replaced_at_once(goodput=0.8, setup_hours=0.25)
CONSTANTS = {
    ("stack_share", "architecture Ampere"): 0.7722,
    ("class_matmul", "explicit"): 0.9,
    ("explicit_share", "architecture Ampere"): 1.0,
    ("hidden_tax", ""): 0.1051,
    ("hop_seconds", ""): 2.068e-05,
    ("band_sigma", "explicit"): 0.4,
}


def verification(answer: Document) -> Verification:
    job = parse_job(answer["plan"]["job"], now=datetime(2026, 11, 23, tzinfo=UTC))
    with trying(CONSTANTS):
        return checked(answer, job, COLUMNS, settings=SETTINGS, owned=(RIG,))


def test_a_plan_of_three_phases_is_verified() -> None:
    assert len(ANSWER["plan"]["phases"]) == ANSWER["plan"]["job"]["constraints"]["max_phases"] == 3
    assert any("up to 3 phases" in line for line in ANSWER["plan"]["certificate"]["over"])
    # Which alternatives a plan names has changed since; everything else is checked as it was.
    assert verification(ANSWER).wrong == ()


def test_estimates_of_another_version_are_named_as_such() -> None:
    job = parse_job(ANSWER["plan"]["job"], now=datetime(2026, 11, 23, tzinfo=UTC))
    wrong = checked(ANSWER, job, COLUMNS, settings=SETTINGS, owned=(RIG,)).wrong
    hours = [finding for finding in wrong if finding.figure == "phases[0].training_hours"]
    assert [finding.why for finding in hours] == ["not the estimate of this release for this machine"]
    assert not {"identity", "snapshot", "prices", "cost", "carbon"} & {finding.check for finding in wrong}


def test_three_phases_for_a_job_that_states_two_are_refused() -> None:
    changed = tampered(ANSWER, ("job", "constraints", "max_phases"), 2)
    assert any(finding.why == "more phases than constraints.max_phases" for finding in verification(changed).wrong)


@pytest.mark.parametrize("share", [0.2, 0.3])
def test_a_changed_share_of_the_third_phase_is_named(share: float) -> None:
    assert verification(tampered(ANSWER, ("phases", 2, "share"), share)).wrong


def test_the_job_of_such_a_plan_is_read_as_one_of_two_phases_with_a_notice() -> None:
    job = parse_job(ANSWER["plan"]["job"], now=datetime(2026, 11, 23, tzinfo=UTC))
    assert job.constraints.max_phases == 2
    assert any("max_phases of 3 is read as 2" in assumption for assumption in job.assumptions)


def test_such_a_plan_is_exported_phase_by_phase() -> None:
    assert len(exports(ANSWER, to="slurm")) == 3
