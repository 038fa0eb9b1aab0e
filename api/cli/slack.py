"""`gpuplan slack`: allow, list and remove Slack workspaces."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import AsJson
from gpuplan.api.presentation.sections import Sections, sections_of
from gpuplan.api.presentation.text_tables import listing as as_table

if TYPE_CHECKING:
    from gpuplan.api.slack.workspaces import AllowedWorkspace

Workspace = Annotated[str, typer.Argument(metavar="ID", help="A workspace (T0123ABCD) or an enterprise (E0123ABCD).")]


def slack_commands() -> typer.Typer:
    """The commands under `gpuplan slack`."""
    app = typer.Typer(help="Allow, list and remove Slack workspaces.", rich_markup_mode=None)
    app.command("allow")(allow)
    app.command("list")(listing)
    app.command("remove")(remove)
    return app


def allow(
    workspace: Workspace,
    *,
    scope: Annotated[str, typer.Option(metavar="SCOPE", help="read, plan or refresh.")] = "plan",
    name: Annotated[str | None, typer.Option(help="Its name in the audit log. Default: its id.")] = None,
    as_json: AsJson = False,
) -> None:
    """Allow a workspace, or change its scope."""
    from gpuplan.api.slack.workspaces import allow as allow_workspace

    answer = allow_workspace(open_gpuplan(), workspace, scope=scope, name=name)
    line = f"{answer.workspace} is allowed to {answer.scope}, as {answer.name}"
    print_answer(answer, lambda _: line, as_json=as_json)


def listing(*, as_json: AsJson = False) -> None:
    """List the allowed workspaces."""
    from gpuplan.api.slack.workspaces import row

    rows = [row(workspace) for workspace in open_gpuplan().store.slack.workspaces()]
    print_answer({"workspaces": rows}, lambda _: _listed(rows), as_json=as_json)


def _listed(rows: "Sequence[AllowedWorkspace]") -> Sections | str:
    shown = [(row.workspace, row.name, row.scope, row.allowed_at[:10]) for row in rows]
    if not shown:
        return "no workspace is allowed yet: gpuplan slack allow T0123ABCD"
    return sections_of(as_table(("workspace", "name", "scope", "since"), shown))


def remove(workspace: Workspace, *, as_json: AsJson = False) -> None:
    """Remove a workspace and delete its token."""
    from gpuplan.api.slack.workspaces import remove as remove_workspace

    answer = remove_workspace(open_gpuplan(), workspace)
    print_answer(answer, lambda _: f"{answer.removed} is removed", as_json=as_json)
