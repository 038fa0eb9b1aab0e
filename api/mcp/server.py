"""The MCP server: registers the tools and resources for agents."""

import json
from collections.abc import Callable
from functools import wraps
from io import TextIOWrapper
from keyword import iskeyword
from typing import Any, TextIO

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError, create_model
from starlette.applications import Starlette

from gpuplan.api.mcp.malformed_messages import AnsweringUnreadable
from gpuplan.api.mcp.tool_schemas import Document, without_titles
from gpuplan.api.mcp.tools import Tools
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.wire import wire

INSTRUCTIONS = (
    "gpuplan answers where a training job runs cheapest on AWS, GCP, Azure or own machines, with a proof over a snapshot "
    "of prices. Describe the job (a preset is easiest: resource gpuplan://presets) and call `plan`; `why` explains it, "
    "`estimate` gives time and memory on one given machine, `offers` and `history` list the prices. Amounts are "
    "US dollars as decimal text. Tell people how old the prices are (`meta.price_age_days`). Nothing is ever bought."
)

#: The columns that distinguish models; their layers matter only to the planner.
_PRESET_KEYS = ("name", "aliases", "architecture", "task", "unit", "published_parameters")

#: Tools that ask the clouds.
_ASKS_CLOUDS = frozenset({"capacity"})

#: Titles for people, in the order in which tools are listed.
_TITLES = {
    "plan": "Cheapest plan for a training job",
    "import_config": "A training configuration as a job",
    "afford": "Models that a budget trains",
    "why": "Why this plan, why not another",
    "estimate": "Time and memory on one configuration",
    "offers": "Machines and their prices",
    "history": "Prices over time",
    "capacity": "How likely machines are obtained now",
    "costs": "Planned and actual costs of a month",
    "replan": "Advice for a running job",
}


class AgentsServer(MCPServer[Any]):
    """The library's server with gpuplan's errors for wrong arguments: the field, and what is accepted.

    Over standard input and output it also answers unreadable lines.
    """

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool and report wrong arguments by field."""
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_in_words(error.__cause__, name)) from error.__cause__
            raise

    async def answer_over(self, written: TextIO) -> None:
        """Serve over standard input and this stream, and answer lines that are not messages."""
        if isinstance(written, TextIOWrapper):
            written.reconfigure(encoding="utf-8")  # the protocol's, whatever the terminal knows
        async with stdio_server(stdout=anyio.wrap_file(written)) as (heard, responses):
            options = self._lowlevel_server.create_initialization_options()
            await self._lowlevel_server.run(AnsweringUnreadable(heard, responses), responses, options)


def _in_words(error: ValidationError, name: str) -> str:
    faults = []
    for fault in error.errors(include_url=False, include_input=False):
        field = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            faults.append(f"{field[:80]}: unknown argument; the input schema of {name} lists the accepted ones")
        else:
            faults.append(f"{field[:80]}: {fault['msg']}")
    return "; ".join(faults)


def create_mcp(gpuplan: Services) -> AgentsServer:
    """The server, answering from this `gpuplan`.

    All tools are read-only except `plan`, which stores its answer so that later calls can name it.
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
    """Serve standard input with responses on `written` until the agent closes it. Raises `BrokenPipeError` if the agent
    is gone.

    `written` is a parameter because libraries print to standard output.
    """
    try:
        anyio.run(server.answer_over, written)
    except ExceptionGroup as errors:
        # The library's reader and writer are tasks, so their exceptions arrive in a group.
        _, others = errors.split(BrokenPipeError)
        if others is not None:
            raise
        raise BrokenPipeError("the agent is gone") from None


def over_http(server: MCPServer[Any]) -> Starlette:
    """The server at `/mcp`, for this machine only: the library refuses other names in Host and Origin, since there is
    no login.
    """
    return server.streamable_http_app(json_response=True, stateless_http=True, host="127.0.0.1")


def _tool(function: Callable[..., Document], title: str) -> Tool:
    # A stored plan changes nothing visible except its own id; hosts ask people before tools that write.
    hints = ToolAnnotations(
        title=title,
        read_only_hint=True,
        destructive_hint=False,
        idempotent_hint=True,
        open_world_hint=function.__name__ in _ASKS_CLOUDS,
    )
    tool = Tool.from_function(_by_alias(function), title=title, annotations=hints)
    # The library's default would drop unknown arguments, so a misspelt option would be ignored.
    taken = tool.fn_metadata.arg_model
    strict = create_model(taken.__name__, __base__=taken, __cls_kwargs__={"extra": "forbid"})
    tool.fn_metadata.arg_model = strict
    tool.parameters = without_titles(strict.model_json_schema(by_alias=True))
    return tool


def _by_alias(function: Callable[..., Document]) -> Callable[..., Document]:
    """The function for a library that calls by alias: `not` and `with`, which Python reserves, are `not_` and `with_`."""

    @wraps(function)
    def called(**arguments: Any) -> Document:
        return function(**{f"{name}_" if iskeyword(name) else name: value for name, value in arguments.items()})

    return called


def _add_resources(server: MCPServer[Any], gpuplan: Services) -> None:
    @server.resource(
        "gpuplan://presets",
        title="Model presets",
        description="For `workload: {kind: preset, model: NAME}`; `unit` says whether it takes `tokens` or `samples`.",
        mime_type="application/json",
    )
    def presets() -> str:
        named = [{key: getattr(preset, key) for key in _PRESET_KEYS} for preset in gpuplan.catalogue.presets()]
        return json.dumps({"presets": named}, ensure_ascii=False)

    @server.resource(
        "gpuplan://accelerators",
        title="Accelerators",
        description="Memory, peak rates and links of every accelerator, by the names that all tools accept.",
        mime_type="application/json",
    )
    def accelerators() -> str:
        return json.dumps({"accelerators": wire(gpuplan.catalogue.accelerators())}, ensure_ascii=False, default=str)

    @server.resource(
        "gpuplan://plans/{plan_id}",
        title="A saved plan",
        description="The whole answer that `plan` returned under this id.",
        mime_type="application/json",
    )
    def plan(plan_id: str) -> str:
        try:
            return json.dumps(gpuplan.plans.saved_document(plan_id), ensure_ascii=False)
        except UnusableInput as error:
            raise ResourceNotFoundError(str(error)) from None
