"""`gpuplan audit`: who planned and refreshed what."""

from typing import Annotated

import typer

from api.cli.documents import open_gpuplan, print_json
from api.cli.plan import AsJson
from api.cli.standard_output import console


def audit(
    *,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="A date or a time with its zone.")] = None,
    who: Annotated[str | None, typer.Option(metavar="NAME", help="An identity or a name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="So many of the newest.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Who did what, the newest first: plans, refreshes, keys, watches, runs, and logins that were refused."""
    from api.history import read_since

    page = open_gpuplan().audit(since=read_since(since), who=who, limit=limit)
    if as_json:
        print_json({"entries": list(page.records), "more": page.before is not None})
        return
    from api.render.access import render_audit

    console().print(render_audit(page.records, more=page.before is not None))
