"""Traces, if the environment enables them: spans of requests and plan stages, sent by OTLP over HTTP.

The standard `OTEL_*` variables configure the exporter. A separate thread sends spans from a bounded buffer: a slow or
unavailable collector costs spans, never an answer. Imported only if traces are sent.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuplan.api.observability.log_context import bound
from gpuplan.api.observability.route_templates import route_of
from gpuplan.api.observability.structured_logs import TRACE_FIELDS
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.catalog.runtime.stage_timing import Took

log = logging.getLogger("gpuplan.traces")

#: Probes and scrapes would dominate the traces.
NOT_TRACED = "/healthz,/readyz,/metrics"
#: Time for a stopping service to send its last spans.
FLUSH_SECONDS = 3.0
#: Long enough for a remote collector, and short enough to wait for.
_TRY_SECONDS = 3.0


class Traces:
    """The traces of this process, between `started` and `end`."""

    def __init__(self) -> None:
        """Spans are created and sent from now on. Raises `ValueError` for an invalid exporter in the environment."""
        ours = Resource({SERVICE_NAME: "gpuplan", SERVICE_VERSION: gpuplan_version()})
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
        resource = Resource.create(dict(ours.merge(OTELResourceDetector().detect()).attributes))
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("gpuplan", gpuplan_version())
        TRACE_FIELDS.append(current_ids)

    def around(self, app: ASGIApp) -> ASGIApp:
        """The application with a span per request, which continues the trace of a `traceparent` header."""
        traced: ASGIApp = OpenTelemetryMiddleware(
            _NamedByRoute(app),
            excluded_urls=NOT_TRACED,
            tracer_provider=self._provider,
            exclude_spans=["receive", "send"],
        )
        return traced

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A span around one stage of a plan."""
        with self._tracer.start_as_current_span(f"gpuplan.{name}", attributes=_carried()):
            yield

    def stage_elsewhere(self, took: Took) -> None:
        """A span of one stage of a plan that another process timed."""
        span = self._tracer.start_span(f"gpuplan.{took.name}", attributes=_carried(), start_time=took.began_unix_ns)
        span.end(end_time=took.began_unix_ns + round(took.seconds * 1e9))

    def end(self) -> None:
        """Send the remaining spans, for a few seconds at most."""
        TRACE_FIELDS.remove(current_ids)
        last = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        last.start()
        last.join(FLUSH_SECONDS)
        if last.is_alive():
            log.warning("the last spans could not be sent within %g seconds", FLUSH_SECONDS)


def why_not_taken() -> str:
    """Send an empty batch to the collector: empty if it is accepted, else the reason, without the address.

    Waits for a few seconds at most. Raises `ValueError` or `OSError` for an invalid exporter in the environment.
    """
    heard = _Heard()
    spoken = logging.getLogger(OTLPSpanExporter.__module__)
    exporter = OTLPSpanExporter(timeout=_TRY_SECONDS)
    spoken.addHandler(heard)
    before, spoken.propagate = spoken.propagate, False
    try:
        if exporter.export([]) is SpanExportResult.SUCCESS:
            return ""
    finally:
        spoken.removeHandler(heard)
        spoken.propagate = before
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return heard.why or "no answer"


class _Heard(logging.Handler):
    """Captures the exporter's log, the only place where it reports failures."""

    def __init__(self) -> None:
        super().__init__()
        self.why = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first reason; later ones only report that it gave up."""
        given = record.args if isinstance(record.args, tuple) else ()
        errors = [_cause(argument) for argument in given if isinstance(argument, Exception)]
        self.why = self.why or (errors[0] if errors else record.getMessage())


def _cause(error: Exception) -> str:
    """The cause of a connection error; the error itself contains the address, which may hold a token."""
    under = getattr(error.args[0], "reason", None) if error.args else None
    if under is not None:
        return str(under).rpartition(": ")[2]
    return str(error) if type(error) is OSError else type(error).__name__


def current_ids() -> dict[str, str]:
    """The ids of the current trace and span for a log record; empty outside of a trace."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


def _carried() -> dict[str, str]:
    return {f"gpuplan.{name}": str(value) for name, value in bound().items()}


class _NamedByRoute:
    """ASGI middleware that names the request's span by its route, since paths would give one name per plan."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`, inside the span."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; the route is known when the response starts."""

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                span, route = trace.get_current_span(), route_of(scope)
                span.update_name(f"{scope['method']} {route}")
                span.set_attribute("http.route", route)
                span.set_attribute("gpuplan.request_id", scope.get("request_id", ""))
            await send(message)

        await self.app(scope, receive, named if scope["type"] == "http" else send)
