"""What the page on agents shows can be pasted, and works."""

import json
import re
import tomllib
from pathlib import Path

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
    for name in ("plan", "import_config", "why", "estimate", "offers", "history", "replan"):
        assert f"| `{name}` |" in TEXT
