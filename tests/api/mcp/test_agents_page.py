"""What the page on agents shows can be pasted, and works."""

import json
import re
import tomllib
from pathlib import Path

from typer.main import get_command

from gpuplan.api.cli.main import application
from gpuplan.api.mcp.server import _TITLES
from gpuplan.api.mcp.tools import Tools
from gpuplan.api.services.composition import Services

TEXT = (Path(__file__).parents[3] / "docs/agents.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.+?)```", TEXT, re.DOTALL)


def test_configurations_start_the_command() -> None:
    documents = [json.loads(block) for block in blocks("json")]
    [codex] = [tomllib.loads(block)["mcp_servers"] for block in blocks("toml")]
    servers = [
        configuration
        for document in documents
        for key in ("mcpServers", "servers")
        if (configuration := document.get(key))
    ]
    for named in (*servers, codex):
        assert Path(named["gpuplan"]["command"]).name == "gpuplan"
        assert named["gpuplan"]["args"] == ["mcp"]


def test_the_question_on_the_page_has_an_answer(gpuplan: Services) -> None:
    [asked] = [example for block in blocks("json") if "job" in (example := json.loads(block))]
    assert Tools(gpuplan).plan(**asked)["outcome"] in {"planned", "infeasible"}


def test_every_tool_is_on_the_page() -> None:
    for name in (
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
    ):
        assert f"| `{name}` |" in TEXT


def test_the_skill_names_tools_commands_and_keys_that_there_are(gpuplan: Services) -> None:
    skill = (Path(__file__).parents[3] / "deploy/agent-skill/gpuplan/SKILL.md").read_text(encoding="utf-8")
    front, body = re.fullmatch(r"---\n(.+?)\n---\n(.+)", skill, re.DOTALL).groups()  # type: ignore[union-attr]
    assert {line.partition(":")[0] for line in front.splitlines()} == {"name", "description"}
    assert all(f"`{name}`" in body for name in _TITLES)
    known: set[str] = get_command(application()).commands.keys()  # type: ignore[attr-defined]
    assert set(re.findall(r"`gpuplan ([a-z-]+)", body)) <= known
    job = json.loads(" ".join(re.findall(r'`(\{"workload".+?\}\})`', body, re.DOTALL)[0].split()))
    plan = Tools(gpuplan).plan(job=job | {"deadline": "30d"}, detail="full")["plan"]
    for path in (
        "cost_usd.expected",
        "cost_usd.p95",
        "hours.expected",
        "deadline_probability",
        "certificate.gap",
        "actions",
    ):
        value = plan
        for key in path.split("."):
            value = value[key]
    assert "chance" in plan["capacity_ladder"]
    assert set(re.findall(r"`constraints\.(\w+)`", body)) <= plan["job"]["constraints"].keys()
