"""gpuplan's command line as a process of its own, in a release that ships few prices and knows a run that waits for a file.

Everything that a service and a worker import is imported here, once, by the server that these processes are forked from.
"""

import os
import sys
import time
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import catalog.embedded
import catalog.store
from api.cli.main import main
from api.runs.execute import KINDS
from api.runs.pulse import Pulse
from catalog.runs import Run
from tests.providers.fake_clouds import SHIPPED_AT, price, snapshot

IMPORTED_ONCE = ("api.cli.serve", "api.cli.worker", "api.http.server", "api.http.service", "api.tasks.worker")
SHIPPED = snapshot(
    *(
        price(each, observed_at=SHIPPED_AT, source="shipped", usd_micros=96_000_000)
        for each in ("us-east-1", "us-west-2")
    )
)


def gated(_: object, run: Run, pulse: Pulse) -> dict[str, Any]:
    """Writes down who began it, then waits for its gate; the answer is who ended it."""
    with Path(run.request["log"]).open("a", encoding="utf-8") as log:
        log.write(f"{os.getpid()}\n")
    while not Path(run.request["gate"]).exists() and not pulse.cancelled():
        pulse.tell({"waits": True})
        time.sleep(0.02)
    return {"ended_by": os.getpid()}


def started(arguments: tuple[str, ...], environment: dict[str, str], log: Path) -> BaseProcess:
    """gpuplan with these arguments in exactly this environment; what it says goes to the file."""
    processes = get_context("forkserver")
    processes.set_forkserver_preload([__name__, *IMPORTED_ONCE])
    process = processes.Process(target=_run, args=(arguments, environment, log))
    process.start()
    return process


def _run(arguments: tuple[str, ...], environment: dict[str, str], log: Path) -> None:
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    catalog.store.embedded_snapshot_id = lambda: SHIPPED.id
    catalog.embedded.embedded_snapshot = lambda: SHIPPED  # type: ignore[assignment]
    KINDS["gated"] = gated
    sys.exit(main(list(arguments)))
