"""The variables that gpuplan reads, and misspelt ones, which would otherwise be ignored silently."""

import difflib
import os
from collections.abc import Mapping

from gpuplan.api.observability.doctor.finding import Finding, ok, warning
from gpuplan.catalog.model.provider_names import provider_names

_PREFIX = "GPUPLAN_"
#: Read where they are needed, outside the settings models.
_OTHERS = (
    "ADMIN_KEY",
    "ALLOW_HOST",
    "API_KEY",
    "CHROMIUM",
    "COUNTING",
    "DRAIN_SECONDS",
    "FINISH_SECONDS",
    "FORBID_SKIPS",
    "LOG_FORMAT",
    "LOG_LEVEL",
    "MOST_MIB_PER_PLAN",
    "MOST_SECONDS_PER_PLAN",
    "OTEL",
    "PLANNING_PROCESSES",
    "STALE_AFTER_HOURS",
    "TORCH_PYTHON",
    "URL",
)
#: Variables with a variant that names a file.
_SECRETS = ("ADMIN_KEY", "DATABASE_URL", "GCP_API_KEY")


def known() -> frozenset[str]:
    """Every variable of gpuplan, with its prefix. Variables of exported jobs belong to the job and are no settings."""
    from gpuplan.api.schemas.settings_file import Environment
    from gpuplan.api.security.access_settings import Variables
    from gpuplan.api.slack.slack_settings import PREFIX, SlackEnvironment

    rest = {f"{name}_endpoint" for name, row in provider_names().items() if row.endpoint}
    ours = {*rest, *Environment.model_fields, *Variables.model_fields, *_OTHERS, *(f"{name}_FILE" for name in _SECRETS)}
    slack = {f"{PREFIX}{name.upper()}" for name in SlackEnvironment.model_fields}
    return frozenset({f"{_PREFIX}{name.upper()}" for name in ours} | slack)


def variables(environment: Mapping[str, str] = os.environ, *, besides: frozenset[str] = frozenset()) -> list[Finding]:
    """One finding per variable with our prefix that nothing reads; `besides` are further variables in use."""
    read = known() | besides
    strange = sorted(name for name in environment if name.startswith(_PREFIX) and name not in read)
    if not strange:
        return [ok("variables", "gpuplan reads every variable that begins with GPUPLAN_")]
    return [warning("variables", f"{name[:80]} is not read by gpuplan", _advice(name, read)) for name in strange]


def _advice(name: str, read: frozenset[str]) -> str:
    near = difflib.get_close_matches(name, sorted(read), n=1)
    return f"did you mean {near[0]}? Otherwise unset it" if near else "unset it; docs/settings.md lists all variables"
