"""Puts logs, metrics and traces of one service process together, from start to end."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from api.telemetry.logs import configure_logs
from api.telemetry.metrics import plan_answered, process_ends, stage_timed, stage_timed_elsewhere
from api.telemetry.settings import TelemetrySettings
from api.telemetry.told import watch_plans
from catalog.errors import UnusableInput
from catalog.stages import Took, watch_stages, watch_stages_elsewhere

if TYPE_CHECKING:
    from fastapi import FastAPI

    from api.telemetry.traces import Traces


class Watching:
    """Counts plans and their stages from when it is made, and makes spans of them where traces are asked for."""

    def __init__(self, settings: TelemetrySettings) -> None:
        """Raises `UnusableInput` where the environment describes an exporter that cannot be made."""
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
        """From now on, and until it ends: a span around each of its requests, where traces are sent."""
        service.state.watching = self
        if self.traces is not None:
            # Outermost, so that the log lines of the edge belong to the trace.
            service.add_middleware(self.traces.around)

    def end(self) -> None:
        """Nothing is watched any more, and what was gathered is sent."""
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
    """Raises `UnusableInput` where the environment describes an exporter that cannot be made."""
    from api.telemetry.traces import Traces

    try:
        return Traces()
    except (ValueError, OSError) as error:
        message = f"OpenTelemetry cannot be set up: {error}; correct the OTEL_ variables, or set GPUPLAN_OTEL=0"
        raise UnusableInput.at("GPUPLAN_OTEL", message=message) from error


def start_watching(settings: TelemetrySettings) -> Watching:
    """Logs as the settings say, and everything else that a service process gathers."""
    configure_logs(log_format=settings.log_format, level=settings.log_level)
    return Watching(settings)
