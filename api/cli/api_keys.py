"""`gpuplan keys`: create, list, rotate and revoke the API keys of a service."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import AsJson
from gpuplan.api.presentation.api_keys import render_keys, render_new_key
from gpuplan.api.schemas.access import NewKey
from gpuplan.catalog.parsing.json_object import without_none

KeyId = Annotated[str, typer.Argument(metavar="ID", help="The id of a key, see `gpuplan keys list`.")]


def keys_commands() -> typer.Typer:
    """The commands under `gpuplan keys`."""
    app = typer.Typer(help="Create, list, rotate and revoke the service's API keys.", rich_markup_mode=None)
    app.command("create")(create)
    app.command("list")(listing)
    app.command("revoke")(revoke)
    app.command("rotate")(rotate)
    return app


def create(
    *,
    name: Annotated[str, typer.Option(help="The owner of the key, or the program that uses it.")],
    scope: Annotated[
        str, typer.Option(help="read, plan, refresh or admin; each includes the scopes before it.")
    ] = "plan",
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="A duration (90d) or a time. Default: never.")
    ] = None,
    requests_per_minute: Annotated[
        str | None, typer.Option(metavar="N", help="Requests per minute. Default: the service's limit.")
    ] = None,
    plans_per_day: Annotated[
        str | None, typer.Option(metavar="N", help="Plans per day. Default: the service's limit.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a key. It is shown only once: only its hash is stored."""
    limits = {"requests_per_minute": requests_per_minute, "plans_per_day": plans_per_day}
    document = without_none(name=name, scope=scope, expires=expires, **limits)
    _show_new(open_gpuplan().api_keys.make(document), as_json=as_json)


def listing(*, as_json: AsJson = False) -> None:
    """List all keys, without secrets, including expired and revoked ones."""
    answer = open_gpuplan().api_keys.listed()
    print_answer(answer, render_keys, as_json=as_json)


def revoke(key_id: KeyId, *, as_json: AsJson = False) -> None:
    """Revoke a key. A running service refuses it within seconds."""
    answer = open_gpuplan().api_keys.revoke(key_id)
    print_answer(answer, lambda _: f"{answer.id} ({answer.name}) is revoked.", as_json=as_json)


def rotate(key_id: KeyId, *, as_json: AsJson = False) -> None:
    """Replace a key's secret. The new one is shown only once; the old one stops working."""
    _show_new(open_gpuplan().api_keys.rotate(key_id), as_json=as_json)


def _show_new(answer: NewKey, *, as_json: bool) -> None:
    print_answer(answer, render_new_key, as_json=as_json, soft_wrap=True)
