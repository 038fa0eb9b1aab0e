"""Standard output of a real process under a solver that prints, in Python, to descriptor 1 and through C's own buffer."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GPUPLAN = (sys.executable, "-m", "gpuplan.api.cli.main")
ROOT = Path(__file__).resolve().parents[2]

#: Imported by Python as it starts: every solver that is made prints, as highspy 1.16 does.
CHATTY = """
import ctypes, os, sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder


class Finder(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "highspy":
            return None
        spec = PathFinder.find_spec(name, path)
        usual = spec.loader.exec_module
        def chatty(module):
            usual(module)
            made = module.Highs.__init__
            def make(self, *arguments, **options):
                print("chatter of Python")
                os.write(1, b"chatter to descriptor 1\\n")
                libc = ctypes.CDLL(None)
                libc.puts(b"chatter of C")
                libc.fflush(None)
                libc.puts(b"chatter of C that is still in its buffer")
                made(self, *arguments, **options)
            module.Highs.__init__ = make
        spec.loader.exec_module = chatty
        return spec


sys.meta_path.insert(0, Finder())
"""
WAYS = ("chatter of Python", "chatter to descriptor 1", "chatter of C\n", "chatter of C that is still in its buffer")

JOB: dict[str, Any] = {
    "name": "tuning",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "deadline": "48h",
    "constraints": {"max_nodes": 2, "providers": ["aws"], "price_kinds": ["on_demand"], "accelerators": ["A10G"]},
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, embedded_store: Path) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("chatty")
    (folder / "sitecustomize.py").write_text(CHATTY, encoding="utf-8")
    store = folder / "gpuplan.sqlite3"
    store.write_bytes(embedded_store.read_bytes())
    return os.environ | {"PYTHONPATH": str(folder), "GPUPLAN_DATABASE_URL": f"sqlite:///{store}"}


def ended(environment: dict[str, str], *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*GPUPLAN, *map(str, arguments)]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options
    )


def jobs_of(count: int) -> dict[str, Any]:
    """Jobs that wait for each other, so that the portfolio's own model is solved."""
    quota = {"provider": "aws", "accelerators": 4}
    jobs = [JOB | {"name": f"job-{i}", "value": 500} for i in range(count)]
    return {"start": "2026-11-21T12:00Z", "slot": "2h", "quotas": [quota], "jobs": jobs}


@pytest.mark.parametrize(
    ("words", "document", "part"),
    [
        (["portfolio", "-", "--json", "--iterations", "20"], jobs_of(4), "portfolio"),
        (["buy", "examples/forecasts/home.yaml", "--json"], {}, "decision"),
    ],
)
def test_an_answer_in_json_is_json_whatever_a_solver_prints(
    environment: dict[str, str], words: list[str], document: dict[str, Any], part: str
) -> None:
    done = ended(environment, *words, input=json.dumps(document))
    assert done.returncode == 0, done.stderr
    assert part in json.loads(done.stdout)
    for way in WAYS:
        assert way in done.stderr
    assert "chatter" not in done.stdout


def test_tables_and_help_stand_alone_on_standard_output(environment: dict[str, str]) -> None:
    shown = ended(environment, "plan", "-", input=json.dumps(JOB))
    assert shown.stdout.startswith("Cheapest for tuning")
    for way in WAYS:
        assert way in shown.stderr
    assert "chatter" not in shown.stdout
    asked = ended(environment, "plan", "--help")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout


def test_every_line_that_an_agent_hears_is_a_message(environment: dict[str, str]) -> None:
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "plan", "arguments": {"job": JOB}}},
    )
    with subprocess.Popen(
        [*GPUPLAN, "mcp"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        heard = []
        for message in messages:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            if "id" in message:
                heard.append(json.loads(process.stdout.readline()))
        rest, errors = process.communicate(timeout=60)
    assert [message["id"] for message in heard] == [1, 2]
    assert heard[1]["result"]["structuredContent"]["outcome"] == "planned"
    assert rest == ""
    assert process.returncode == 0
    for way in WAYS:
        assert way in errors


def test_a_process_without_standard_error_keeps_its_answer_clean(environment: dict[str, str]) -> None:
    command = [*GPUPLAN, "plan", "-", "--json"]
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" 2>&-', "sh", *command],
        env=environment,
        input=json.dumps(JOB),
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["outcome"] == "planned"
