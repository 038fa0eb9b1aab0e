"""`gpuplan watch`: plan jobs again on every new snapshot, wait for machines, and notify channels of changes."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import AsJson, InventoryFile, JobOrWords, SettingsFile, stated_job
from gpuplan.api.presentation.watches import render_added, render_check, render_watch, render_watches, undelivered
from gpuplan.catalog.parsing.json_object import JsonObject, without_none
from gpuplan.catalog.runtime.errors import ProviderFailure

WatchId = Annotated[str, typer.Argument(metavar="ID", help="The id of a watch.")]


def watch_commands() -> typer.Typer:
    """The commands under `gpuplan watch`."""
    app = typer.Typer(
        help="Get notified when a job's plan gets cheaper or dearer, or machines can be obtained.",
        rich_markup_mode=None,
    )
    app.command("add")(add)
    app.command("capacity")(capacity)
    app.command("list")(listing)
    app.command("show")(show)
    app.command("remove")(remove)
    app.command("check")(check)
    app.command("test")(try_channel)
    return app


def add(
    job: JobOrWords = None,
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
    document = without_none(job=stated_job(job), channels=channel, cheaper_by_percent=cheaper_by, name=name)
    answer = open_gpuplan(inventory=inventory, settings=settings).watches.add(document)
    print_answer(answer, render_added, as_json=as_json)


def capacity(
    *,
    machine: Annotated[str, typer.Option(help="The instance type to wait for: p5.48xlarge.")],
    channel: Annotated[
        list[str],
        typer.Option("--channel", metavar="NAME", help="A channel of the settings file to notify; repeatable."),
    ],
    nodes: Annotated[int, typer.Option(min=1, max=1_000, help="How many machines at once.")] = 1,
    kind: Annotated[
        str, typer.Option(help="The price kind: spot, capacity_block, or on_demand where price lists state stock.")
    ] = "spot",
    region: Annotated[list[str] | None, typer.Option(help="A region; may be repeated. Default: all priced.")] = None,
    at_least: Annotated[
        float | None, typer.Option(metavar="CHANCE", help="Notify from this chance on. Default: 0.7.")
    ] = None,
    under: Annotated[str | None, typer.Option(metavar="USD", help="The most that a node-hour may cost: 60.")] = None,
    name: Annotated[str | None, typer.Option(help="Its name in messages. Default: the machines.")] = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
) -> None:
    """Ask the clouds about machines now, and get notified when they can be obtained."""
    document: JsonObject = {"machine": machine, "nodes": nodes, "kind": kind, "channels": channel}
    given = {"region": region, "least_chance": at_least, "under_usd_per_node_hour": under, "name": name}
    document |= {key: value for key, value in given.items() if value}
    answer = open_gpuplan(settings=settings).watches.add(document)
    print_answer(answer, render_added, as_json=as_json)


def listing(*, as_json: AsJson = False) -> None:
    """List the watched jobs and machines with their last notification."""
    answer = open_gpuplan().watches.listed()
    print_answer(answer, render_watches, as_json=as_json)


def show(watch_id: WatchId, *, as_json: AsJson = False) -> None:
    """Show one watched job and its notifications."""
    answer = open_gpuplan().watches.one(watch_id)
    print_answer(answer, render_watch, as_json=as_json)


def remove(watch_id: WatchId, *, as_json: AsJson = False) -> None:
    """Stop watching a job; unsent notifications are dropped."""
    answer = open_gpuplan().watches.forget(watch_id)
    print_answer(answer, lambda _: f"{watch_id} is no longer watched", as_json=as_json)


def check(
    *,
    capacity_only: Annotated[
        bool, typer.Option("--capacity", help="Only ask the clouds about watched machines; plan no job.")
    ] = False,
    as_json: AsJson = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Plan every watched job on the current prices now, ask about watched machines, and send notifications.

    Every refresh does this too.
    """
    from gpuplan.providers.proxy_settings import check_proxies

    check_proxies()
    answer = open_gpuplan(inventory=inventory, settings=settings).watches.check(capacity_only=capacity_only)
    print_answer(answer, render_check, as_json=as_json)
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
    print_answer(answer, lambda _: f"{answer.channel} ({answer.kind}) accepted a test message", as_json=as_json)
