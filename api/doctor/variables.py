"""The variables that gpuplan reads, and those that only look like one: a misspelt setting would be ignored in silence."""

import difflib
import os
from collections.abc import Mapping

from api.doctor.finding import Finding, ok, warning

_PREFIX = "GPUPLAN_"
#: Read where they are needed, by no model whose fields could be asked.
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
#: What may be told by the name of a file instead.
_SECRETS = ("ADMIN_KEY", "DATABASE_URL", "GCP_API_KEY")


def known() -> frozenset[str]:
    """Every variable of ours, with its prefix. Those that an exported job finds are of the job and no setting."""
    from api.identity.settings import Variables
    from api.settings import Environment
    from api.slack.settings import PREFIX, SlackEnvironment

    ours = {*Environment.model_fields, *Variables.model_fields, *_OTHERS, *(f"{name}_FILE" for name in _SECRETS)}
    slack = {f"{PREFIX}{name.upper()}" for name in SlackEnvironment.model_fields}
    return frozenset({f"{_PREFIX}{name.upper()}" for name in ours} | slack)


def variables(environment: Mapping[str, str] = os.environ, *, besides: frozenset[str] = frozenset()) -> list[Finding]:
    """One finding per variable that begins as ours do and that nobody reads; `besides` are others that somebody does."""
    read = known() | besides
    strange = sorted(name for name in environment if name.startswith(_PREFIX) and name not in read)
    if not strange:
        return [ok("variables", "every variable that begins with GPUPLAN_ is one that gpuplan reads")]
    return [warning("variables", f"{name[:80]} is read by nothing", _advice(name, read)) for name in strange]


def _advice(name: str, read: frozenset[str]) -> str:
    near = difflib.get_close_matches(name, sorted(read), n=1)
    return f"did you mean {near[0]}? Else unset it" if near else "unset it; docs/settings.md names all there are"
