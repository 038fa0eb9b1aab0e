"""`gpuplan worker`: run portfolios and refreshes from the PostgreSQL task queue."""

import logging
from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan
from gpuplan.api.cli.plan import InventoryFile, SettingsFile
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.runtime.extras import require_extra


def worker(
    *,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Most tasks at the same time.")] = 4,
    queues: Annotated[str, typer.Option(help="Queues to work on: runs,refreshes.")] = "runs,refreshes",
    grace: Annotated[
        float, typer.Option(min=0, max=3600, help="Seconds that running tasks may take after a stop signal.")
    ] = 20.0,
    stalled_after: Annotated[
        float,
        typer.Option(
            "--stalled-after", min=1, max=3600, help="Seconds without a heartbeat after which a worker counts as dead."
        ),
    ] = 30.0,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Run tasks from the queue until stopped: portfolios, refreshes and maintenance."""
    require_extra("worker", "procrastinate")
    gpuplan = open_gpuplan(inventory=inventory, settings=settings)
    if not gpuplan.context.has_queue:
        message = "a worker needs PostgreSQL, where several processes share a queue; accepted: postgresql://..."
        raise UnusableInput.at("GPUPLAN_DATABASE_URL", message=message)
    import asyncio

    from gpuplan.api.jobs.queue.queue_worker import check_queues, work
    from gpuplan.api.observability.structured_logs import configure_logs
    from gpuplan.api.observability.telemetry_settings import telemetry_settings
    from gpuplan.api.schemas.settings_file import Environment
    from gpuplan.providers.proxy_settings import check_proxies
    from gpuplan.providers.refresh.memory_release import release_memory

    check_proxies()
    telemetry = telemetry_settings()
    names = [queue.strip() for queue in queues.split(",")]
    check_queues(names)
    configure_logs(log_format=telemetry.log_format, level=telemetry.log_level)
    # procrastinate logs two lines per task, and maintenance tasks run every ten seconds: useful only for debugging.
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    # The connection pool logs each of its attempts; the worker already reports a lost database once per attempt.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    release_memory()
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
