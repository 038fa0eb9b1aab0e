"""Cost of observability: a log line, a counted request, a timed stage, a scrape, a probe. Prints, asserts nothing.

Run from the repository root: python -m tools.benchmarks.telemetry_cost. Lines go to a file as in a service.
"""

import io
import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from gpuplan.api.observability.log_context import carrying
from gpuplan.api.observability.readiness import CACHE_SECONDS, Health
from gpuplan.api.observability.service_metrics import exposition, request_answered
from gpuplan.api.observability.service_telemetry import Watching
from gpuplan.api.observability.store_metrics import StoreFigures
from gpuplan.api.observability.structured_logs import configure_logs
from gpuplan.api.observability.telemetry_settings import TelemetrySettings
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.catalog.runtime.stage_timing import stage

#: As many as a service has.
ROUTES = 80
FIELDS = {
    "method": "POST",
    "path": "/v1/plans",
    "route": "/v1/plans",
    "status": 200,
    "milliseconds": 12.3,
    "identity": "key-1",
}


def microseconds(call: Callable[[], object], times: int, repeats: int = 7) -> float:
    """The median over `repeats` of the mean time of a call."""
    means = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(times):
            call()
        means.append((time.perf_counter() - began) / times * 1e6)
    return statistics.median(means)


def logging_to(stream: io.TextIOBase, log_format: str) -> Callable[[], object]:
    """One line as each request writes it."""
    configure_logs(log_format="json" if log_format == "json" else "text", stream=stream)  # type: ignore[arg-type]
    log = logging.getLogger("gpuplan.http")
    return lambda: log.info("request", extra={"fields": FIELDS})


def one_stage() -> None:
    watched: AbstractContextManager[object] = stage("parse")
    with watched:
        pass


def show(what: str, value: float) -> None:
    print(f"{what:<58} {value:12,.1f}")


def main() -> None:
    print(f"{'what':<58} {'microseconds':>12}")
    with tempfile.TemporaryDirectory() as folder:
        with (
            (Path(folder) / "log").open("w", encoding="utf-8") as file,
            carrying(request_id="4286f29c632f47f8b1a486f5012bf4d6"),
        ):
            for log_format in ("json", "text"):
                show(f"a request's log line ({log_format})", microseconds(logging_to(file, log_format), 5_000))
        show("a request counted", microseconds(lambda: request_answered("GET", "/v1/offers", 200, 0.001), 20_000))
        show("a stage that nobody watches", microseconds(one_stage, 50_000))
        watching = Watching(TelemetrySettings())
        show("a stage that is timed", microseconds(one_stage, 20_000))
        for i in range(ROUTES):
            for status in (200, 404):
                request_answered("GET", f"/v1/route-{i}", status, 0.001)
        gpuplan = open_services(Environment(database_url=f"sqlite:///{folder}/gpuplan.sqlite3"))
        gpuplan.warm_up()
        figures = StoreFigures(gpuplan)
        lines = exposition(figures).count(b"\n")
        show(f"a scrape of {lines:,} lines", microseconds(lambda: exposition(figures), 5))
        fresh = microseconds(lambda: list(StoreFigures(gpuplan).collect()), 5)
        show(f"the store's figures on a new snapshot of {len(gpuplan.context.columns()):,} offers", fresh)
        figures._until = 0.0
        show("the store's figures again", microseconds(figures._look, 5))
        health = Health(gpuplan, figures, stale_after_hours=49)
        show("readiness looked up", microseconds(health._look, 20))
        show(f"readiness within {CACHE_SECONDS:g} s", microseconds(health.report, 5_000))
        watching.end()


if __name__ == "__main__":
    main()
