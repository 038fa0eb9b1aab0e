"""`gpuplan audit`: the audit log."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import AsJson
from gpuplan.api.presentation.api_keys import render_audit
from gpuplan.api.services.price_history import read_since


def audit(
    *,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Records since this date, or time with a zone.")
    ] = None,
    who: Annotated[str | None, typer.Option(metavar="NAME", help="Records of this identity or name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show this many of the newest records.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Show the audit log, newest first: plans, refreshes, keys, watches, runs and refused logins."""
    page = open_gpuplan().audit_log.page(since=read_since(since), identity=who, limit=limit)
    print_answer(
        {"entries": page.records, "more": page.before is not None},
        lambda _: render_audit(page.records, has_older=page.before is not None),
        as_json=as_json,
    )
