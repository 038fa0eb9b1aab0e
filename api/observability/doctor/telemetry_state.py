"""Telemetry of the service: its logs, and whether traces reach their collector."""

from gpuplan.api.observability.doctor.finding import Finding, ok, warning
from gpuplan.api.observability.telemetry_settings import telemetry_settings


def telemetry() -> list[Finding]:
    """Logs, drain time and traces. Raises `UnusableInput` at each invalid variable."""
    settings = telemetry_settings()
    summary = f"logs as {settings.log_format}; prices are old after {settings.stale_after_hours:g} hours"
    if not settings.traces:
        return [ok("telemetry", f"{summary}; no traces (OTEL_EXPORTER_OTLP_ENDPOINT is not set)")]
    return [ok("telemetry", f"{summary}; traces are sent by OTLP"), _traces()]


def _traces() -> Finding:
    """An unavailable collector costs spans, never an answer, so the installation is not broken."""
    from gpuplan.api.observability.service_telemetry import new_traces
    from gpuplan.api.observability.traces import why_not_taken

    new_traces().end()

    why = why_not_taken()
    if not why:
        return ok("traces", "the collector accepts them")
    advice = "correct the OTEL_EXPORTER_OTLP_ variables, start the collector, or set GPUPLAN_OTEL=0"
    return warning("traces", f"the collector does not accept them, and they are lost: {why}", advice)
