"""Everything looked at, one after the other; what cannot be looked at is a finding too."""

from collections.abc import Callable
from typing import Any

from api.doctor import clouds, configured, machine, stored
from api.doctor.finding import Finding, looked_at
from api.doctor.variables import variables
from api.settings import Environment
from api.telemetry.settings import USUAL_STALE_AFTER_HOURS, telemetry_settings
from catalog.errors import UnusableInput

Document = dict[str, Any]


def examine(environment: Environment, *, online: bool, host: str, port: int) -> Document:
    """`{"outcome": "fine" | "broken", "findings": [{"name", "status", "found", "advice"}]}`; warnings are fine."""
    url = environment.database_url
    looks: list[tuple[str, Callable[[], list[Finding]]]] = [
        ("libraries", machine.libraries),
        ("solver", machine.solver),
        ("database", lambda: stored.database(url, stale_after_hours=_limit())),
        ("room", lambda: machine.room(url)),
        ("variables", lambda: variables(besides=configured.named_by_channels(environment))),
        ("settings", lambda: configured.files(environment)),
        ("sources", lambda: configured.sources(environment)),
        ("schedule", lambda: configured.schedule(environment)),
        ("credentials", clouds.credentials),
        ("access", configured.access),
        ("limits", configured.limits),
        ("slack", configured.slack),
        ("telemetry", configured.telemetry),
        ("port", lambda: machine.port(host, port)),
    ]
    if online:
        looks.append(("clouds", lambda: clouds.online(environment.sources())))
    found = [each for name, look in looks for each in looked_at(name, look)]
    outcome = "broken" if any(each.status == "broken" for each in found) else "fine"
    return {"outcome": outcome, "findings": [each.document() for each in found]}


def _limit() -> float:
    """The telemetry settings say themselves what is wrong with them."""
    try:
        return telemetry_settings().stale_after_hours
    except UnusableInput:
        return USUAL_STALE_AFTER_HOURS
