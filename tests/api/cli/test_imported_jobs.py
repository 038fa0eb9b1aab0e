"""`gpuplan plan --from`, `gpuplan import`, and a job in words."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from gpuplan.api.cli.main import main
from gpuplan.api.imports.reading import read_text
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from tests.api.imports.config_texts import LLAMA_FACTORY


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "run.yaml"
    path.write_text(LLAMA_FACTORY)
    return str(path)


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text("workload: {kind: preset, model: llama-3-8b, tokens: 2B}\n")
    return str(path)


def test_a_configuration_is_planned_and_what_was_understood_is_said(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--from", config, "--samples", "10k", "--gpus", "4", "--by", "3d"]) == 0
    printed = capsys.readouterr()
    assert "Cheapest for llama-3-8b" in printed.out
    assert "read run.yaml (LLaMA-Factory)" in printed.err
    assert "the global batch is held" in printed.err


def test_the_job_file_of_an_import_is_the_job_that_is_planned(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", config, "--tokens", "1B", "--gpus", "8"]) == 0
    job = tmp_path / "job.yaml"
    job.write_text(capsys.readouterr().out)
    assert main(["import", config, "--tokens", "1B", "--gpus", "8", "--json"]) == 0
    assert read_document(job.read_text(), name="job.yaml") == json.loads(capsys.readouterr().out)["job"]
    assert main(["plan", str(job)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "nothing.yaml"], "is not there"),
        (["--tokens", "2B", "job.yaml"], "belongs to --from"),
        ([], "give a job file"),
        (["llama-3-8b", "tokns=1B"], "did you mean tokens"),
        (["--from", "no-owner/no-model", "--tokens", "1B"], "give --model NAME"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_words_state_a_job_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "llama-3-8b", "tokens=3B", "by=14d"]) == 0
    assert " for llama-3-8b, from " in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["why", "replan", "capacity", "watch add --channel team", "estimate --on H100 --gpus 8", "methods"]
)
def test_words_stand_wherever_a_job_file_may(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["llama-3-8b", "by=14d"], "tokens: is missing"),
        (["llama-3-8b", "tokns=1B"], "did you mean tokens"),
    ):
        assert main([*command.split(), *words]) == 2
        assert message in capsys.readouterr().err


def test_an_estimate_of_words_is_that_of_the_job_file(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for given in (["llama-3-8b", "tokens=2B"], [job]):
        assert main(["estimate", *given, "--on", "H100", "--gpus", "8", "--json"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_values_that_say_what_they_set_need_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    bare = ["Qwen/Qwen3-8B", "lora", "tokens=200M", "by=30d", "nvidia", "spot", "gcp", "azure"]
    full = [
        "Qwen/Qwen3-8B",
        "method=lora",
        "tokens=200M",
        "by=30d",
        "vendors=nvidia",
        "kinds=spot",
        "providers=gcp,azure",
    ]
    jobs = []
    for words in (bare, full):
        assert main(["plan", *words, "start=2026-12-01T00:00Z", "--json"]) == 0
        jobs.append(json.loads(capsys.readouterr().out)["plan"]["job"])
    assert jobs[0] == jobs[1]
    assert jobs[0]["training"]["method"] == "lora"
    assert jobs[0]["constraints"]["vendors"] == ["NVIDIA"]
    assert main(["plan", "llama-3-8b", "lora", "qlora", "tokens=1B"]) == 2
    assert "method: is given twice, as 'lora' and 'qlora'" in capsys.readouterr().err
    assert main(["plan", "Qwen/Qwen3-8B"]) == 2
    assert "workload.tokens: is missing" in capsys.readouterr().err


def test_a_config_of_another_tool_is_planned_as_it_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("job.sbatch", SBATCH), ("train.yaml", LLAMA_FACTORY)):
        (tmp_path / name).write_text(text)
        answers = []
        for words in ([str(tmp_path / name)], ["--from", str(tmp_path / name)]):
            code = main(["plan", *words, "--tokens", "1B"])
            answered = capsys.readouterr()
            answers.append((code, answered.err, answered.out.splitlines()[:2]))
        assert answers[0] == answers[1]
        assert answers[0][0] == 0
    (tmp_path / "job.yaml").write_text("workload: {kind: preset, modle: llama-3-8b}\n")
    assert main(["plan", str(tmp_path / "job.yaml")]) == 2
    assert "workload.modle" in capsys.readouterr().err


@pytest.mark.parametrize("second", ["tokens=3B", "other.yaml"])
def test_a_job_file_stands_alone(second: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.yaml").write_text("workload: {kind: preset, model: llama-3-8b, tokens: 3e9}\n")
    assert main(["plan", str(tmp_path / "job.yaml"), second]) == 2
    error = capsys.readouterr().err
    assert f"takes one job file and no words with it; '{second}' follows" in error
    assert error.count("\n") == 1


SBATCH = """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gres=gpu:a100:8
#SBATCH --time=2-00:00:00
srun torchrun --nnodes 4 --nproc_per_node 8 train.py --model_name_or_path meta-llama/Meta-Llama-3-8B \\
  --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_steps 4000 --bf16 True \\
  --max_seq_length 4096 --packing True
"""


def test_the_machines_of_a_launch_script_are_priced_beside_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.sbatch").write_text(SBATCH)
    assert main(["plan", "--from", str(tmp_path / "job.sbatch"), "--json"]) == 0
    answered = capsys.readouterr()
    answer = json.loads(answered.out)
    spent = float(answer["plan"]["cost_usd"]["expected"])
    digest = hashlib.sha256(SBATCH.encode()).hexdigest()
    assert answer["meta"]["source"] == f"job.sbatch (sbatch script), sha256 {digest}"
    assert main(["show", answer["plan"]["id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["meta"]["source"] == answer["meta"]["source"]
    line = answered.err.splitlines()[-1]
    match = re.fullmatch(
        r"job.sbatch asks for 4 x 8 a100: (.+) and \$([\d,.]+) on 4 x (\S+), .+, on demand, \$([\d,.]+) at its limit of 2 d; "
        r"the plan costs (\d+) % less",
        line,
    )
    assert match is not None, line
    usd, at_limit = (float(match[number].replace(",", "")) for number in (2, 4))
    assert match[5] == f"{100 * (1 - spent / usd):.0f}"
    snapshot = embedded_snapshot()
    accelerators = {type_.name: (type_.accelerator, type_.accelerator_count) for type_ in snapshot.instance_types}
    assert accelerators[match[3]][0].startswith("A100")
    assert accelerators[match[3]][1] == 8
    price = min(
        offer.usd_micros_per_hour / 1e6
        for offer in snapshot.offers
        if offer.instance_type == match[3] and offer.price_kind == "on_demand"
    )
    assert at_limit == pytest.approx(price * 4 * 48, abs=0.01)


def test_machines_that_nobody_sells_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for stated, message in (
        ("gpu:a100:7", "which nobody in the catalogue sells in machines of 7"),
        ("gpu:qqq:8", "are not priced: resources.accelerators: unknown accelerator 'qqq'"),
    ):
        (tmp_path / "job.sbatch").write_text(SBATCH.replace("gpu:a100:8", stated))
        assert main(["plan", "--from", str(tmp_path / "job.sbatch")]) == 0
        assert message in capsys.readouterr().err


def test_a_machine_that_a_wrapper_names_is_priced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lf.yaml").write_text(LLAMA_FACTORY)
    task = tmp_path / "task.yaml"
    for machine, message in (
        ("p5.48xlarge", "task.yaml asks for 2 x p5.48xlarge: "),
        ("p9.none", "task.yaml asks for 2 x p9.none, which nobody in the catalogue sells on demand"),
    ):
        run = "llamafactory-cli train lf.yaml"
        task.write_text(f"resources:\n  instance_type: {machine}\nnum_nodes: 2\nrun: |\n  {run}\n")
        assert main(["plan", "--from", str(task), "--samples", "10k", "--gpus", "16"]) == 0
        assert message in capsys.readouterr().err


def test_the_selector_of_pods_names_their_machine() -> None:
    pod = "{nodeSelector: {node.kubernetes.io/instance-type: p5.48xlarge}, containers: [{command: [torchrun, t.py], resources: {limits: {nvidia.com/gpu: 8}}}]}"
    facts = read_text(
        f"apiVersion: batch/v1\nkind: Job\nspec: {{parallelism: 3, template: {{spec: {pod}}}}}\n", "j.yaml"
    )
    assert facts.machines is not None
    assert (facts.machines.instance_type, facts.machines.per_node, facts.machines.nodes) == ("p5.48xlarge", 8, 3)
