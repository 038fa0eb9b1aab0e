"""The protocol's server around the tools: what is offered to agents, with resources beside."""

import json
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any, TextIO

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError, create_model
from starlette.applications import Starlette

from api.app import Gpuplan
from api.mcp.schemas import Document, without_titles
from api.mcp.tools import Tools
from api.mcp.unreadable import AnsweringUnreadable
from api.version import gpuplan_version
from catalog.errors import UnusableInput

INSTRUCTIONS = (
    "gpuplan answers where a training job runs cheapest on AWS, GCP, Azure or own machines, with a proof over a snapshot "
    "of prices. Describe the job (a preset is easiest: resource gpuplan://presets) and call `plan`; `why` explains it, "
    "`estimate` tells time and memory on one given machine, `offers` and `history` are the prices behind it. Amounts are "
    "US dollars as decimal text. Say to people how old the prices are (`meta.price_age_days`). Nothing is ever bought."
)

#: What tells one model from another; its layers are the planner's business.
_PRESET_KEYS = ("name", "aliases", "architecture", "task", "unit", "published_parameters")

#: Titles for people, in the order in which tools are listed.
_TITLES = {
    "plan": "Cheapest plan for a training job",
    "why": "Why this plan, why not another",
    "estimate": "Time and memory on one configuration",
    "offers": "Machines and their prices",
    "history": "Prices over time",
    "replan": "Advice for a job under way",
}


class AgentsServer(MCPServer[Any]):
    """The library's server, with wrong arguments told as everywhere in gpuplan: the field, and what is accepted.

    Over standard input and output, a line that cannot be read is answered, too.
    """

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """As always."""
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_in_words(error.__cause__, name)) from error.__cause__
            raise

    async def answer_over(self, written: TextIO) -> None:
        """Over standard input and this stream, as always but for lines that are no message."""
        if isinstance(written, TextIOWrapper):
            written.reconfigure(encoding="utf-8")  # the protocol's, whatever the terminal knows
        async with stdio_server(stdout=anyio.wrap_file(written)) as (heard, said):
            options = self._lowlevel_server.create_initialization_options()
            await self._lowlevel_server.run(AnsweringUnreadable(heard, said), said, options)


def _in_words(error: ValidationError, name: str) -> str:
    faults = []
    for each in error.errors(include_url=False, include_input=False):
        field = ".".join(str(part) for part in each["loc"])
        if each["type"] == "extra_forbidden":
            faults.append(f"{field[:80]}: unknown argument; the input schema of {name} lists those there are")
        else:
            faults.append(f"{field[:80]}: {each['msg']}")
    return "; ".join(faults)


def create_mcp(gpuplan: Gpuplan) -> AgentsServer:
    """The server, answering from this `gpuplan`.

    All tools only read, but for `plan`, which keeps what it answered so that it can be named later.
    """
    tools = Tools(gpuplan)
    server = AgentsServer(
        "gpuplan",
        title="gpuplan",
        description="The provably cheapest way to run a training job",
        instructions=INSTRUCTIONS,
        version=gpuplan_version(),
        log_level="WARNING",
        subscriptions=False,
        tools=[_tool(getattr(tools, name), title) for name, title in _TITLES.items()],
    )
    _add_resources(server, gpuplan)
    return server


def over_stdio(server: AgentsServer, written: TextIO) -> None:
    """Answers what standard input asks on `written` until the agent closes it. Raises `BrokenPipeError` if it is gone.

    `written` is given since what is standard output belongs to nobody: libraries print there.
    """
    try:
        anyio.run(server.answer_over, written)
    except ExceptionGroup as errors:
        # The library's reader and writer are tasks, so that what one of them meets comes in a group.
        _, others = errors.split(BrokenPipeError)
        if others is not None:
            raise
        raise BrokenPipeError("the agent is gone") from None


def over_http(server: MCPServer[Any]) -> Starlette:
    """The server at `/mcp`, for this machine: the library refuses other names in Host and Origin, since nobody logs in."""
    return server.streamable_http_app(json_response=True, stateless_http=True, host="127.0.0.1")


def _tool(function: Callable[..., Document], title: str) -> Tool:
    # A kept plan changes nothing that anybody sees but its own id; hosts ask people before tools that write.
    hints = ToolAnnotations(
        title=title, read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    tool = Tool.from_function(function, title=title, annotations=hints)
    # Not the library's default, which drops an argument that it does not know: a misspelt wish would go unheard.
    taken = tool.fn_metadata.arg_model
    strict = create_model(taken.__name__, __base__=taken, __cls_kwargs__={"extra": "forbid"})
    tool.fn_metadata.arg_model = strict
    tool.parameters = without_titles(strict.model_json_schema(by_alias=True))
    return tool


def _add_resources(server: MCPServer[Any], gpuplan: Gpuplan) -> None:
    @server.resource(
        "gpuplan://presets",
        title="Models known by name",
        description="For `workload: {kind: preset, model: NAME}`; `unit` says whether it takes `tokens` or `samples`.",
        mime_type="application/json",
    )
    def presets() -> str:
        named = [{key: each[key] for key in _PRESET_KEYS} for each in gpuplan.presets()]
        return json.dumps({"presets": named}, ensure_ascii=False)

    @server.resource(
        "gpuplan://accelerators",
        title="Accelerators known by name",
        description="Memory, peak rates and links of every accelerator, by the names that all tools take.",
        mime_type="application/json",
    )
    def accelerators() -> str:
        return json.dumps({"accelerators": gpuplan.accelerators()}, ensure_ascii=False, default=str)

    @server.resource(
        "gpuplan://plans/{plan_id}",
        title="A plan made before",
        description="The whole answer that `plan` gave under this id.",
        mime_type="application/json",
    )
    def plan(plan_id: str) -> str:
        try:
            return json.dumps(gpuplan.saved_plan(plan_id), ensure_ascii=False)
        except UnusableInput as error:
            raise ResourceNotFoundError(str(error)) from None
