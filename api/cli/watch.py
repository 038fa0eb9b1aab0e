"""`gpuplan watch`: jobs that are planned again on each new snapshot, and whom to tell what changed."""

from typing import Annotated, Any

import typer

from api.cli.documents import open_gpuplan, print_json, read_job
from api.cli.plan import AsJson, InventoryFile, JobFile, SettingsFile
from api.cli.standard_output import console
from catalog.errors import ProviderFailure

WatchId = Annotated[str, typer.Argument(metavar="ID", help="The id of a watch.")]


def watch_commands() -> typer.Typer:
    """The commands under `gpuplan watch`."""
    app = typer.Typer(
        help="Be told when a job's plan gets cheaper or dearer, or its offer disappears.", rich_markup_mode=None
    )
    app.command("add")(add)
    app.command("list")(listing)
    app.command("show")(show)
    app.command("remove")(remove)
    app.command("check")(check)
    app.command("test")(try_channel)
    return app


def add(
    job: JobFile,
    *,
    channel: Annotated[
        list[str], typer.Option("--channel", metavar="NAME", help="Whom to tell: channels of the settings file.")
    ],
    cheaper_by: Annotated[
        str | None, typer.Option("--cheaper-by", metavar="PERCENT", help="The change worth telling; 10 unless given.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What messages call it; the job's name unless given.")] = None,
    as_json: AsJson = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Plan a job now, and watch it from here on."""
    given: dict[str, Any] = {"cheaper_by_percent": cheaper_by, "name": name}
    document = {"job": read_job(job), "channels": channel}
    document |= {key: value for key, value in given.items() if value is not None}
    answer = open_gpuplan(inventory=inventory, settings=settings).add_watch(document)
    if as_json:
        print_json(answer)
        return
    from api.render.watches import render_added

    console().print(render_added(answer))


def listing(*, as_json: AsJson = False) -> None:
    """Every watched job, and what was last told of it."""
    answer = open_gpuplan().watches()
    if as_json:
        print_json(answer)
        return
    from api.render.watches import render_watches

    console().print(render_watches(answer))


def show(watch_id: WatchId, *, as_json: AsJson = False) -> None:
    """One watched job, and all that was told of it."""
    answer = open_gpuplan().watch(watch_id)
    if as_json:
        print_json(answer)
        return
    from api.render.watches import render_watch

    console().print(render_watch(answer))


def remove(watch_id: WatchId, *, as_json: AsJson = False) -> None:
    """Watch a job no longer; what was not sent yet is not sent."""
    answer = open_gpuplan().forget_watch(watch_id)
    if as_json:
        print_json(answer)
        return
    console().print(f"{watch_id} is no longer watched")


def check(*, as_json: AsJson = False, inventory: InventoryFile = None, settings: SettingsFile = None) -> None:
    """Plan every watched job on the current prices now, and send what is due; a refresh does the same."""
    from api.render.watches import render_check, undelivered
    from providers.proxies import check_proxies

    check_proxies()
    answer = open_gpuplan(inventory=inventory, settings=settings).check_watches()
    if as_json:
        print_json(answer)
    else:
        console().print(render_check(answer))
    failed = undelivered(answer)
    if failed:
        raise ProviderFailure("; ".join(failed))


def try_channel(
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="A channel of the settings file.")],
    *,
    as_json: AsJson = False,
    settings: SettingsFile = None,
) -> None:
    """Send a test message to a channel."""
    from providers.proxies import check_proxies

    check_proxies()
    answer = open_gpuplan(settings=settings).try_channel(channel)
    if as_json:
        print_json(answer)
        return
    console().print(f"{answer['channel']} ({answer['kind']}) has taken a test message")
