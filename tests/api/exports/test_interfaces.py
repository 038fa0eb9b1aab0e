"""Exports from the command line and over HTTP: files, their names, and refusals in one line."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from gpuplan.api.exports.export_formats import FORMATS
from gpuplan.api.services.composition import Services
from gpuplan.planner.model.wire import wire
from tests.api.exports.documents import answer, in_phases, phase

Run = Callable[..., Any]


@pytest.fixture
def plan_file(tmp_path: Path) -> Callable[[Any], Path]:
    def write(document: Any) -> Path:
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def saved(gpuplan: Services) -> dict[str, Any]:
    """A plan that the planner made and the store keeps."""
    job = {
        "name": "lora: $(id)",
        "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
        "training": {"method": "lora", "precision": "bf16"},
        "start": "2026-11-21T12:00Z",
        "deadline": "36h",
        "constraints": {"max_nodes": 8, "max_phases": 1, "providers": ["aws"], "vendors": ["nvidia"]},
    }
    plan: dict[str, Any] = wire(gpuplan.plans.plan(job))["plan"]
    return plan


def test_a_saved_plan_and_the_file_of_it_give_the_same_export(
    run: Run, saved: dict[str, Any], plan_file: Callable[[Any], Path], gpuplan: Services
) -> None:
    by_id = run("export", saved["id"], "--to", "slurm")
    by_file = run("export", plan_file(gpuplan.plans.saved_document(saved["id"])), "--to", "slurm")
    assert (by_id.code, by_id.out) == (0, by_file.out)
    assert by_id.out.startswith("#!/bin/bash\n#SBATCH --job-name=lora-id-")


def test_over_http_it_is_the_same_file_under_a_harmless_name(
    run: Run, client: httpx.Client, saved: dict[str, Any]
) -> None:
    for to, kind in (("slurm", "text/x-shellscript"), ("skypilot", "application/yaml"), ("focus", "text/csv")):
        response = client.get(f"/v1/plans/{saved['id']}/export/{to}")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(kind)
        assert response.headers["content-disposition"].startswith('attachment; filename="')
        assert not set(response.headers["content-disposition"]) & set("/\\$\n'")
        assert response.text.replace("\r\n", "\n") == run("export", saved["id"], "--to", to).out.replace("\r\n", "\n")


def test_the_command_and_the_image_are_the_users(client: httpx.Client, saved: dict[str, Any]) -> None:
    query = {"command": "python -m mine --x '$HOME'", "image": "ghcr.io/me/train:1"}
    exported = client.get(f"/v1/plans/{saved['id']}/export/dstack", params=query).text
    assert "--module mine --x '$HOME'" in exported
    assert "image: ghcr.io/me/train:1" in exported


@pytest.mark.parametrize(
    ("path", "status", "within", "pointer"),
    [
        ("plan-00000000000000000000/export/slurm", 404, "path", "/plan"),
        ("{id}/export/helm", 404, "path", "/format"),
        ("{id}/export/gcloud", 422, "query", "/phase"),
        ("{id}/export/slurm?phase=2", 422, "query", "/phase"),
        ("{id}/export/slurm?phase=x", 422, "query", "/phase"),
        ("{id}/export/slurm?command=%27", 422, "query", "/command"),
        ("{id}/export/slurm?shell=sh", 422, "query", "/shell"),
        ("{id}/export/focus?phase=1", 422, "query", "/phase"),
    ],
)
def test_what_cannot_be_given_is_a_problem_that_names_the_field(
    client: httpx.Client, saved: dict[str, Any], path: str, status: int, within: str, pointer: str
) -> None:
    response = client.get("/v1/plans/" + path.format(id=saved["id"]))
    assert response.status_code == status
    (error,) = response.json()["errors"]
    assert (error["in"], error["pointer"]) == (within, pointer)


def test_phases_become_numbered_files(run: Run, plan_file: Callable[[Any], Path], tmp_path: Path) -> None:
    document = plan_file(in_phases())
    assert run("export", document, "--to", "slurm", "--output", tmp_path / "run.sbatch").code == 0
    assert sorted(path.name for path in tmp_path.glob("run-*")) == ["run-1.sbatch", "run-2.sbatch", "run-3.sbatch"]
    ended = run("export", document, "--to", "slurm")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("gpuplan: phase: is missing: every phase has its own file")
    assert run("export", document, "--to", "slurm", "--phase", "2").code == 0


def test_configurations_of_terraform_get_a_folder_each(
    run: Run, plan_file: Callable[[Any], Path], tmp_path: Path
) -> None:
    document = plan_file(answer(phase(), phase("azure", starts_at="2026-12-01T00:00:00Z")))
    assert run("export", document, "--to", "terraform", "--output", tmp_path / "run.tf.json").code == 0
    assert json.loads((tmp_path / "run-1" / "main.tf.json").read_text())["provider"] == {"aws": {"region": "us-east-1"}}
    assert json.loads((tmp_path / "run-2" / "main.tf.json").read_text())["provider"] == {"azurerm": {"features": {}}}


def test_into_a_folder_files_go_under_their_own_names(
    run: Run, plan_file: Callable[[Any], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    assert run("export", plan_file(in_phases("../../etc")), "--to", "jobset", "--output", folder).code == 0
    assert sorted(path.name for path in folder.iterdir()) == [f"etc-012345-{n}.jobset.yaml" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "helm"), "to: 'helm' is not accepted; write one of skypilot, dstack, terraform"),
        (("--to", "slurm", "--phase", "9"), "phase: 9 is not accepted; the plan has one phase, 1"),
        (("--to", "slurm", "--command", "'"), 'command: "\'" is not accepted: No closing quotation'),
        (("--to", "slurm", "--output", "/nowhere/at/all"), "output: cannot write '/nowhere/at/all'"),
        (
            ("--to", "az"),
            "phase: phase 1 cannot be exported: it runs on Amazon Web Services, but the Azure CLI supports only",
        ),
    ],
)
def test_unusable_input_is_one_line_and_exit_code_two(
    run: Run, plan_file: Callable[[Any], Path], arguments: tuple[str, ...], message: str
) -> None:
    ended = run("export", plan_file(answer()), *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"gpuplan: {message}")
    assert ended.err.count("\n") == 1


def test_an_infeasible_answer_has_nothing_to_start(run: Run, plan_file: Callable[[Any], Path]) -> None:
    ended = run("export", plan_file({"outcome": "infeasible", "infeasible": {}}), "--to", "slurm")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("gpuplan: outcome: is infeasible, so there is nothing to export")


def test_every_command_of_the_documentation_runs(
    run: Run, plan_file: Callable[[Any], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[3] / "docs" / "exports.md").read_text(encoding="utf-8")
    assert all(f"| `{to}` |" in text for to in FORMATS)
    lines = text.replace("\\\n", " ").splitlines()
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("$ gpuplan export ")]
    assert len(commands) == 4
    plan_file(in_phases())
    monkeypatch.chdir(tmp_path)
    for words in commands:
        assert run(*words[1:]).code == 0


def test_the_run_limit_and_the_place_for_checkpoints_are_the_plans_unless_the_user_says_otherwise(
    run: Run, client: httpx.Client, saved: dict[str, Any]
) -> None:
    days, hours = divmod(saved["phases"][0]["run_limit"]["hours"], 24)
    plain = run("export", saved["id"], "--to", "slurm").out
    assert f"\n# Run limit: {24 * days + hours} h from the start of the machines, which costs at most $" in plain
    assert f"#SBATCH --time={days}-{hours:02}:00:00\n" in plain
    assert "NO LOCATION IS SET (SET_DATA_CHECKPOINTS), so this refuses to run" in plain
    asked = {"run_limit": "50h", "checkpoints": "s3://my-bucket/mine"}
    exported = client.get(f"/v1/plans/{saved['id']}/export/slurm", params=asked).text
    assert "\n# Run limit: 50 h from" in exported
    assert "#SBATCH --time=2-02:00:00\n" in exported
    assert "\n# Checkpoints: s3://my-bucket/mine; the run resumes" in exported
    by_hand = run("export", saved["id"], "--to", "slurm", "--run-limit", "50h", "--checkpoints", asked["checkpoints"])
    assert by_hand.out == exported


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--run-limit", "10min", "run_limit: '10min' is not accepted; write at least 1 h"),
        ("--run-limit", "soon", "run_limit: 'soon' is not a duration"),
        ("--checkpoints", "bucket", "checkpoints: 'bucket' is not a checkpoint location; write s3://bucket/path"),
    ],
)
def test_a_limit_or_a_place_that_cannot_be_is_one_line(
    run: Run, plan_file: Callable[[Any], Path], option: str, value: str, message: str
) -> None:
    ended = run("export", plan_file(answer()), "--to", "slurm", option, value)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"gpuplan: {message}")
