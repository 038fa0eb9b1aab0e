"""`import gpuplan`: the same answers as the command line, as typed objects, and errors that name the field."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest

import gpuplan
from gpuplan.api.cli.main import main
from gpuplan.api.python.service import service

ROOT = Path(__file__).resolve().parents[3]
RESNET: dict[str, Any] = {
    "name": "resnet-50",
    "workload": {"kind": "preset", "model": "resnet-50", "samples": "115M"},
    "start": "2026-07-10T00:00Z",
    "deadline": "36h",
}


def planned(job: Any = RESNET, **options: Any) -> gpuplan.Plan:
    planned_job = gpuplan.plan(job, **options)
    assert isinstance(planned_job, gpuplan.Plan)
    return planned_job


def infeasible() -> gpuplan.Infeasible:
    infeasible_job = gpuplan.plan({**RESNET, "budget_usd": 0.01})
    assert isinstance(infeasible_job, gpuplan.Infeasible)
    return infeasible_job


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints with --json, without what changes by the clock."""
    main([*arguments, "--json"])
    return without_meta(json.loads(capsys.readouterr().out))


def without_meta(answer: Any) -> Any:
    return {name: part for name, part in answer.items() if name != "meta"}


@pytest.fixture
def job_file(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(RESNET), encoding="utf-8")
    return str(path)


def test_importing_gpuplan_loads_no_library_and_no_other_module_of_its_own() -> None:
    code = (
        "import sys; before = set(sys.modules); import gpuplan; new = set(sys.modules) - before;"
        "foreign = {name.partition('.')[0] for name in new} - sys.stdlib_module_names - {'gpuplan'};"
        "print(sorted(foreign), sorted(name for name in new if name.startswith('gpuplan.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"


def test_every_public_name_is_there_and_listed_and_no_other() -> None:
    assert all(getattr(gpuplan, name).__name__ == name for name in gpuplan.__all__)
    assert set(gpuplan.__all__) <= set(dir(gpuplan))
    with pytest.raises(AttributeError, match=r"no attribute 'paln'; it has .*plan"):
        _ = gpuplan.paln


def test_a_plan_is_typed() -> None:
    assert_type(gpuplan.plan(RESNET), gpuplan.Plan | gpuplan.Infeasible)
    plan = planned()
    assert_type(plan.cost_usd.expected, Decimal)
    assert plan.cost_usd.expected == Decimal(plan.to_dict()["plan"]["cost_usd"]["expected"])
    assert plan.hours.expected <= plan.hours.p95
    assert plan.phases[0].nodes >= 1
    assert plan.start == datetime(2026, 7, 10, tzinfo=UTC)
    assert plan.outcome == "planned"


def test_a_plan_is_that_of_the_command_line_whichever_way_the_job_is_given(
    job_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = printed(capsys, "plan", job_file, "--frontier")
    for job in (RESNET, gpuplan.Job(**RESNET), gpuplan.Job.from_file(job_file), job_file, Path(job_file)):
        assert without_meta(planned(job).to_dict()) == wanted
    assert without_meta(planned(frontier=False).to_dict()) == printed(capsys, "plan", job_file)


def test_estimate_and_why_are_those_of_the_command_line(job_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    estimate = gpuplan.estimate(RESNET, on="A100", gpus=8, layout="zero=1")
    assert estimate.to_dict() == printed(
        capsys, "estimate", job_file, "--on", "A100", "--gpus", "8", "--layout", "zero=1"
    )
    assert gpuplan.estimate(RESNET, on={"accelerator": "A100", "gpus": 8, "layout": {"zero_stage": 1}}) == estimate
    why = gpuplan.why(RESNET, not_="H100")
    assert without_meta(why.to_dict()) == printed(capsys, "why", job_file, "--not", "H100")
    assert why.is_feasible
    assert "H100" in why.summary[0]
    assert why.why["about"] is not None


def test_an_estimate_is_typed_also_where_the_job_does_not_fit() -> None:
    fits = gpuplan.estimate(RESNET, on="A100", gpus=8)
    assert fits.memory.fits
    assert fits.hours is not None
    assert fits.band is not None
    assert fits.band.low_hours < fits.hours < fits.band.high_hours
    assert "steady training on 8 x A100" in str(fits)
    large = {"workload": {"kind": "preset", "model": "llama-3-70b", "tokens": "1B"}}
    too_large = gpuplan.estimate(large, on="T4", gpus=1)
    assert not too_large.memory.fits
    assert too_large.hours is not None  # of the layout that needs least memory, as if it fitted
    assert "does not fit" in str(too_large)


def test_values_of_python_stand_for_the_text_of_a_job_file() -> None:
    start = datetime(2026, 7, 10, tzinfo=UTC)
    mine = {
        "name": "resnet-50",
        "workload": {"kind": "preset", "model": "resnet-50", "samples": np.int64(115_000_000)},
        "start": start,
        "deadline": timedelta(hours=36),
    }
    assert planned(mine) == planned()
    assert planned(gpuplan.Job(**mine)) == planned()
    assert planned({**mine, "deadline": start + timedelta(hours=36)}) == planned()


def test_a_plan_has_the_short_text_of_the_command_line(job_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(frontier=False)
    main(["plan", job_file])
    *lines, _ = capsys.readouterr().out.rstrip().splitlines()
    *mine, last = str(plan).splitlines()
    assert mine == lines
    assert last == f"{plan.id}; all of it: .details() or .to_dict()"
    assert "Alternatives" in plan.details()


def test_an_infeasible_job_is_an_answer_that_says_what_conflicts() -> None:
    answer = infeasible()
    assert answer.outcome == "infeasible"
    assert ("budget_usd",) in answer.conflicts
    assert answer.relaxations[0].cost_usd > 0
    assert str(answer).startswith("No plan meets the requirements of resnet-50")
    assert answer.to_dict()["outcome"] == "infeasible"
    assert "budget_usd" in answer.details()


def test_what_to_dict_gives_may_be_changed_without_changing_the_plan() -> None:
    plan = planned()
    plan.to_dict()["plan"]["phases"].clear()
    assert plan.to_dict()["plan"]["phases"]


def test_a_plan_is_saved_under_its_id_unless_that_is_not_wanted() -> None:
    saved, other = planned(), planned(frontier=False, save=False)
    assert service().plans.saved_document(saved.id)["plan"]["id"] == saved.id
    with pytest.raises(gpuplan.UnusableInput, match=other.id):
        service().plans.saved(other.id)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({**RESNET, "deadlin": "7d"}, "deadlin: unknown key; did you mean deadline?"),
        ({"workload": {"kind": "preset", "model": "resnet-5", "samples": 1}}, "workload.model: "),
        ({**RESNET, "deadline": timedelta(0)}, "deadline: "),
        ("no-such-file.yaml", "job: cannot read 'no-such-file.yaml'"),
        (3, "job: int is no job; give a gpuplan.Job"),
    ],
)
def test_a_job_that_cannot_be_used_is_refused_at_its_field(wrong: Any, message: str) -> None:
    with pytest.raises(gpuplan.UnusableInput) as refused:
        gpuplan.plan(wrong)
    assert str(refused.value).startswith(message)
    assert refused.value.faults[0].field == message.partition(":")[0]


def test_a_job_object_is_checked_when_it_is_made() -> None:
    with pytest.raises(gpuplan.UnusableInput, match="deadlin: unknown key; did you mean deadline"):
        gpuplan.Job(**RESNET, deadlin="7d")
    job = gpuplan.Job(**RESNET)
    assert job.deadline == 36.0
    assert job.training.optimizer == "adamw"


def test_a_configuration_that_is_given_twice_is_refused() -> None:
    with pytest.raises(gpuplan.UnusableInput, match=r"gpus: is given in `on` and as gpus="):
        gpuplan.estimate(RESNET, on={"accelerator": "A100", "gpus": 8}, gpus=4)


def test_a_changed_settings_file_counts_from_the_next_question_on(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("goodput: 0.9\n", encoding="utf-8")
    before = planned(settings=settings)
    settings.write_text("goodput: 0.45\n", encoding="utf-8")
    after = planned(settings=settings)
    assert (before.settings["goodput"], after.settings["goodput"]) == (0.9, 0.45)


def test_a_changed_environment_counts_from_the_next_question_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPLAN_SETTINGS", str(tmp_path / "none.yaml"))
    with pytest.raises(gpuplan.UnusableInput, match="settings: cannot read"):
        planned()
    monkeypatch.delenv("GPUPLAN_SETTINGS")
    planned()
