"""`gpuplan watch`: plan jobs again on every new snapshot, and notify channels of changes."""

from typing import Annotated, Any

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_json, read_job
from gpuplan.api.cli.plan import AsJson, InventoryFile, JobFile, SettingsFile
from gpuplan.api.cli.standard_output import console
from gpuplan.catalog.runtime.errors import ProviderFailure

WatchId = Annotated[str, typer.Argument(metavar="ID", help="The id of a watch.")]


def watch_commands() -> typer.Typer:
    """The commands under `gpuplan watch`."""
    app = typer.Typer(
        help="Get notified when a job's plan gets cheaper or dearer, or its offer disappears.", rich_markup_mode=None
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
        list[str],
        typer.Option("--channel", metavar="NAME", help="A channel of the settings file to notify; repeatable."),
    ],
    cheaper_by: Annotated[
        str | None,
        typer.Option("--cheaper-by", metavar="PERCENT", help="Notify from this change of cost on. Default: 10."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its name in messages. Default: the job's name.")] = None,
    as_json: AsJson = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Plan a job now, and watch it from now on."""
    given: dict[str, Any] = {"cheaper_by_percent": cheaper_by, "name": name}
    document = {"job": read_job(job), "channels": channel}
    document |= {key: value for key, value in given.items() if value is not None}
    answer = open_gpuplan(inventory=inventory, settings=settings).watches.add(document)
    if as_json:
        print_json(answer)
        return
    from gpuplan.api.cli.sections import print_sections
    from gpuplan.api.presentation.watches import render_added

    print_sections(render_added(answer))


def listing(*, as_json: AsJson = False) -> None:
    """List the watched jobs with their last notification."""
    answer = open_gpuplan().watches.listed()
    if as_json:
        print_json(answer)
        return
    from gpuplan.api.cli.sections import print_sections
    from gpuplan.api.presentation.watches import render_watches

    print_sections(render_watches(answer))


def show(watch_id: WatchId, *, as_json: AsJson = False) -> None:
    """Show one watched job and its notifications."""
    answer = open_gpuplan().watches.one(watch_id)
    if as_json:
        print_json(answer)
        return
    from gpuplan.api.cli.sections import print_sections
    from gpuplan.api.presentation.watches import render_watch

    print_sections(render_watch(answer))


def remove(watch_id: WatchId, *, as_json: AsJson = False) -> None:
    """Stop watching a job; unsent notifications are dropped."""
    answer = open_gpuplan().watches.forget(watch_id)
    if as_json:
        print_json(answer)
        return
    console().print(f"{watch_id} is no longer watched")


def check(*, as_json: AsJson = False, inventory: InventoryFile = None, settings: SettingsFile = None) -> None:
    """Plan every watched job on the current prices now, and send notifications. Every refresh does this too."""
    from gpuplan.api.cli.sections import print_sections
    from gpuplan.api.presentation.watches import render_check, undelivered
    from gpuplan.providers.proxy_settings import check_proxies

    check_proxies()
    answer = open_gpuplan(inventory=inventory, settings=settings).watches.check()
    if as_json:
        print_json(answer)
    else:
        print_sections(render_check(answer))
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
    from gpuplan.providers.proxy_settings import check_proxies

    check_proxies()
    answer = open_gpuplan(settings=settings).watches.try_channel(channel)
    if as_json:
        print_json(answer)
        return
    console().print(f"{answer['channel']} ({answer['kind']}) accepted a test message")
