"""`gpuplan slack`: which Slack workspaces may ask, as whom, and how much."""

from typing import Annotated

import typer

from api.cli.documents import open_gpuplan, print_json
from api.cli.plan import AsJson
from api.cli.standard_output import console

Workspace = Annotated[str, typer.Argument(metavar="ID", help="A workspace (T0123ABCD) or an enterprise (E0123ABCD).")]


def slack_commands() -> typer.Typer:
    """The commands under `gpuplan slack`."""
    app = typer.Typer(help="Which Slack workspaces may ask, as whom, and how much.", rich_markup_mode=None)
    app.command("allow")(allow)
    app.command("list")(listing)
    app.command("remove")(remove)
    return app


def allow(
    workspace: Workspace,
    *,
    scope: Annotated[str, typer.Option(metavar="SCOPE", help="read, plan or refresh.")] = "plan",
    name: Annotated[str | None, typer.Option(help="What the audit log calls it; its id unless given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Let a workspace ask; a second time changes what it may."""
    from api.slack.workspaces import allow as allow_workspace

    answer = allow_workspace(open_gpuplan(), workspace, scope=scope, name=name)
    if as_json:
        print_json(answer)
        return
    console().print(f"{answer['workspace']} may {answer['scope']}, as {answer['name']}")


def listing(*, as_json: AsJson = False) -> None:
    """Every workspace that may ask."""
    from api.slack.workspaces import row

    rows = [row(each) for each in open_gpuplan().store.slack.workspaces()]
    if as_json:
        print_json({"workspaces": rows})
        return
    from api.render.tables import listing as as_table

    titles = ("workspace", "name", "scope", "since")
    shown = [(each["workspace"], each["name"], each["scope"], each["allowed_at"][:10]) for each in rows]
    console().print(as_table(titles, shown) if shown else "no workspace may ask yet: gpuplan slack allow T0123ABCD")


def remove(workspace: Workspace, *, as_json: AsJson = False) -> None:
    """Let a workspace ask no longer, and forget its token."""
    from api.slack.workspaces import remove as remove_workspace

    answer = remove_workspace(open_gpuplan(), workspace)
    if as_json:
        print_json(answer)
        return
    console().print(f"{answer['removed']} may no longer ask")
