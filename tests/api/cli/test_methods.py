"""`gpuplan methods`: each row is the plan of the job with that method."""

import json
from datetime import datetime
from decimal import Decimal

import pytest

from gpuplan.api.cli.main import main

WORDS = ["llama-3-8b", "tokens=200M", "by=48h", "start=2026-12-01T00:00Z"]


def test_each_method_has_the_plan_of_the_job_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods", *WORDS, "rank=8", "adapters_on=query_value", "method=lora", "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)["methods"]
    assert list(compared) == ["full", "lora", "qlora"]
    for method in compared:
        adapters = [] if method == "full" else ["rank=8", "adapters_on=query_value"]
        assert main(["plan", *WORDS, f"method={method}", *adapters, "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        assert compared[method]["plan"] == alone["plan"]


def test_dpo_behind_each_method_has_the_rest_of_the_time_and_is_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["methods", *WORDS, "max=20", "--dpo", "10k"]
    assert main([*asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    for method, sft in answer["methods"].items():
        jobs = [one["plan"]["job"] for one in (sft, answer["dpo"][method])]
        assert jobs[0]["deadline"] + jobs[1]["deadline"] == pytest.approx(48, abs=0.01)
        begins = [datetime.fromisoformat(job["start"]) for job in jobs]
        assert (begins[1] - begins[0]).total_seconds() / 3600 == pytest.approx(jobs[0]["deadline"], abs=0.01)
        assert (jobs[1]["training"]["stage"], jobs[1]["workload"]["tokens"]) == ("dpo", 2 * 10_000 * 8192)
    assert main(asked) == 0
    text = capsys.readouterr().out
    for method in answer["methods"]:
        costs = [Decimal(of[method]["plan"]["cost_usd"]["expected"]) for of in (answer["methods"], answer["dpo"])]
        row = next(line for line in text.splitlines() if line.startswith(f"{method}, both"))
        assert f"${sum(costs):.2f}" in row
        assert ("above the budget of $20.00" in row) == (sum(costs) > 20)


def test_a_method_without_a_plan_says_why_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            ["methods", "llama-3-70b", "tokens=20M", "sequence=2048", "by=30d", "nodes=1", "RTX-4090", "vast", "runpod"]
        )
        == 0
    )
    rows = {
        line.split()[0]: line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith(("full", "lora", "qlora"))
    }
    assert "no plan:" in rows["full"]
    assert "$" in rows["qlora"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["resnet-50", "samples=1M"], "training.method: lora needs attention or feed-forward projections"),
        (["nothere.yaml"], "cannot read 'nothere.yaml'"),
        ([*WORDS, "--tokens", "1B"], "--tokens: belongs to --from"),
        ([*WORDS, "--dpo", "1 pair"], "dpo: '1 pair'"),
        (["bert-base", "tokens=1M", "method=full", "--dpo", "1k"], "training.stage: "),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["methods", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
