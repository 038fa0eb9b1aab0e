"""How the service is watched: its logs, and whether traces arrive where they are sent."""

from api.doctor.finding import Finding, ok, warning
from api.telemetry.settings import telemetry_settings
from api.telemetry.watching import new_traces


def telemetry() -> list[Finding]:
    """Logs, drain and traces. Raises `UnusableInput` at each variable that cannot be used."""
    found = telemetry_settings()
    said = f"logs as {found.log_format}; prices are old after {found.stale_after_hours:g} hours"
    if not found.traces:
        return [ok("telemetry", f"{said}; no traces (OTEL_EXPORTER_OTLP_ENDPOINT is not set)")]
    return [ok("telemetry", f"{said}; traces are sent by OTLP"), _traces()]


def _traces() -> Finding:
    """A collector that is away costs spans and never an answer, so it is no reason to call the set-up broken."""
    new_traces().end()
    from api.telemetry.traces import why_not_taken

    why = why_not_taken()
    if not why:
        return ok("traces", "the collector takes them")
    advice = "correct the OTEL_EXPORTER_OTLP_ variables, start the collector, or set GPUPLAN_OTEL=0"
    return warning("traces", f"the collector does not take them, and they are lost: {why}", advice)
