"""Keys and values of a stranger's document in a refusal: one printable line each, whatever they hold."""

import copy
import io
import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gpuplan.api.cli.main import main
from gpuplan.catalog.runtime.errors import Fault, ProviderFailure, StoreFailure, UnusableInput, one_line

pytestmark = pytest.mark.slow(reason="reads many documents")

Document = dict[str, Any]
Step = str | int

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> Document:
    document: Document = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    return document


JOB: Document = {
    "name": "tuning",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "start": "2026-11-21T12:00Z",
    "deadline": "36h",
    "budget_usd": 5000,
    "constraints": {"max_nodes": 2, "providers": ["aws"], "regions": ["us-*"], "accelerators": ["A10G"]},
    "data": {"location": "aws:us-east-1", "dataset_gb": 10},
}
SETTINGS: Document = {
    "goodput": 0.85,
    "cost_basis": "marginal",
    "discounts": [{"provider": "gcp", "accelerator": "H100", "percent": 15}],
    "quotas": [{"provider": "aws", "region": "us-east-1", "family": "p5", "vcpus": 384}],
    "channels": [{"name": "ops", "kind": "webhook", "url": "https://example.org/hook", "secret_from": "OPS_SECRET"}],
    "retention": {"plans_days": 365},
}
PORTFOLIO: Document = {
    "start": "2026-11-21T12:00Z",
    "slot": "2h",
    "quotas": [{"provider": "aws", "accelerators": 16}],
    "jobs": [JOB | {"start": None, "value": 100, "release": "2h"}],
}
PORTFOLIO["jobs"][0].pop("start")
RUN: Document = {
    "work": "24h",
    "deadline": "36h",
    "changeover": "15min",
    "on_demand_usd_per_hour": 32.77,
    "places": [{"name": "a", "usd_per_hour": 9.83, "region": "us-east-1", "mean_up": "6h", "mean_down": "2h"}],
}
#: Each document, the command that reads it from the file `{}`, and the address that reads it as a body.
KINDS: dict[str, tuple[Document, list[str], str | None]] = {
    "job": (JOB, ["plan", "{}"], "/v1/plans"),
    "settings": (SETTINGS, ["plan", "{job}", "--settings", "{}"], None),
    "inventory": (example("inventory.yaml"), ["local", "list", "--inventory", "{}"], None),
    "portfolio": (PORTFOLIO, ["portfolio", "{}", "--iterations", "1"], "/v1/portfolios?iterations=1"),
    "forecast": (example("forecasts/home.yaml"), ["buy", "{}"], "/v1/buy"),
    "run": (RUN, ["run-policy", "{}"], "/v1/run-policies"),
}

#: Never empty of what a terminal obeys, a log splits at or a reader is deceived by.
HOSTILE = st.builds(
    "{}{}{}".format,
    st.text(max_size=6),
    st.sampled_from(["\n", "\r\n", "\x1b[2J", "\x1b]0;gone\x07", "\u202e", "\u2028", "\x85", "\x00", "\t", "\u200b"]),
    st.text(max_size=6) | st.sampled_from(["gpuplan: deadline: is fine", "a" * 300, "'", '"', "]", ".b: "]),
)


def branches(value: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """The path of everything in a document, itself first."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, item in inner:
        yield from branches(item, (*path, part))


def spoilt(document: Document, data: st.DataObject) -> Document:
    """The document with a hostile value for one of its own, or with a hostile key more."""
    document = copy.deepcopy(document)
    path = data.draw(st.sampled_from(list(branches(document))))
    parent: Any = document
    for part in path[:-1]:
        parent = parent[part]
    hostile = data.draw(HOSTILE)
    at = parent[path[-1]] if path else document
    if isinstance(at, dict) and data.draw(st.booleans()):
        at[hostile] = data.draw(st.sampled_from([1, None, "x", {}, []]) | HOSTILE)
    elif path:
        parent[path[-1]] = data.draw(st.sampled_from([hostile, [hostile], {hostile: hostile}, {hostile: 1}]))
    else:
        document[hostile] = hostile
    return document


@pytest.fixture(scope="module")
def command(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., tuple[int, str]]]:
    """Run a command over a document, in this process: its exit code and what it writes to standard error."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "job.json").write_text(json.dumps(JOB), encoding="utf-8")

    def ended(document: Document, words: list[str]) -> tuple[int, str]:
        (folder / "sent.json").write_text(json.dumps(document), encoding="utf-8")
        files = {"{}": str(folder / "sent.json"), "{job}": str(folder / "job.json")}
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as output:
            return main([files.get(word, word) for word in words]), output.getvalue()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUPLAN_DATABASE_URL", database_url)
        patch.setenv("OPS_SECRET", "whsec_" + "c2VjcmV0" * 4)
        yield ended


hostile_enough = hypothesis_settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("kind", KINDS)
@hostile_enough
@given(st.data())
def test_a_command_refuses_a_hostile_document_in_printable_lines(
    command: Callable[..., tuple[int, str]], kind: str, data: st.DataObject
) -> None:
    document, words, _ = KINDS[kind]
    code, output = command(spoilt(document, data), words)
    assert code == 2, output
    lines = output.split("\n")
    assert lines.pop() == ""
    assert lines
    # Only `UnusableInput` begins a line with the field; a replacement character would hide what is at fault.
    assert all(line.startswith("gpuplan: ") and line.isprintable() and "\ufffd" not in line for line in lines)


@pytest.mark.parametrize("kind", [kind for kind, (*_, address) in KINDS.items() if address])
@hostile_enough
@given(st.data())
def test_the_service_refuses_a_hostile_document_in_printable_lines(
    client: httpx.Client, kind: str, data: st.DataObject
) -> None:
    document, _, address = KINDS[kind]
    sent = spoilt(document, data)
    assert address is not None
    answer = client.post(address, json=sent)
    assert answer.status_code in {400, 422}, answer.text
    problem = answer.json()
    assert problem["detail"].isprintable()
    assert all(error["detail"].isprintable() for error in problem["errors"])
    for error in problem["errors"]:
        # The pointer is exact, and so not escaped: JSON escapes it.
        assert error["pointer"] == "" or error["pointer"].startswith("/")


@given(st.lists(st.text() | st.integers(0, 9), min_size=1, max_size=4), st.text())
def test_any_fault_and_any_failure_is_one_printable_line(path: list[Step], message: str) -> None:
    fault = Fault(tuple(path), message)
    for line in (str(fault), fault.field, fault.message, str(UnusableInput(fault)), str(StoreFailure(message))):
        assert line.isprintable()
    assert str(ProviderFailure(message)) == one_line(message)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (("workload", "layers"), "workload.layers"),
        (("machines", 2, "accelerator"), "machines[2].accelerator"),
        (("jobs", "a key"), "jobs.'a key'"),
        (("deadline\ngpuplan: budget_usd",), "'deadline\\ngpuplan: budget_usd'"),
        (("",), "''"),
        (("prices", "p5.48xlarge"), "prices.p5.48xlarge"),
        (("a" * 200,), f"'{'a' * 79}…'"),
    ],
)
def test_a_path_quotes_every_key_that_could_be_read_as_something_else(path: tuple[Step, ...], field: str) -> None:
    assert Fault(path, "x").field == field
