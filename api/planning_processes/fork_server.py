"""Where planning processes are forked from: a process of its own that has loaded the planner once and does nothing else."""

import multiprocessing
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext

_LOADED = ["api.cli.main", "api.planning_processes.child", "api.documents.job", "planner.document", "planner.plan"]


def begin_loading() -> ForkServerContext:
    """Starts it, where it does not run yet, and does not wait until it has loaded everything.

    Processes are not forked from the service itself, whose threads hold locks.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    forkserver.ensure_running()
    return context
