"""The real program: a process on the command line, a server on a socket."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.cli.test_examples_verified import VERIFIED
from tests.patience import until
from tests.ports import free_port

GPUPLAN = (sys.executable, "-m", "gpuplan.api.cli.main")
JOB: dict[str, Any] = {
    "name": "resnet-50",
    "workload": {"kind": "preset", "model": "resnet-50", "samples": "115M"},
    "start": "2026-11-21T12:00Z",
    "deadline": "36h",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("e2e")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GPUPLAN_")}
    return inherited | {"GPUPLAN_DATABASE_URL": f"sqlite:///{folder / 'gpuplan.sqlite3'}"}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("job") / "job.yaml"
    path.write_text(json.dumps(JOB), encoding="utf-8")
    return path


def ended(environment: dict[str, str], *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*GPUPLAN, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.fixture(scope="module")
def planned(environment: dict[str, str], job: Path) -> subprocess.CompletedProcess[str]:
    """The plan of the job, as JSON."""
    return ended(environment, "plan", job, "--json")


def test_a_fresh_machine_gets_a_plan(planned: subprocess.CompletedProcess[str]) -> None:
    assert (planned.returncode, planned.stderr) == (0, "")
    assert json.loads(planned.stdout)["outcome"] == "planned"


def test_a_terminal_that_knows_only_ascii_gets_an_answer(environment: dict[str, str], job: Path) -> None:
    done = ended(environment | {"PYTHONIOENCODING": "ascii"}, "plan", job)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Cheapest for resnet-50" in done.stdout


def test_unusable_input_ends_with_two_and_one_line(environment: dict[str, str], job: Path) -> None:
    done = ended(environment, "plan", "-", input=json.dumps(JOB | {"deadline": "7 dogs"}))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gpuplan: deadline: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error(environment: dict[str, str]) -> None:
    command = [*GPUPLAN, "offers", "--format", "csv"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"provider,")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def redirected(environment: dict[str, str], how: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command with its streams redirected by a shell: closed (`<&-`), or onto a full disk (`>/dev/full`)."""
    command = ["sh", "-c", f'exec "$@" {how}', "sh", *GPUPLAN, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_closed_standard_input_is_unusable_input(environment: dict[str, str]) -> None:
    done = redirected(environment, "<&-", "plan", "-")
    assert done.returncode == 2
    assert done.stderr == "gpuplan: job: standard input is closed; name a job file, or pipe a job in\n"


def test_a_plan_that_nobody_reads_is_still_made(environment: dict[str, str], job: Path) -> None:
    done = redirected(environment, ">&-", "plan", job)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_standard_error_keeps_the_exit_code(environment: dict[str, str]) -> None:
    assert redirected(environment, "2>&-", "plan", "no-such-job.yaml").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_full_disk_is_said_in_one_line(environment: dict[str, str]) -> None:
    done = redirected(environment, ">/dev/full", "offers")
    assert done.returncode == 3
    assert done.stderr.startswith("gpuplan: the answer could not be written")
    assert done.stderr.count("\n") == 1


def test_the_example_that_make_plans_is_one_whose_plan_is_verified() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    example = re.search(r"^JOB \?= (\S+)$", makefile, re.MULTILINE)
    assert example is not None
    assert example[1] in {f"examples/{name}.yaml" for name in VERIFIED}


@pytest.fixture(scope="module")
def service(environment: dict[str, str]) -> Iterator[str]:
    port = free_port()
    command = [*GPUPLAN, "serve", "--port", str(port)]
    # A run in the background of a shell ignores interrupts, and a child would inherit that.
    heeded = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=heeded,  # noqa: PLW1509 (nothing else runs in this process that the fork could meet half-way)
    ) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            _wait(url, process)
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"listening at {url}/".encode() in output


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    def ready() -> bool:
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        try:
            return httpx.get(f"{url}/readyz", timeout=60).raise_for_status().is_success
        except httpx.TransportError:
            return False

    until(ready)


def test_the_service_and_the_command_line_give_the_same_plan(
    service: str, planned: subprocess.CompletedProcess[str]
) -> None:
    printed = json.loads(planned.stdout)
    with httpx.Client(base_url=service, timeout=60) as client:
        answer = client.post("/v1/plans", json=JOB).json()
        assert answer["plan"] == printed["plan"]  # made anew, by a process whose sets have another order
        assert answer["meta"] != printed["meta"]
        assert client.get(f"/v1/plans/{printed['plan']['id']}").json()["plan"] == printed["plan"]


def test_the_service_answers_its_main_requests(service: str) -> None:
    with httpx.Client(base_url=service, timeout=60) as client:
        estimate = client.post("/v1/estimates", json={"job": JOB, "on": {"accelerator": "A100 80GB", "gpus": 8}})
        assert estimate.status_code == 200
        offers = client.get("/v1/offers", params={"accelerator": "A100 80GB", "limit": 5})
        assert len(offers.json()["offers"]) == 5
        problem = client.post("/v1/plans", json=JOB | {"deadline": "7 dogs"})
        assert (problem.status_code, problem.json()["errors"][0]["pointer"]) == (422, "/deadline")


def test_a_port_in_use_is_refused_in_one_line(service: str, environment: dict[str, str]) -> None:
    done = ended(environment, "serve", "--port", service.rpartition(":")[2])
    assert done.returncode == 2
    assert done.stderr.startswith("gpuplan: port: cannot listen")


def test_json_is_exact_where_the_terminal_knows_only_ascii(environment: dict[str, str]) -> None:
    given = json.dumps(JOB | {"name": "größer"})
    done = ended(environment | {"PYTHONIOENCODING": "ascii"}, "plan", "-", "--json", input=given)
    assert json.loads(done.stdout)["plan"]["job"]["name"] == "größer"
