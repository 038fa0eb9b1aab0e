"""gpuplan in processes of their own that need not import it: forked from a server that has done so once for all of them."""

import os
import sys
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from gpuplan.api.cli.main import main

#: Two seconds of every process. There is one server, so this holds what any of them needs.
IMPORTED_ONCE = (
    __name__,
    "gpuplan.api.cli.refresh",
    "gpuplan.api.cli.serve",
    "gpuplan.api.cli.worker",
    "gpuplan.api.http.graceful_server",
    "gpuplan.api.http.http_service",
    "gpuplan.api.jobs.queue.queue_worker",
    "gpuplan.providers.azure.arm_client",
    "tests.e2e.small_process",
    "tests.e2e.unpaced_process",
)


def forked(
    arguments: tuple[str, ...], environment: Mapping[str, str], output: Path, *, world: Callable[[], None]
) -> BaseProcess:
    """gpuplan with these arguments in exactly this environment; `world` changes what surrounds it before it begins.

    What it writes to standard output goes to the file `said`, errors beside it to one that ends in `.errors`.
    """
    processes = get_context("forkserver")
    processes.set_forkserver_preload(list(IMPORTED_ONCE))
    process = processes.Process(target=_run, args=(arguments, environment, output, world))
    process.start()
    return process


def _run(arguments: tuple[str, ...], environment: Mapping[str, str], output: Path, world: Callable[[], None]) -> None:
    for descriptor, path in ((1, output), (2, output.with_name(f"{output.name}.errors"))):
        with path.open("wb") as file:
            os.dup2(file.fileno(), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    world()
    sys.exit(main(list(arguments)))
