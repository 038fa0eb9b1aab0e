"""`gpuplan worker`: takes long runs and refreshes from the queue that a PostgreSQL database carries."""

import logging
from typing import Annotated

import typer

from api.cli.documents import open_gpuplan
from api.cli.plan import InventoryFile, SettingsFile
from catalog.errors import UnusableInput


def worker(
    *,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="How many tasks at once.")] = 4,
    queues: Annotated[str, typer.Option(help="Which queues: runs,refreshes.")] = "runs,refreshes",
    grace: Annotated[
        float, typer.Option(min=0, max=3600, help="Seconds that tasks may still take when it is told to stop.")
    ] = 20.0,
    stalled_after: Annotated[
        float,
        typer.Option("--stalled-after", min=1, max=3600, help="Seconds without a sign after which a worker is dead."),
    ] = 30.0,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Take tasks from the queue until told to stop: portfolios, refreshes, what keeps the queue in order."""
    gpuplan = open_gpuplan(inventory=inventory, settings=settings)
    if not gpuplan.has_queue:
        message = "a worker needs PostgreSQL, where several processes share a queue; accepted: postgresql://..."
        raise UnusableInput.at("GPUPLAN_DATABASE_URL", message=message)
    import asyncio

    from api.settings import Environment
    from api.tasks.worker import check_queues, work
    from api.telemetry.logs import configure_logs
    from api.telemetry.settings import telemetry_settings
    from providers.memory import keep_small
    from providers.proxies import check_proxies

    check_proxies()
    telemetry = telemetry_settings()
    names = [each.strip() for each in queues.split(",")]
    check_queues(names)
    configure_logs(log_format=telemetry.log_format, level=telemetry.log_level)
    # Two lines per task, every ten seconds for those that keep the queue in order, are for whoever looks for a fault.
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    # It speaks at each of its own attempts; that the database is gone is said once per attempt of the worker.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    keep_small()
    gpuplan.warm_up()
    asyncio.run(
        work(
            gpuplan,
            queues=names,
            concurrency=concurrency,
            refresh_cron=Environment().refresh_cron,
            stalled_seconds=stalled_after,
            grace_seconds=grace,
        )
    )
