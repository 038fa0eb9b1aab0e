"""Configurations of other tools as text: through the service, HTTP, and the page."""

from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.imports.pasted_text import IncompleteConfigError, pasted_job
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.imports.config_texts import LLAMA_FACTORY

SCRIPT = "#!/bin/bash\naccelerate launch --config_file acc.yaml train.py conf/sft.yaml\n"


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Services:
    path = tmp_path_factory.mktemp("imports") / "gpuplan.db"
    return open_services(Environment(database_url=f"sqlite:///{path}"))


def test_a_script_is_followed_to_the_texts_that_were_handed_over_and_to_no_file(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acc.yaml").write_text("num_processes: 64\n")
    monkeypatch.chdir(tmp_path)
    answer = services.imports.read(
        {"files": {"run.sh": SCRIPT, "conf/sft.yaml": LLAMA_FACTORY}, "samples": "50k", "gpus": 8}
    )
    assert answer.missing == ()
    assert answer.missing_files == ("acc.yaml",)
    assert answer.facts["method"].from_.startswith("conf/sft.yaml:")
    assert "num_processes" not in str(answer.facts)
    assert services.plans.plan(answer.job, save=False).outcome == "planned"


def test_what_is_missing_is_named(services: Services) -> None:
    answer = services.imports.read({"files": {"sft.yaml": LLAMA_FACTORY}})
    assert [one.field for one in answer.missing] == ["tokens"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "files: is missing"),
        ({"files": {}}, "files: .* 1 to 16 texts"),
        ({"files": {"a.yaml": 3}}, "files: 'a.yaml' is not accepted"),
        ({"files": {str(i): "" for i in range(17)}}, "files: .* 1 to 16 texts"),
        ({"files": {"a.yaml": "x: 1"}}, "has no format that is known"),
        ({"files": {"a.yaml": "x: 1"}, "tokn": 1}, "tokn: unknown key"),
        ({"files": {"a.yaml": "x: 1"}, "gpus": 0}, "gpus: "),
    ],
)
def test_what_cannot_be_read_is_refused_by_field(services: Services, document: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        services.imports.read(document)


def test_a_pasted_configuration_is_a_job_or_says_what_it_lacks() -> None:
    job = {"workload": {"kind": "preset", "model": "gpt2", "tokens": 1e9}}
    assert pasted_job("workload: {kind: preset, model: gpt2, tokens: 1.0e+9}", "the job file") == job
    with pytest.raises(IncompleteConfigError) as incomplete:
        pasted_job(LLAMA_FACTORY, "the job file")
    assert [fault.path for fault in incomplete.value.faults] == [("workload", "tokens")]
    assert "# Missing: tokens" in incomplete.value.job_file
    completed = pasted_job(
        incomplete.value.job_file.replace("workload:", "workload:\n  tokens: 1.0e+9", 1), "the job file"
    )
    assert completed["workload"]["tokens"] == 1e9
    with pytest.raises(UnusableInput, match="not valid YAML"):
        pasted_job("a: [", "the job file")
    assert pasted_job("name: x", "the job file") == {"name": "x"}
