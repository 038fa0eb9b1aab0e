"""`gpuplan keys`: who may ask a service; keys are made here, shown once, and revoked."""

from typing import Annotated, Any

import typer

from api.cli.documents import open_gpuplan, print_json
from api.cli.plan import AsJson
from api.cli.standard_output import console

KeyId = Annotated[str, typer.Argument(metavar="ID", help="The id of a key, as `gpuplan keys list` shows it.")]


def keys_commands() -> typer.Typer:
    """The commands under `gpuplan keys`."""
    app = typer.Typer(help="Keys for a service that others reach: made, listed, revoked.", rich_markup_mode=None)
    app.command("create")(create)
    app.command("list")(listing)
    app.command("revoke")(revoke)
    app.command("rotate")(rotate)
    return app


def create(
    *,
    name: Annotated[str, typer.Option(help="Whose key it is, or what uses it.")],
    scope: Annotated[str, typer.Option(help="read, plan, refresh or admin; each includes those before it.")] = "plan",
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="A duration from now on (90d) or a time; never unless given.")
    ] = None,
    requests_per_minute: Annotated[
        str | None, typer.Option(metavar="N", help="So many requests a minute, instead of the service's limit.")
    ] = None,
    plans_per_day: Annotated[
        str | None, typer.Option(metavar="N", help="So many plans a day, instead of the service's limit.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key. It is shown this once: only a hash of it is kept."""
    given: dict[str, Any] = {
        "expires": expires,
        "requests_per_minute": requests_per_minute,
        "plans_per_day": plans_per_day,
    }
    document = {"name": name, "scope": scope} | {field: value for field, value in given.items() if value is not None}
    _show_new(open_gpuplan().make_key(document), as_json=as_json)


def listing(*, as_json: AsJson = False) -> None:
    """Every key without its secret, also those that expired or were revoked."""
    answer = open_gpuplan().keys()
    if as_json:
        print_json(answer)
        return
    from api.render.access import render_keys

    console().print(render_keys(answer))


def revoke(key_id: KeyId, *, as_json: AsJson = False) -> None:
    """Nobody can use this key from now on; a service that runs notices within seconds."""
    answer = open_gpuplan().revoke_key(key_id)
    if as_json:
        print_json(answer)
        return
    console().print(f"{answer['id']} ({answer['name']}) is revoked.")


def rotate(key_id: KeyId, *, as_json: AsJson = False) -> None:
    """Give a key another secret, shown this once; the one before opens nothing from now on."""
    _show_new(open_gpuplan().rotate_key(key_id), as_json=as_json)


def _show_new(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    from api.render.access import render_new_key

    console().print(render_new_key(answer), soft_wrap=True)
