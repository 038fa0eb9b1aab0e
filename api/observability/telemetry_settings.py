"""Telemetry settings from the environment; invalid variables are refused by name."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpuplan.api.security.web_addresses import is_web_address
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

LogFormat = Literal["json", "text", "auto"]

LEVELS = ("debug", "info", "warning", "error")
_FORMATS: dict[str, LogFormat] = {"json": "json", "text": "text", "auto": "auto"}
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOL = "http/protobuf"
#: prometheus_client's variable for the directory in which processes count together.
MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
_YES_NO = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}

#: One missed night is normal, two are a fault: a nightly refresh keeps prices at most a day old.
USUAL_STALE_AFTER_HOURS = 49.0
#: Longer than any load balancer takes to notice that this process stops.
MOST_DRAIN_SECONDS = 3600.0
#: Requests still open then, for example because the client reads nothing, are cut so that the process can end.
USUAL_FINISH_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Log format, price age limit, shutdown times, and whether traces are sent.

    `traces` None follows the standard `OTEL_EXPORTER_OTLP_ENDPOINT`.
    """

    log_format: LogFormat = "auto"
    log_level: int = logging.INFO
    stale_after_hours: float = USUAL_STALE_AFTER_HOURS
    drain_seconds: float = 0.0
    finish_seconds: float = USUAL_FINISH_SECONDS
    traces: bool = False


def telemetry_settings(environment: Mapping[str, str] | None = None) -> TelemetrySettings:
    """Read the environment; an empty variable counts as unset.

    Raises `UnusableInput` that names every invalid variable and what is accepted.
    """
    given = {name: text.strip() for name, text in (os.environ if environment is None else environment).items()}
    faults: list[Fault] = []

    def read[Value](name: str, otherwise: Value, reading: Callable[[str], Value], accepted: str) -> Value:
        text = given.get(name, "")
        try:
            return reading(text) if text else otherwise
        except (ValueError, KeyError):
            faults.append(Fault((name,), f"{text[:80]!r} cannot be used; accepted: {accepted}"))
            return otherwise

    telemetry_settings = TelemetrySettings(
        log_format=read("GPUPLAN_LOG_FORMAT", "auto", lambda text: _FORMATS[text.lower()], ", ".join(_FORMATS)),
        log_level=read("GPUPLAN_LOG_LEVEL", logging.INFO, _level, ", ".join(LEVELS)),
        stale_after_hours=read(
            "GPUPLAN_STALE_AFTER_HOURS", USUAL_STALE_AFTER_HOURS, _between(0.01, 87_600), "0.01 to 87600 hours"
        ),
        drain_seconds=read("GPUPLAN_DRAIN_SECONDS", 0.0, _between(0, MOST_DRAIN_SECONDS), "0 to 3600 seconds"),
        finish_seconds=read("GPUPLAN_FINISH_SECONDS", USUAL_FINISH_SECONDS, _between(0.1, 86_400), "0.1 to 86400"),
        traces=read("GPUPLAN_OTEL", _exporter_named(given), lambda text: _YES_NO[text.lower()], ", ".join(_YES_NO)),
    )
    if telemetry_settings.traces:
        faults += _exporter_faults(given)
    faults += _counting_faults(given)
    if faults:
        raise UnusableInput(*faults)
    return telemetry_settings


def _level(text: str) -> int:
    if text.lower() not in LEVELS:
        raise ValueError(text)
    return logging.getLevelNamesMapping()[text.upper()]


def _between(least: float, most: float) -> Callable[[str], float]:
    def reading(text: str) -> float:
        value = float(text)
        if not least <= value <= most:
            raise ValueError(text)
        return value

    return reading


def _exporter_named(given: Mapping[str, str]) -> bool:
    """As in OpenTelemetry's specification."""
    if given.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    return any(given.get(name) for name in _ENDPOINTS)


def _exporter_faults(given: Mapping[str, str]) -> list[Fault]:
    """Errors that the exporter would only show by losing its first spans; addresses may contain tokens and are not
    shown.
    """
    no_address = "is not a web address; accepted: http://collector:4318 or https://..."
    faults = [Fault((name,), no_address) for name in _ENDPOINTS if given.get(name) and not is_web_address(given[name])]
    return faults + [
        Fault((name,), f"{given[name][:40]!r} is not supported; accepted: {_PROTOCOL}")
        for name in ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        if given.get(name, "") not in {"", _PROTOCOL}
    ]


def check_counting(environment: Mapping[str, str] = os.environ) -> None:
    """Raises `UnusableInput` if the directory for common counting does not exist."""
    if faults := _counting_faults({MULTIPROCESS: environment.get(MULTIPROCESS, "").strip()}):
        raise UnusableInput(*faults)


def _counting_faults(given: Mapping[str, str]) -> list[Fault]:
    """Metrics of several processes are counted in files, which are created when the first metric is named."""
    folder = given.get(MULTIPROCESS, "")
    if not folder or (Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        return []
    return [Fault((MULTIPROCESS,), f"{folder[:200]!r} is not a writable directory; accepted: an empty one")]
