"""gpuplan as agents meet it: a real process, the protocol's own client, standard input and output or HTTP."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from subprocess import PIPE
from typing import Any

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextResourceContents
from starlette.types import ASGIApp

from gpuplan.api.cli.main import EXIT_BROKEN_PIPE
from gpuplan.api.mcp.server import create_mcp, over_http
from gpuplan.api.services.composition import Services

pytestmark = pytest.mark.slow(reason="starts the server of tools")

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]

HELLO = (
    b'{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",'
    b' "capabilities": {}, "clientInfo": {"name": "gone", "version": "1"}}}\n'
)
GPUPLAN = (sys.executable, "-c", "import sys; from gpuplan.api.cli.main import main; sys.exit(main())", "mcp")


@pytest.fixture(scope="module")
def environment(database_url: str) -> dict[str, str]:
    return {**os.environ, "GPUPLAN_DATABASE_URL": database_url, "GPUPLAN_LOG_FORMAT": "json"}


class Agent:
    """A connected client, for tests that wait."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal, self.client = portal, client

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.portal.call(self.client.call_tool, tool, arguments)

    def answer(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content
        content: dict[str, Any] = result.structured_content
        assert json.loads(result.content[0].text) == content
        return content

    def error(self, tool: str, **arguments: Any) -> str:
        result = self.call(tool, **arguments)
        assert result.is_error
        text: str = result.content[0].text
        return text


_AXOLOTL = """base_model: Qwen/Qwen3-8B
adapter: lora
sequence_len: 2048
micro_batch_size: 2
gradient_accumulation_steps: 4
datasets: [{path: data, type: alpaca}]
"""


@pytest.fixture(scope="module")
def agent(environment: dict[str, str]) -> Iterator[Agent]:
    program = StdioServerParameters(command=GPUPLAN[0], args=list(GPUPLAN[1:]), env=environment)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(program))) as client,
    ):
        yield Agent(portal, client)


def test_tools_say_what_they_do_and_take(agent: Agent) -> None:
    tools = {tool.name: tool for tool in agent.portal.call(agent.client.list_tools).tools}
    assert set(tools) == {
        "plan",
        "import_config",
        "afford",
        "why",
        "estimate",
        "offers",
        "history",
        "capacity",
        "costs",
        "replan",
    }
    for tool in tools.values():
        assert len(tool.description or "") > 80
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.input_schema["additionalProperties"] is False
        for name, field in tool.input_schema["properties"].items():
            assert '"description"' in json.dumps(field), (tool.name, name)
    definitions = tools["plan"].input_schema["$defs"]
    assert "max_nodes" in definitions["ConstraintsDocument"]["properties"]
    assert sum(len(json.dumps(tool.input_schema)) for tool in tools.values()) < 36_000


def test_the_full_answer_is_that_of_the_command_line(
    agent: Agent, run: Callable[..., Any], job_file: Callable[..., Any], job: dict[str, Any]
) -> None:
    printed = json.loads(run("plan", job_file(job), "--json").out)
    answer = agent.answer("plan", job=job, detail="full")
    assert answer["plan"] == printed["plan"]
    assert set(answer["meta"]) == set(printed["meta"])
    estimate = json.loads(run("estimate", job_file(job), "--on", "H100", "--gpus", 8, "--json").out)
    assert agent.answer("estimate", job=job, accelerator="H100", gpus=8) == estimate


def test_a_summary_leaves_out_what_it_names_and_changes_nothing_else(agent: Agent, job: dict[str, Any]) -> None:
    short, full = (agent.answer("plan", job=job, detail=detail) for detail in ("summary", "full"))
    assert len(json.dumps(short)) < 0.6 * len(json.dumps(full))
    assert "plan.assumptions" in short["left_out"]
    for key in ("id", "cost_usd", "hours", "deadline_probability", "warnings", "sensitivity"):
        assert short["plan"][key] == full["plan"][key]
    for reduced, whole in zip(short["plan"]["phases"], full["plan"]["phases"], strict=True):
        assert reduced.items() <= whole.items()
    assert set(full["plan"]) - set(short["plan"]) <= {name.removeprefix("plan.") for name in short["left_out"]}


def test_a_configuration_is_planned_like_the_job_that_it_describes(agent: Agent) -> None:
    script = "accelerate launch --num_processes 8 -m axolotl.cli.train axolotl.yaml\n"
    files = {"run.sh": script, "axolotl.yaml": f"{_AXOLOTL}max_steps: 100\n"}
    planned = agent.answer("plan", files=files, detail="full")
    read = agent.answer("import_config", files=files)
    assert read["missing"] == []
    named = agent.answer("plan", job=read["job"], detail="full")
    first, second = (answer["plan"]["job"] for answer in (planned, named))
    assert first["start"] < second["start"]
    assert {**first, "start": None} == {**second, "start": None}


def test_no_plan_is_an_answer_and_not_an_error(agent: Agent, hopeless: dict[str, Any]) -> None:
    assert agent.answer("plan", job=hopeless)["outcome"] == "infeasible"


def test_why_answers_in_sentences(agent: Agent, job: dict[str, Any]) -> None:
    answer = agent.answer("why", job=job, **{"not": "H100"})
    assert answer["outcome"] == "explained"
    assert "H100" in answer["why"]["summary"][0]
    assert "why.frontier" in answer["left_out"]


def test_offers_come_cheapest_first_and_go_on_where_they_ended(agent: Agent) -> None:
    first = agent.answer("offers", accelerator="H100", limit=3)
    second = agent.answer("offers", accelerator="H100", limit=3, start=first["next_start"])
    prices = [float(row["usd_per_hour"]) / row["accelerator_count"] for row in first["offers"] + second["offers"]]
    assert len(prices) == 6
    assert prices == sorted(prices)
    everything = agent.answer("offers", accelerator="H100", limit=3, start=first["total"] - 1)
    assert (len(everything["offers"]), everything["next_start"]) == (1, None)


def test_prices_over_time_are_told(agent: Agent) -> None:
    answer = agent.answer("history", instance_type="p5.48xlarge", kind="on_demand", limit=2)
    assert (len(answer["prices"]), answer["next_start"]) == (2, 2)


def test_a_job_under_way_is_advised(agent: Agent, job: dict[str, Any]) -> None:
    began = (datetime.now(UTC) - timedelta(hours=9)).isoformat()
    on = {"instance_type": "p4d.24xlarge", "nodes": 1, "region": "us-east-1"}
    answer = agent.answer("replan", job=job | {"start": began}, running={"on": on, "done": "40%"}, since=began)
    assert answer["outcome"] == "replanned"


@pytest.mark.parametrize(
    ("tool", "change", "message"),
    [
        (
            "plan",
            {"job": {"deadline": "7 dogs", "workload": {"kind": "preset", "model": "gpt2"}}},
            "job.deadline: '7 dogs'",
        ),
        ("plan", {"jobb": {}}, "jobb: unknown argument"),
        ("plan", {"job": []}, "job: "),
        ("plan", {"job": None}, "job: give either job or files"),
        ("plan", {"files": {"axolotl.yaml": _AXOLOTL}}, "job: give either job or files"),
        ("plan", {"job": None, "files": {"axolotl.yaml": _AXOLOTL}}, "files: tokens is missing"),
        ("plan", {"snapshot": "feed"}, "snapshot: "),
        ("plan", {"detail": "short"}, "detail: "),
        ("estimate", {"accelerator": "H1000", "gpus": 8}, "accelerator: "),
        ("estimate", {"accelerator": "H100", "gpus": 8, "gpus_per_node": 3}, "gpus_per_node: 3 does not divide"),
        ("estimate", {"accelerator": "H100", "gpus": 0}, "gpus: "),
        ("why", {"not": "H1000"}, "not: "),
        ("offers", {"provider": "amazon"}, "provider: 'amazon' matches nothing; accepted"),
        ("offers", {"limit": 10_000}, "limit: "),
        ("history", {"instance_type": "p5.49xlarge"}, "instance_type: "),
        ("replan", {"running": {"done": 2}}, "running.done: "),
        ("nothing", {}, "nothing"),
    ],
)
def test_what_cannot_be_used_is_told_at_its_argument(
    agent: Agent, job: dict[str, Any], tool: str, change: dict[str, Any], message: str
) -> None:
    given = {"job": job} if tool in {"plan", "estimate", "why", "replan"} else {}
    text = agent.error(tool, **given | change)
    assert message in text
    assert "Traceback" not in text
    assert "pydantic.dev" not in text


def test_what_names_are_known_can_be_read(agent: Agent, job: dict[str, Any]) -> None:
    def read(uri: str) -> dict[str, Any]:
        [contents] = agent.portal.call(agent.client.read_resource, uri).contents
        assert isinstance(contents, TextResourceContents)
        resource: dict[str, Any] = json.loads(contents.text)
        return resource

    assert "llama-3-8b" in {preset["name"] for preset in read("gpuplan://presets")["presets"]}
    assert "H100-80GB-SXM" in {accelerator["name"] for accelerator in read("gpuplan://accelerators")["accelerators"]}
    plan = agent.answer("plan", job=job)["plan"]
    assert read(f"gpuplan://plans/{plan['id']}")["plan"]["cost_usd"] == plan["cost_usd"]
    with pytest.raises(Exception, match="no plan"):
        read("gpuplan://plans/plan-0")


def test_agents_on_this_machine_are_answered_over_http(gpuplan: Services, served: Served, job: dict[str, Any]) -> None:
    with served(over_http(create_mcp(gpuplan))) as client:
        url = f"{client.base_url}/mcp"
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(url)) as connected:
            assert Agent(portal, connected).answer("plan", job=job)["outcome"] == "planned"
        for name in ("host", "origin"):
            assert client.post("/mcp", json={}, headers={name: "http://attacker.example"}).status_code in {403, 421}


#: Lines that are no message, with the error that each gets; nested so deep that no reader of JSON takes them, say.
UNREADABLE = [
    (b"hello", -32700),
    (b'{"jsonrpc": "2.0", "id": 5', -32700),
    (b"[" * 100_000, -32700),
    (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": ' + b'{"a":' * 3_000 + b"1" + b"}" * 3_001, -32700),
    (b'[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]', -32600),
    (b'{"jsonrpc": "2.0", "id": 5, "method": 7}', -32600),
    (b'"\xff\xfe"', -32600),
]


@pytest.mark.slow(reason="one long case")
def test_lines_that_cannot_be_read_are_answered_and_the_next_ones_too(environment: dict[str, str]) -> None:
    ping = b'{"jsonrpc": "2.0", "id": 6, "method": "ping"}\n'
    nothing = b"\n  \n"
    sent = HELLO + nothing + b"".join(line + b"\n" for line, _ in UNREADABLE) + ping
    with subprocess.Popen(GPUPLAN, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(sent)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(len(UNREADABLE) + 2)]
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(30) == 0
        assert b"Traceback" not in process.stderr.read()
    unread = [answer for answer in answers if answer["id"] is None]
    assert [reply["error"]["code"] for reply in unread] == [code for _, code in UNREADABLE]
    assert all(len(reply["error"]["message"]) < 200 for reply in unread)
    assert [answer["result"] for answer in answers if answer["id"] == 6] == [{}]


@pytest.mark.slow(reason="one long case")
def test_an_agent_that_goes_away_ends_the_server_without_a_traceback(environment: dict[str, str]) -> None:
    with subprocess.Popen(GPUPLAN, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(HELLO)
        process.stdin.close()
        assert process.wait(30) in {0, EXIT_BROKEN_PIPE}
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
