"""The command line: exit codes, one clear line per fault, and nothing but JSON where JSON is asked for."""

import csv
import io
import json
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.cli import plan as plan_command
from gpuplan.api.cli.listening_socket import listen
from gpuplan.api.cli.main import main
from gpuplan.api.security.web_addresses import is_loopback
from gpuplan.catalog.runtime.errors import StoreFailure

Run = Callable[..., Any]
Write = Callable[..., Path]
CSV_HEADER = (
    "provider,region,zone,instance_type,accelerator,accelerator_count,price_kind,usd_per_hour,observed_at,source"
)


def test_a_plan_is_found_and_printed_for_people(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    ended = run("plan", job_file(job))
    assert ended.code == 0
    assert ended.err == ""
    for part in ("Cheapest for llama-3-8b-lora", "rent", "cost", "time", "deadline", "Alternatives", "--details"):
        assert part in ended.out
    assert "\x1b" not in ended.out


def test_details_print_the_whole_answer(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    ended = run("plan", job_file(job), "--details")
    assert ended.code == 0
    for part in ("Cheapest for llama-3-8b-lora", "Cost", "Why nothing is cheaper", "Time and risk", "Assumptions"):
        assert part in ended.out


def test_a_saved_plan_is_shown_in_short_and_whole(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    plan_id = json.loads(run("plan", job_file(job), "--json").out)["plan"]["id"]
    assert f"{plan_id}; full answer: add --details" in run("show", plan_id).out
    assert "Time and risk" in run("show", plan_id, "--details").out


def test_presets_are_listed_and_found_by_a_word(run: Run) -> None:
    every = json.loads(run("presets", "--json").out)["presets"]
    assert len(every) > 100
    lines = run("presets", "LLAMA").out.splitlines()
    names = {row["name"] for row in every if "llama" in row["name"]}
    assert names <= {line.split()[0] for line in lines if line}
    assert not any(line.startswith("resnet-50 ") for line in lines)
    row = next(line for line in lines if line.startswith("llama-3-8b "))
    assert "8,030" in row
    assert "language" in row
    refused = run("presets", "no-such-model")
    assert (refused.code, refused.out) == (2, "")
    assert "'no-such-model'" in refused.err


def test_a_shell_completes_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_GPUPLAN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "gpuplan pres")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 0


def test_json_is_exactly_one_object_and_the_same_plan(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    first, second = (json.loads(run("plan", job_file(job), "--json").out) for _ in range(2))
    assert first["outcome"] == "planned"
    assert first["plan"] == second["plan"]
    assert {"created_at", "milliseconds", "price_age_days"} <= set(first["meta"])


def test_no_plan_is_an_answer_with_its_own_code(run: Run, job_file: Write, hopeless: dict[str, Any]) -> None:
    ended = run("plan", job_file(hopeless), "--json")
    assert (ended.code, json.loads(ended.out)["outcome"]) == (4, "infeasible")
    infeasible = run("plan", job_file(hopeless))
    assert infeasible.code == 4
    assert "No plan meets" in infeasible.out


def test_a_job_can_come_on_standard_input(run: Run, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(job).encode())))
    assert run("plan", "-", "--json").code == 0


def test_a_frontier_is_shown_when_asked_for(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    assert "Cost against time" in run("plan", job_file(job), "--frontier").out
    assert "Cost against time" not in run("plan", job_file(job)).out


def test_a_saved_plan_is_shown_as_it_was_given(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    answer = json.loads(run("plan", job_file(job), "--json").out)
    again = run("show", answer["plan"]["id"], "--json")
    assert again.code == 0
    assert json.loads(again.out)["plan"] == answer["plan"]


def test_an_estimate_answers_without_prices(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    ended = run("estimate", job_file(job), "--on", "H100", "--gpus", 8, "--layout", "fsdp", "--json")
    answer = json.loads(ended.out)
    assert ended.code == 0
    assert answer["layout"]["zero_stage"] == 3
    assert "Step time by component" in run("estimate", job_file(job), "--on", "H100", "--gpus", 8).out


def test_offers_are_filtered_and_csv_has_its_fixed_columns(run: Run) -> None:
    wanted = ("--provider", "aws", "--accelerator", "H100", "--region", "us-*", "--geography", "us")
    ended = run("offers", *wanted, "--format", "csv")
    assert ended.out.splitlines()[0] == CSV_HEADER
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert rows
    assert {(row["provider"], row["accelerator"], row["region"][:3]) for row in rows} == {
        ("aws", "H100-80GB-SXM", "us-")
    }


def test_offers_come_as_json_and_as_a_table(run: Run) -> None:
    given = ("offers", "--instance-type", "p5.48xlarge", "--kind", "on_demand")
    rows = json.loads(run(*given, "--format", "json").out)["offers"]
    assert {row["instance_type"] for row in rows} == {"p5.48xlarge"}
    assert f"{len(rows)} offers in snapshot" in run(*given).out


def test_accelerators_are_listed(run: Run) -> None:
    rows = json.loads(run("accelerators", "--json").out)["accelerators"]
    assert "H100-80GB-SXM" in {row["name"] for row in rows}
    assert "H100-80GB-SXM" in run("accelerators").out


def test_the_version_is_said(run: Run) -> None:
    assert run("version").out.startswith("gpuplan ")


def test_help_lists_the_commands_and_no_command_is_help(run: Run) -> None:
    for arguments in ((), ("--help",)):
        ended = run(*arguments)
        assert ended.code == 0
        assert all(name in ended.out for name in ("plan", "estimate", "offers", "accelerators", "show", "serve"))


def test_help_on_profiles_says_what_a_factory_may_give(run: Run) -> None:
    help_text = " ".join(run("profile", "--help").out.split())
    assert all(form in help_text for form in ("(module, loss)", "(generator, discriminator)", "step(*modules, *inputs"))


UNUSABLE_JOBS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": ({"deadlin": "3d"}, "deadlin"),
    "a unit that is none": ({"deadline": "7 dogs"}, "deadline"),
    "a negative deadline": ({"deadline": "-3h"}, "deadline"),
    "a deadline in the past": ({"deadline": "2020-01-01T00:00Z"}, "deadline"),
    "a confidence above one": ({"confidence": 1.5}, "confidence"),
    "a budget of nothing": ({"budget_usd": 0}, "budget_usd"),
    "a budget that is no number": ({"budget_usd": float("nan")}, "budget_usd"),
    "an endless budget": ({"budget_usd": float("inf")}, "budget_usd"),
    "an unknown preset": ({"workload": {"kind": "preset", "model": "lama-3-8b", "tokens": 1e9}}, "workload.model"),
    "absurd work": (
        {"workload": {"kind": "explicit", "total_flops": 1e40, "memory_gib": 1}},
        "workload.total_flops",
    ),
    "an unknown accelerator": ({"constraints": {"accelerators": ["H1000"]}}, "constraints.accelerators[0]"),
    "a region that nobody has": ({"constraints": {"regions": ["atlantis-*"]}}, "constraints.regions"),
}


@pytest.mark.parametrize("case", UNUSABLE_JOBS)
def test_an_unusable_job_is_one_line_that_names_the_field(
    case: str, run: Run, job_file: Write, job: dict[str, Any]
) -> None:
    change, field = UNUSABLE_JOBS[case]
    ended = run("plan", job_file(job | change))
    assert (ended.code, ended.out) == (2, "")
    [line] = ended.err.splitlines()
    assert line.startswith(f"gpuplan: {field}")
    assert "Traceback" not in line


def test_heads_that_do_not_divide_the_model_are_refused(run: Run, job_file: Write) -> None:
    shape = {"layers": 2, "hidden_size": 100, "ffn_size": 400, "attention_heads": 7, "vocabulary_size": 1000}
    workload = {"kind": "transformer", **shape, "sequence_length": 128, "tokens": 1e9}
    ended = run("plan", job_file({"workload": workload}))
    assert ended.code == 2
    assert ended.err.startswith("gpuplan: workload.attention_heads: ")


def test_every_fault_gets_its_line(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    ended = run("plan", job_file(job | {"deadline": "7 dogs", "budget_usd": -1}))
    assert [line.split(":")[1].strip() for line in ended.err.splitlines()] == ["deadline", "budget_usd"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02", "binary"),
        (b"\xff\xfe\xfa", "UTF-8"),
        (b"name: " + b"x" * 10_000_000, "1 MiB"),
        (b"a: &a [x]\nb: [*a, *a]\n", "not accepted"),
        (b"deadline: [", "line"),
        (b"- a list", "mapping"),
    ],
)
def test_a_file_that_is_no_document_is_refused_in_one_line(
    run: Run, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(content)
    ended = run("plan", path)
    assert ended.code == 2
    [line] = ended.err.splitlines()
    assert message in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "absent.yaml"), "job: cannot read 'absent.yaml': No such file"),
        (("plan", "."), "directory"),
        (("plan",), "JOB"),
        (("plam",), "plam"),
        (("offers", "--colour", "red"), "--colour"),
        (("offers", "--format", "xml"), "xml"),
        (("offers", "--provider", "amazon"), "provider: 'amazon' matches nothing; accepted, e.g.: "),
        (("offers", "--region", "atlantis-*"), "region: "),
        (("offers", "--geography", "mars"), "geography: 'mars' is no geography; accepted: africa"),
        (("offers", "--kind", "on_demnd"), "on_demand"),
        (("offers", "--accelerator", "H1000"), "accelerator: unknown accelerator"),
        (("offers", "--instance-type", "p5.49xlarge"), "p5.48xlarge"),
        (("offers", "--snapshot", "feed"), "snapshot: "),
        (("offers", "--inventory", "absent.yaml"), "inventory: cannot read"),
        (("show", "no-such-plan"), "plan: no plan 'no-such-plan'"),
        (("serve", "--port", "99999"), "65535"),
    ],
)
def test_a_wrong_command_is_refused_in_one_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    [line] = ended.err.splitlines()
    assert line.startswith("gpuplan: ")
    assert message in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--on", "H1000", "--gpus", "8"), "accelerator"),
        (("--on", "H100", "--gpus", "0"), "gpus: "),
        (("--on", "H100", "--gpus", "8", "--gpus-per-node", "3"), "gpus_per_node: "),
        (("--on", "H100", "--gpus", "8", "--layout", "tq=2"), "layout"),
        (("--on", "H100", "--gpus", "8", "--layout", "tp=3"), "layout: "),
        (("--on", "H100", "--gpus", "8", "--internode-gbps", "nan"), "internode_gbps: "),
    ],
)
def test_an_unusable_configuration_is_refused(
    run: Run, job_file: Write, job: dict[str, Any], options: tuple[str, ...], message: str
) -> None:
    ended = run("estimate", job_file(job), *options)
    assert ended.code == 2
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1


def test_an_inventory_with_an_unknown_gpu_is_refused(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    inventory = job_file({"machines": [{"name": "box", "accelerator": "RTX 3091", "count": 1}]}, "inventory.yaml")
    ended = run("plan", job_file(job), "--inventory", inventory)
    assert ended.code == 2
    assert "machines[0].accelerator" in ended.err


@pytest.mark.parametrize("damage", [b"this is no database at all, but long enough to have a header" * 20, b"SQLite"])
def test_a_store_that_failed_has_its_own_code(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    path = tmp_path / "broken.sqlite3"
    path.write_bytes(damage)
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", f"sqlite:///{path}")
    ended = run("offers")
    assert ended.code == 3
    [line] = ended.err.splitlines()
    assert str(path) in line


def test_a_store_of_a_newer_release_is_left_alone(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "newer.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE alembic_version (version_num TEXT)")
        database.execute("INSERT INTO alembic_version VALUES ('9999')")
        database.commit()
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", f"sqlite:///{path}")
    ended = run("offers")
    assert ended.code == 3
    assert "newer" in ended.err


def test_owned_machines_stand_among_the_offers(run: Run, job_file: Write) -> None:
    machine = {"name": "box", "accelerator": "RTX 3090", "count": 2, "usd_per_hour": 0.4, "power_watts": 900}
    site = {"machines": [machine | {"electricity_usd_per_kwh": 0.3}]}
    given = ("offers", "--inventory", job_file(site, "inventory.yaml"), "--format", "json")
    rows = json.loads(run(*given, "--provider", "local").out)["offers"]
    assert [(row["accelerator"], row["accelerator_count"], row["price_kind"]) for row in rows] == [
        ("RTX-3090", 2, "owned")
    ]
    assert {row["provider"] for row in json.loads(run(*given).out)["offers"]} > {"aws", "azure", "gcp", "local"}


def test_each_answer_leaves_at_once() -> None:
    with closing(listen("127.0.0.1", 0)) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_interrupting_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: list[str]) -> dict[str, Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(plan_command, "read_job_or_words", interrupted)
    assert run("plan", "job.yaml") == (130, "", "")


def test_a_failure_that_spans_lines_is_told_in_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: str) -> dict[str, Any]:
        raise StoreFailure("first\nsecond \x1b[31m")

    monkeypatch.setattr(plan_command, "read_job_or_words", fail)
    assert main(["plan", "job.yaml"]) == 3
    assert capsys.readouterr().err == "gpuplan: first\\nsecond \\x1b[31m\n"


def test_names_are_never_taken_for_markup(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    name = "[bold red]x[/] [link=file:///etc]y[/link] :skull: [/nonsense]"
    ended = run("plan", job_file(job | {"name": name}))
    assert ended.code == 0
    assert name in " ".join(ended.out.split())


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("127.8.8.8", True),
        ("0.0.0.0", False),
        ("example.org", False),
    ],
)
def test_only_loopback_counts_as_this_machine(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone
