"""Logs: one line per record, whole, with what its piece of work carries, from every logger alike."""

import io
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.observability import structured_logs
from gpuplan.api.observability.log_context import bound, carrying
from gpuplan.api.observability.structured_logs import configure_logs
from gpuplan.api.observability.telemetry_settings import telemetry_settings
from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.observability.conftest import Lines

log = logging.getLogger("gpuplan.test")


def test_a_request_is_one_line_with_its_id_route_status_and_time(
    lines: Lines, gpuplan: Services, served: Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
) -> None:
    with served(create_service(gpuplan)) as client:
        client.get("/v1/plans/plan-0?x=secret", headers={"x-request-id": "mine"})
        client.get("/v1/%0Anope")
        client.get("/healthz")
    request_lines = [line for line in lines() if line["logger"] == "gpuplan.http"]
    assert [(line["route"], line["status"]) for line in request_lines] == [
        ("/v1/plans/{plan_id}", 422),
        ("unmatched", 404),
    ]
    first = request_lines[0]
    assert (first["request_id"], first["method"], first["path"]) == ("mine", "GET", "/v1/plans/plan-0")
    assert first["identity"] == "local"
    assert first["milliseconds"] > 0
    assert "secret" not in str(request_lines)


def test_work_in_the_background_carries_its_run(lines: Lines, gpuplan: Services) -> None:
    with Heartbeat(gpuplan.store.runs, "run-7"):
        log.info("busy")
    log.info("idle")
    assert [line.get("run_id") for line in lines()] == ["run-7", None]


def test_what_is_carried_ends_with_its_work() -> None:
    with carrying(request_id="a"), carrying(run_id="b"):
        assert bound() == {"request_id": "a", "run_id": "b"}
    assert bound() == {}


def test_libraries_speak_through_the_same_stream_and_from_warnings_on(lines: Lines) -> None:
    configure_level = logging.getLogger("botocore.auth")
    configure_level.debug("AWS4-HMAC secret")
    configure_level.warning("credentials expire")
    logging.getLogger("uvicorn.error").info("started")
    assert [(line["logger"], line["level"]) for line in lines()] == [
        ("botocore.auth", "warning"),
        ("uvicorn.error", "info"),
    ]


def test_no_level_makes_libraries_tell_what_they_sign(restored_logging: None) -> None:
    stream = io.StringIO()
    configure_logs(log_format="json", level=logging.DEBUG, stream=stream)
    logging.getLogger("botocore.auth").debug("AWS4-HMAC secret")
    log.debug("ours")
    assert "secret" not in stream.getvalue()
    assert "ours" in stream.getvalue()


def test_secrets_are_taken_out_of_tracebacks_too(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    def scrub(_: Any, __: str, event: Any) -> Any:
        return {
            key: value.replace("hunter2", "***") if isinstance(value, str) else value for key, value in event.items()
        }

    monkeypatch.setattr(structured_logs, "SCRUBBERS", [scrub])
    try:
        raise ZeroDivisionError("password hunter2")
    except ZeroDivisionError:
        log.exception("with hunter2", extra={"fields": {"url": "x://u:hunter2@h"}})
    [line] = lines()
    assert "hunter2" not in str(line)
    assert "ZeroDivisionError: password ***" in line["exception"]


@given(texts=st.lists(st.text(st.characters(codec=None)), min_size=1, max_size=3))
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_record_is_one_line_whatever_is_in_it(restored_logging: None, log_format: Any, texts: list[str]) -> None:
    stream = io.StringIO()
    configure_logs(log_format=log_format, stream=stream)
    log.info("said %s", texts[0], extra={"fields": {f"part {i}": text for i, text in enumerate(texts)}})
    written = stream.getvalue()
    assert written.endswith("\n")
    assert written.count("\n") == 1
    assert written.encode()
    if log_format == "text":
        assert "\x1b" not in written
        assert len(written.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("GPUPLAN_LOG_FORMAT", "xml", "json, text, auto"),
        ("GPUPLAN_LOG_LEVEL", "loud", "debug, info, warning, error"),
        ("GPUPLAN_STALE_AFTER_HOURS", "nan", "0.01 to 87600"),
        ("GPUPLAN_DRAIN_SECONDS", "-1", "0 to 3600"),
        ("GPUPLAN_FINISH_SECONDS", "soon", "0.1 to 86400"),
        ("GPUPLAN_OTEL", "perhaps", "1, yes, true"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "http://"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(name: str, value: str, accepted: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        telemetry_settings({"GPUPLAN_OTEL": "1", name: value})
    assert refused.value.faults[0].field == name
    assert accepted in str(refused.value)


def test_traces_follow_the_standard_variables_unless_told_otherwise() -> None:
    named = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    assert telemetry_settings(named).traces
    assert not telemetry_settings({}).traces
    assert not telemetry_settings(named | {"GPUPLAN_OTEL": "0"}).traces
    assert not telemetry_settings(named | {"OTEL_SDK_DISABLED": "true"}).traces
    assert telemetry_settings({"GPUPLAN_OTEL": "yes", "GPUPLAN_LOG_FORMAT": ""}).traces


def test_what_a_record_says_of_its_own_goes_before_what_its_work_carries(lines: Lines) -> None:
    with carrying(request_id="of the work", run_id="r"):
        log.info("done", extra={"fields": {"request_id": "of the record"}})
    [line] = lines()
    assert (line["request_id"], line["run_id"]) == ("of the record", "r")
