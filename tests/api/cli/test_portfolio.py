"""`gpuplan portfolio`: what it answers, what it leaves out and why, what it refuses."""

import io
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.cli.portfolio import _progress
from gpuplan.api.jobs.run_execution import reported_progress
from gpuplan.planner.model.wire import wire
from gpuplan.planner.portfolio.search_progress import Progress, Stage
from tests.api.conftest import Ended

pytestmark = pytest.mark.slow(reason="plans portfolios")

Run = Callable[..., Ended]
JobFile = Callable[..., Path]

START = "2026-11-21T12:00Z"
TUNING = {
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "constraints": {
        "max_nodes": 2,
        "max_phases": 1,
        "providers": ["aws"],
        "price_kinds": ["on_demand"],
        "accelerators": ["A10G"],
    },
}


def jobs(count: int, **changes: object) -> list[dict[str, Any]]:
    return [TUNING | {"name": f"job-{i}", "deadline": "48h"} | changes for i in range(count)]


def asked(run: Run, job_file: JobFile, document: dict[str, Any], *options: str) -> dict[str, Any]:
    ended = run(
        "portfolio", job_file({"start": START, "slot": "2h"} | document), "--json", "--time-limit", "5", *options
    )
    assert ended.code in (0, 4), ended.err
    answer: dict[str, Any] = json.loads(ended.out)["portfolio"]
    return answer


def test_jobs_without_limits_each_get_what_they_would_get_alone(run: Run, job_file: JobFile) -> None:
    alone = json.loads(run("plan", job_file(jobs(1)[0] | {"start": START}), "--json").out)["plan"]
    answer = asked(run, job_file, {"jobs": jobs(3)})
    assert [job["cost_usd"] for job in answer["jobs"]] == [alone["cost_usd"]["expected"]] * 3
    assert answer["certificate"]["proven"]
    assert answer["left_out"] == []


def test_a_quota_is_never_exceeded_and_makes_jobs_wait_or_move(run: Run, job_file: JobFile) -> None:
    free = asked(run, job_file, {"jobs": jobs(3)})
    size = max(job["nodes"] * job["accelerators_per_node"] for job in free["jobs"])
    quota = {"provider": "aws", "region": free["jobs"][0]["region"], "accelerators": size}
    answer = asked(run, job_file, {"jobs": jobs(3), "quotas": [quota]})
    busy = [job for job in answer["jobs"] if job["pools"]]
    times = sorted((job["starts_at"], job["finishes_by"], job["pools"][0]["units"]) for job in busy)
    assert all(a[1] <= b[0] or a[2] + b[2] <= size for a, b in itertools.pairwise(times))
    assert answer["pools"][0]["most_used"] <= size
    assert float(answer["cost_usd"]) >= float(free["cost_usd"]) - 1e-6


def test_a_quota_of_zero_leaves_a_job_out_and_says_what_would_let_it_in(run: Run, job_file: JobFile) -> None:
    ended = run(
        "portfolio",
        job_file({"start": START, "quotas": [{"provider": "aws", "vcpus": 0}], "jobs": jobs(1, value=5000)}),
        "--json",
    )
    answer = json.loads(ended.out)["portfolio"]
    assert ended.code == 4
    assert answer["jobs"] == []
    assert answer["left_out"][0]["name"] == "job-0"
    assert answer["left_out"][0]["reason"]
    assert answer["pools"][0]["utilisation"] is None


def test_a_job_that_is_worth_less_than_it_costs_is_left_out_and_its_price_named(run: Run, job_file: JobFile) -> None:
    answer = asked(run, job_file, {"jobs": [*jobs(1), TUNING | {"name": "cheap", "deadline": "48h", "value": 0.01}]})
    assert [job["name"] for job in answer["left_out"]] == ["cheap"]
    assert "its value is below its cheapest configuration" in answer["left_out"][0]["reason"]
    assert answer["certificate"]["left_out_usd"] == "0.01"


def test_a_budget_that_does_not_do_for_all_leaves_out_the_job_of_least_priority(run: Run, job_file: JobFile) -> None:
    one = float(asked(run, job_file, {"jobs": jobs(1)})["cost_usd"])
    mixed = [*jobs(1, priority=5), *[job | {"name": "minor"} for job in jobs(1)]]
    answer = asked(run, job_file, {"jobs": mixed, "budget_usd": 1.5 * one})
    assert [job["name"] for job in answer["left_out"]] == ["minor"]
    assert any("more budget" in way["change"] for way in answer["left_out"][0]["would_let_it_in"])
    assert float(answer["cost_usd"]) <= 1.5 * one


def test_jobs_start_after_their_release_and_are_done_by_their_deadline(run: Run, job_file: JobFile) -> None:
    answer = asked(run, job_file, {"jobs": jobs(1, release="2026-11-22T12:00Z", deadline="48h")})
    assert answer["jobs"][0]["starts_at"] >= "2026-11-22T12:00:00Z"
    assert answer["jobs"][0]["finishes_by"] <= "2026-11-24T12:00:00Z"


def test_a_deadline_in_hours_counts_from_the_portfolios_start_and_not_from_the_jobs_release(
    run: Run, job_file: JobFile
) -> None:
    answer = asked(run, job_file, {"jobs": jobs(1, release="20h", deadline="40h")})
    assert answer["jobs"][0]["starts_at"] >= "2026-11-22T08:00:00Z"
    assert answer["jobs"][0]["finishes_by"] <= "2026-11-23T04:00:00Z"
    assert answer["horizon_hours"] == 40
    as_a_time = asked(run, job_file, {"jobs": jobs(1, release="20h", deadline="2026-11-23T04:00Z")})
    assert as_a_time["jobs"] == answer["jobs"]


@pytest.mark.parametrize(("release", "deadline"), [("20h", "12h"), ("20h", "20h"), ("20h", "2026-11-22T00:00Z")])
def test_a_deadline_before_the_release_is_refused_by_its_field(
    run: Run, job_file: JobFile, release: str, deadline: str
) -> None:
    document = {"start": START, "slot": "2h", "jobs": [*jobs(1), *jobs(1, release=release, deadline=deadline)]}
    ended = run("portfolio", job_file(document))
    assert ended.code == 2
    after = "20" if deadline == "20h" else "12"
    assert ended.err.strip() == (
        f"gpuplan: jobs[1].deadline: {after} h after the portfolio's start is not after release, 20 h; "
        "both count from the portfolio's start: give a later deadline"
    )


def test_a_release_of_nothing_is_the_start(run: Run, job_file: JobFile) -> None:
    for release in (0, "0h"):
        answer = asked(run, job_file, {"jobs": jobs(1, release=release)})
        assert answer["jobs"][0]["starts_at"] == "2026-11-21T12:00:00Z"


def test_the_same_document_and_iterations_give_the_same_answer(run: Run, job_file: JobFile) -> None:
    document = {"quotas": [{"provider": "aws", "vcpus": 96}], "jobs": jobs(4)}
    one, two = (asked(run, job_file, document, "--iterations", "50") for _ in range(2))
    assert one == two


def test_quotas_of_the_settings_file_hold_beside_the_documents(
    run: Run, job_file: JobFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("quotas: [{provider: aws, accelerators: 0}]", encoding="utf-8")
    monkeypatch.setenv("GPUPLAN_SETTINGS", str(settings))
    answer = asked(run, job_file, {"jobs": jobs(1, value=100)})
    assert answer["pools"][0]["pool"] == "accelerators of all machines on aws"
    assert answer["jobs"] == []


def test_a_portfolio_reads_well_on_a_terminal(run: Run, job_file: JobFile) -> None:
    document = {
        "name": "november", "start": START, "quotas": [{"provider": "aws", "vcpus": 96}],
        "jobs": [*jobs(2), *jobs(1, value=0.01)],
    }  # fmt: skip
    shown = run("portfolio", job_file(document), "--time-limit", "5").out
    for part in ("november: 2 of 3 jobs run for", "Schedule", "Left out", "lower bound", "vCPUs of all machines"):
        assert part in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"jobs": []}, "jobs"),
        ({"jobs": [{"name": "x"}]}, "jobs[0].workload"),
        ({"quotas": [{"provider": "aws"}]}, "quotas[0].accelerators"),
        ({"quotas": [{"provider": "aws", "accelerators": -1}]}, "quotas[0].accelerators"),
        ({"quotas": [{"provider": "aws", "accelerators": 1, "family": "p5", "instance_type": "x"}]}, "quotas[0]"),
        ({"slot": "1m"}, "slot"),
        ({"horizon": "2000d", "slot": "1h"}, "slot"),
        ({"jobs": jobs(1, release="10d", deadline="11d"), "horizon": "5d"}, "jobs[0].release"),
        ({"jobs": jobs(1, release="2026-11-01T00:00Z")}, "jobs[0].release"),
        ({"jobs": jobs(1, start=START)}, "jobs[0].start"),
        ({"jobs": jobs(1, deadline="2026-11-01T00:00Z")}, "jobs[0].deadline"),
        ({"jobs": jobs(1, value=-5)}, "jobs[0].value"),
        ({"jobs": jobs(1, priority=1000)}, "jobs[0].priority"),
        ({"jobs": [{"name": "x"}] * 2001}, "2001"),
        ({"pool": 1}, "pool"),
    ],
)
def test_what_cannot_be_used_is_named_in_a_line(
    run: Run, job_file: JobFile, change: dict[str, Any], message: str
) -> None:
    ended = run("portfolio", job_file({"start": START, "jobs": jobs(1)} | change))
    assert ended.code == 2
    assert message in ended.err.splitlines()[0]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"job": []}, "jobs: is missing, and required; list at least one job"),
        ({"horizon": "soon"}, "jobs: is missing, and required; list at least one job"),
        ({"jobs": 3}, "jobs: 3 is not accepted; write a list of jobs"),
        (TUNING, "jobs: is missing: this is one job, not a portfolio; list jobs under jobs, or plan this one alone"),
    ],
)
def test_a_document_that_lists_no_jobs_is_told_what_a_portfolio_has(
    run: Run, job_file: JobFile, document: dict[str, Any], message: str
) -> None:
    ended = run("portfolio", job_file(document))
    assert ended.code == 2
    assert f"gpuplan: {message}" in ended.err.splitlines()


@pytest.mark.parametrize(
    ("command", "accepted"),
    [("portfolio", "a YAML or JSON file that lists jobs"), ("buy", "a YAML or JSON file of a forecast")],
)
def test_a_file_that_is_not_there_is_named_for_what_it_should_hold(run: Run, command: str, accepted: str) -> None:
    ended = run(command, "absent.yaml")
    what = {"portfolio": "portfolio", "buy": "forecast"}[command]
    assert (ended.code, ended.err.strip()) == (
        2,
        f"gpuplan: {what}: cannot read 'absent.yaml': No such file or directory; name {accepted}, or - for standard input",
    )


def test_a_hundred_thousand_jobs_and_a_time_limit_of_nothing_are_refused_at_once(run: Run, job_file: JobFile) -> None:
    too_many = run("portfolio", job_file({"jobs": [{"name": "x"}] * 100_000}))
    assert too_many.code == 2
    assert "jobs" in too_many.err or "large" in too_many.err
    none = run("portfolio", job_file({"jobs": jobs(1)}), "--time-limit", "0")
    assert none.code == 2
    assert "--time-limit" in none.err


def test_a_very_short_time_limit_still_gives_a_plan_and_says_how_sure_it_is(run: Run, job_file: JobFile) -> None:
    document = {"start": START, "quotas": [{"provider": "aws", "vcpus": 192}], "jobs": jobs(6)}
    answer = json.loads(run("portfolio", job_file(document), "--json", "--time-limit", "0.001").out)["portfolio"]
    assert len(answer["jobs"]) + len(answer["left_out"]) == 6
    assert 0 <= answer["certificate"]["gap"] <= 1


def test_where_a_job_was_not_looked_at_the_first_lines_say_that_of_the_whole_nothing_is_proven(
    run: Run, job_file: JobFile
) -> None:
    unlike = TUNING | {"name": "other", "deadline": "48h", "training": {"method": "full", "precision": "bf16"}}
    shown = run("portfolio", job_file({"start": START, "jobs": [*jobs(1), unlike]}), "--time-limit", "0.001").out
    first = shown.partition("Schedule")[0]
    assert "1 of 2 jobs run" in first
    assert "1 were not, so nothing is proven for all jobs" in " ".join(first.split())


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_before_there_is_a_plan_progress_names_the_jobs_looked_at_and_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    tell = _progress()
    assert tell is not None
    early = Progress(elapsed_s=1.0, stage=Stage.CONFIGURATIONS, jobs=300, jobs_seen=20)
    tell(early)
    assert "20 of 300 jobs evaluated" in terminal.getvalue()
    assert "evaluating the configurations of each job" in terminal.getvalue()
    assert "$" not in terminal.getvalue()
    document = wire(reported_progress(early))
    assert (document["cost_usd"], document["objective_usd"], document["gap"]) == (None, None, None)
    assert document["bound_usd"] == "0.00"
    assert (document["jobs_seen"], document["jobs_planned"], document["jobs_not_placed"]) == (20, 0, None)


def test_progress_tells_the_dollars_of_jobs_that_run_and_counts_the_others_without_their_penalties(
    run: Run, job_file: JobFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("gpuplan.api.cli.portfolio.SECONDS_BETWEEN_LINES", 0.0)
    unlike = TUNING | {"name": "impossible", "deadline": "48h", "budget_usd": 0.02, "value": 2400}
    document = {"start": START, "budget_usd": 140, "jobs": [*jobs(1, value=700), *jobs(1, value=2400), unlike]}
    answer = asked(run, job_file, document)
    (only,) = answer["jobs"]
    lines = terminal.getvalue().split("\r\x1b[K")
    with_a_plan = [line for line in lines if "not placed" in line]
    assert f"1 of 3 jobs run for ${float(only['cost_usd']):,.2f}, 2 not placed" in with_a_plan[-1]
    assert not any(word in line for line in lines for word in ("dive", "ruin", "columns", "700", "bound 8"))
