"""Traces, sent to a collector on this machine over a real socket, or to one that is away."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.observability.service_telemetry import Watching
from gpuplan.api.observability.structured_logs import TRACE_FIELDS
from gpuplan.api.observability.telemetry_settings import TelemetrySettings
from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.observability.conftest import Lines

pytestmark = pytest.mark.slow(reason="starts the service")

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


class Collector:
    """Takes what is sent by OTLP over HTTP."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield collector, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def traced(gpuplan: Services, served: Served) -> Iterator[httpx.Client]:
    """A service that sends traces, and ends them when it ends."""
    watching, service = Watching(TelemetrySettings(traces=True)), create_service(gpuplan)
    watching.watch(service)
    with served(service) as client:
        yield client


def test_a_request_and_the_stages_of_its_plan_go_on_with_the_trace_of_who_asks(
    gpuplan: Services, served: Served, job: dict[str, Any], lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as (collector, url):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        with traced(gpuplan, served) as client:
            answer = client.post(
                "/v1/plans?frontier=true", json=job, headers={"traceparent": PARENT, "x-request-id": "mine"}
            )
            answer.raise_for_status()
            client.get("/healthz")
    by_name = {span.name: span for span in collector.spans}
    stages = [f"gpuplan.{name}" for name in ("parse", "candidates", "solve", "ladder", "explain", "store")]
    assert set(by_name) == {"POST /v1/plans", *stages}
    request = by_name["POST /v1/plans"]
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert request.parent_span_id.hex() == "00f067aa0ba902b7"
    assert all(by_name[name].parent_span_id == request.span_id for name in stages)
    attributes = {attribute.key: attribute.value.string_value for attribute in request.attributes}
    assert attributes["http.route"] == "/v1/plans"
    assert attributes["gpuplan.request_id"] == "mine"
    resource = {
        attribute.key: attribute.value.string_value
        for attribute in collector.requests[0].resource_spans[0].resource.attributes
    }
    assert resource["service.name"] == "gpuplan"
    [line] = [line for line in lines() if line["logger"] == "gpuplan.http"]
    assert (line["trace_id"], line["span_id"]) == (TRACE, request.span_id.hex())


def test_a_collector_that_is_away_costs_no_answer(
    gpuplan: Services, served: Served, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("gpuplan.api.observability.traces.FLUSH_SECONDS", 0.2)
    with traced(gpuplan, served) as client:
        assert client.post("/v1/plans", json=job).status_code == 200
    assert not TRACE_FIELDS


def test_an_exporter_that_is_described_wrongly_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "100000")
    with pytest.raises(UnusableInput, match="GPUPLAN_OTEL: OpenTelemetry cannot be set up"):
        Watching(TelemetrySettings(traces=True))


def test_nothing_of_opentelemetry_is_loaded_unless_traces_are_sent() -> None:
    program = "import sys, gpuplan.api.http.http_service, gpuplan.api.observability.service_telemetry; sys.exit('opentelemetry.sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
