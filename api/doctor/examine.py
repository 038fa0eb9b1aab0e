"""Everything looked at, one after the other; what cannot be looked at is a finding too."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from api.doctor import clouds, configured, machine, network, stored, watched
from api.doctor.finding import Finding, looked_at
from api.doctor.variables import variables
from api.settings import Environment
from api.telemetry.settings import USUAL_STALE_AFTER_HOURS, telemetry_settings
from catalog.errors import UnusableInput

Document = dict[str, Any]


def examine(given: Mapping[str, Path], *, online: bool, host: str, port: int) -> Document:
    """`{"outcome": "fine" | "broken", "findings": [{"name", "status", "found", "advice"}]}`; warnings are fine.

    `given` names files in place of those of the environment.
    """

    def everything() -> list[Finding]:
        return _examined(Environment().model_copy(update=dict(given)), online=online, host=host, port=port)

    found = looked_at("environment", everything)
    outcome = "broken" if any(each.status == "broken" for each in found) else "fine"
    return {"outcome": outcome, "findings": [each.document() for each in found]}


def _examined(environment: Environment, *, online: bool, host: str, port: int) -> list[Finding]:
    url = environment.database_url
    looks: list[tuple[str, Callable[[], list[Finding]]]] = [
        ("libraries", machine.libraries),
        ("yaml", machine.yaml_reader),
        ("solver", machine.solver),
        ("database", lambda: stored.database(url, stale_after_hours=_limit())),
        ("room", lambda: machine.room(url)),
        ("variables", lambda: variables(besides=configured.named_by_channels(environment))),
        ("settings", lambda: configured.files(environment)),
        ("sources", lambda: configured.sources(environment)),
        ("schedule", lambda: configured.schedule(environment)),
        ("credentials", clouds.credentials),
        ("access", lambda: configured.access(host, url)),
        ("limits", configured.limits),
        ("slack", configured.slack),
        ("telemetry", watched.telemetry),
        ("network", network.surroundings),
        ("port", lambda: machine.port(host, port)),
    ]
    if online:
        looks += [("clouds", lambda: clouds.online(environment.sources())), ("issuer", network.issuer)]
    return [each for name, look in looks for each in looked_at(name, look)]


def _limit() -> float:
    """The telemetry settings say themselves what is wrong with them."""
    try:
        return telemetry_settings().stale_after_hours
    except UnusableInput:
        return USUAL_STALE_AFTER_HOURS
