"""All checks of the diagnosis, in order; a check that cannot run is a finding too."""

from collections.abc import Callable, Mapping
from pathlib import Path

from gpuplan.api.observability.doctor import (
    cloud_credentials,
    configuration,
    database_state,
    machine,
    network,
)
from gpuplan.api.observability.doctor.finding import Examination, Finding, looked_at
from gpuplan.api.observability.telemetry_settings import USUAL_STALE_AFTER_HOURS, telemetry_settings
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.catalog.runtime.errors import UnusableInput


def examine(given: Mapping[str, Path], *, online: bool, host: str, port: int) -> Examination:
    """All findings; `given` replaces files named by the environment."""

    def everything() -> list[Finding]:
        return _examined(Environment().model_copy(update=dict(given)), online=online, host=host, port=port)

    findings = looked_at("environment", everything)
    is_broken = any(finding.status == "broken" for finding in findings)
    return Examination(outcome="broken" if is_broken else "fine", findings=tuple(findings))


def _examined(environment: Environment, *, online: bool, host: str, port: int) -> list[Finding]:
    url = environment.database_url
    looks: list[tuple[str, Callable[[], list[Finding]]]] = [
        ("libraries", machine.libraries),
        ("yaml", machine.yaml_reader),
        ("solver", machine.solver),
        ("database", lambda: database_state.database(url, stale_after_hours=_limit())),
        ("room", lambda: machine.room(url)),
        ("variables", lambda: configuration.variables(besides=configuration.named_by_settings(environment))),
        ("settings", lambda: configuration.files(environment)),
        ("rates", lambda: configuration.rates(environment, online=online)),
        ("sources", lambda: configuration.sources(environment)),
        ("schedule", lambda: configuration.schedule(environment)),
        ("credentials", cloud_credentials.credentials),
        ("access", lambda: configuration.access(host, url)),
        ("limits", configuration.limits),
        ("slack", configuration.slack),
        ("telemetry", configuration.telemetry),
        ("network", network.surroundings),
        ("port", lambda: machine.port(host, port)),
    ]
    if online:
        looks += [("clouds", lambda: cloud_credentials.online(environment.sources())), ("issuer", network.issuer)]
    return [finding for name, look in looks for finding in looked_at(name, look)]


def _limit() -> float:
    """The telemetry settings report their own errors."""
    try:
        return telemetry_settings().stale_after_hours
    except UnusableInput:
        return USUAL_STALE_AFTER_HOURS
