"""The fork server of planning processes: a separate process that has loaded the planner once."""

import multiprocessing
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext

_LOADED = [
    "gpuplan.api.cli.main",
    "gpuplan.api.jobs.planning_processes.planning_process",
    "gpuplan.api.schemas.job",
    "gpuplan.planner.serialization.plan_document",
    "gpuplan.planner.planning",
]


def begin_loading() -> ForkServerContext:
    """Start the fork server unless it is running, without waiting until it has loaded everything.

    Processes are not forked from the service itself, because its threads hold locks.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    forkserver.ensure_running()
    return context
