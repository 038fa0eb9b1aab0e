"""Set-up of logs, metrics and traces of a service process, from start to end."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from gpuplan.api.observability.plan_observers import watch_plans
from gpuplan.api.observability.service_metrics import plan_answered, process_ends, stage_timed, stage_timed_elsewhere
from gpuplan.api.observability.structured_logs import configure_logs
from gpuplan.api.observability.telemetry_settings import TelemetrySettings
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.runtime.stage_timing import Took, watch_stages, watch_stages_elsewhere

if TYPE_CHECKING:
    from fastapi import FastAPI

    from gpuplan.api.observability.traces import Traces


class Watching:
    """Counts plans and their stages from its creation on, and creates spans if traces are enabled."""

    def __init__(self, settings: TelemetrySettings) -> None:
        """Raises `UnusableInput` if the environment describes an invalid exporter."""
        self.traces = new_traces() if settings.traces else None
        self._ends: tuple[Callable[[], None], ...] = (
            watch_plans(plan_answered),
            watch_stages(self._stage),
            watch_stages_elsewhere(self._stage_elsewhere),
        )

    def _stage(self, name: str) -> AbstractContextManager[object]:
        return stage_timed(name) if self.traces is None else _traced(name, self.traces)

    def _stage_elsewhere(self, took: Took) -> None:
        stage_timed_elsewhere(took.name, took.seconds)
        if self.traces is not None:
            self.traces.stage_elsewhere(took)

    def watch(self, service: "FastAPI") -> None:
        """Trace each request of the service until `end`, if traces are enabled."""
        service.state.watching = self
        if self.traces is not None:
            # Outermost, so that the log lines of the middleware belong to the trace.
            service.add_middleware(self.traces.around)

    def end(self) -> None:
        """Stop observing and send what was gathered."""
        for end in self._ends:
            end()
        if self.traces is not None:
            self.traces.end()
        process_ends()


@contextmanager
def _traced(name: str, traces: "Traces") -> Iterator[None]:
    with stage_timed(name), traces.stage(name):
        yield


def new_traces() -> "Traces":
    """Raises `UnusableInput` if the environment describes an invalid exporter."""
    from gpuplan.api.observability.traces import Traces

    try:
        return Traces()
    except (ValueError, OSError) as error:
        message = f"OpenTelemetry cannot be set up: {error}; correct the OTEL_ variables, or set GPUPLAN_OTEL=0"
        raise UnusableInput.at("GPUPLAN_OTEL", message=message) from error


def start_watching(settings: TelemetrySettings) -> Watching:
    """Configure logs by the settings, and start all other telemetry of a service process."""
    configure_logs(log_format=settings.log_format, level=settings.log_level)
    return Watching(settings)
