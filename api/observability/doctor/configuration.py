"""Settings from environment and files: settings file, owned machines, access, Slack."""

import difflib
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from gpuplan.api.observability.doctor.database_state import any_key
from gpuplan.api.observability.doctor.finding import Finding, broken, ok, warning
from gpuplan.api.observability.telemetry_settings import telemetry_settings
from gpuplan.api.schemas.settings_file import Environment, planner_settings, settings_file
from gpuplan.api.security.web_addresses import is_loopback
from gpuplan.api.services.own_rates import rates_source
from gpuplan.api.services.owned_machines import owned_machines
from gpuplan.catalog.model.exchange_rates import stated_rates
from gpuplan.catalog.model.provider_names import provider_names
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.own_rates import RatesSource, rows_by_region
from gpuplan.providers.own_rates.document_rows import document_rows
from gpuplan.providers.own_rates.rate_rows import RatesOrigin
from gpuplan.providers.price_lists.currencies import Rates

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


def files(environment: Environment) -> list[Finding]:
    """The settings file and the inventory, read as for a plan. Raises `UnusableInput` at invalid values."""
    findings = []
    if environment.settings is None:
        findings.append(ok("settings", "no settings file (GPUPLAN_SETTINGS): every assumption is the default"))
    else:
        planner_settings(environment.settings)
        channels = settings_file(environment.settings).channels
        findings.append(
            ok("settings", f"{_absolute(environment.settings)} reads well; {len(channels)} channels for watches")
        )
    if environment.inventory is None:
        findings.append(ok("own machines", "no inventory (GPUPLAN_INVENTORY): plans use only what clouds rent out"))
    else:
        machines = owned_machines(environment)
        findings.append(
            ok("own machines", f"{_absolute(environment.inventory)} reads well: {len(machines)} kinds of machine")
        )
    return findings


def rates(environment: Environment, *, online: bool) -> list[Finding]:
    """The lists of own rates, read as by a refresh with stated exchange rates; those of an address only `online`."""
    lists = settings_file(environment.settings).rates
    return [_rates(rates_source(listed, environment), read=online or listed.url is None) for listed in lists]


def _rates(source: RatesSource, *, read: bool) -> Finding:
    name = f"rates {source.name}"
    if not read:
        return ok(name, f"{source.where} is read by gpuplan doctor --online")
    origin = RatesOrigin(provider=source.name, where=source.where, read_at=datetime.now(UTC))
    try:
        rows = document_rows(source.read(), source.where)
        regions = rows_by_region(rows, origin, Rates(by_currency=stated_rates()))
    except ProviderFailure as failure:
        return broken(name, str(failure), "docs/own-rates.md has the columns")
    summary = f"{sum(len(place.offers) for place in regions.values())} prices in {len(regions)} places"
    aside = [row for place in regions.values() for row in place.quarantined]
    if not aside:
        return ok(name, summary)
    first = f"{len(aside)} rows cannot be used, such as {aside[0].what}: {aside[0].reason}"
    return warning(name, f"{summary}; {first}", "correct these rows")


def named_by_settings(environment: Environment) -> frozenset[str]:
    """The variables, and their file variants, from which channels and lists of rates read addresses and secrets. Errors in
    the file are a finding of their own.
    """
    try:
        chosen = settings_file(environment.settings)
    except UnusableInput:
        return frozenset()
    named = {name for channel in chosen.channels for name in (channel.url_from, channel.secret_from)}
    names = {name for name in named | {listed.token_from for listed in chosen.rates} if name is not None}
    return frozenset(names | {f"{name}_FILE" for name in names})


def _absolute(path: Path) -> str:
    return str(path.absolute())


def sources(environment: Environment) -> list[Finding]:
    """The addresses of clouds, and whether plans ask them. Raises `UnusableInput` at each invalid variable."""
    given, asks_live = environment.sources(), environment.asks_live()
    usual = type(given)()
    names = [name for name in usual.__slots__ if name.endswith(("_url", "_endpoint"))]
    other = sorted(name for name in names if getattr(given, name) != getattr(usual, name))
    summary = f"other addresses than the clouds' own: {', '.join(other)}" if other else "the clouds' own addresses"
    summary += "; plans ask the clouds for capacity (GPUPLAN_LIVE)" if asks_live else ""
    if given.anonymous:
        advice = "unset GPUPLAN_ANONYMOUS unless the addresses are those of a local server"
        return [warning("sources", f"{summary}; no GCP or Azure credentials are used (GPUPLAN_ANONYMOUS)", advice)]
    return [ok("sources", summary)]


def schedule(environment: Environment) -> list[Finding]:
    """The schedule of refreshes by workers. Raises `UnusableInput` at GPUPLAN_REFRESH_CRON if it is invalid."""
    from gpuplan.api.jobs.queue.queue_worker import check_cron

    cron = environment.refresh_cron
    check_cron(cron)
    if cron is None:
        return [ok("schedule", "workers start no scheduled refresh (GPUPLAN_REFRESH_CRON is not set)")]
    if not (environment.database_url or "").startswith("postgresql"):
        advice = "run gpuplan refresh by cron or a timer (docs/nightly.md), or use PostgreSQL and gpuplan worker"
        return [warning("schedule", "GPUPLAN_REFRESH_CRON is for workers, which need PostgreSQL", advice)]
    return [ok("schedule", f"a worker starts a refresh at {cron!r} (UTC)")]


def access(host: str, url: str | None) -> list[Finding]:
    """Who may use a service that listens on this host. Raises `UnusableInput` at each invalid variable, and
    `StoreFailure` if the store's keys are needed and cannot be read.
    """
    from gpuplan.api.security.access_settings import access_settings

    settings = access_settings()
    ways = [
        name
        for name, is_set in (
            ("an admin key", settings.admin_key is not None),
            ("tokens of an issuer (OIDC)", settings.oidc is not None),
        )
        if is_set
    ]
    if ways:
        return [ok("access", f"requests need a key; besides keys of the store: {', '.join(ways)}")]
    if is_loopback(host):
        return [ok("access", "open to this machine only; for others create keys (gpuplan keys create)")]
    if any_key(url):
        return [ok("access", "requests need a key of the store")]
    advice = "gpuplan keys create --name NAME --scope admin, or --insecure-no-auth behind a proxy that authenticates"
    return [broken("access", f"with {host[:80]!r} others can reach the service, and no key exists", advice)]


def limits() -> list[Finding]:
    """Limits of a request. Raises `UnusableInput` at the variable with an invalid limit."""
    from gpuplan.api.jobs.planning_processes.question_limits import budget

    given = budget()
    summary = f"a request over HTTP is stopped after {given.seconds:g} seconds or {given.mib} MiB"
    return [ok("limits", f"{summary}; {given.processes} processes answer")]


def slack() -> list[Finding]:
    """Whether Slack commands can be answered. Raises `UnusableInput` at what is missing or invalid."""
    from gpuplan.api.slack.slack_settings import slack_settings

    settings = slack_settings()
    if settings is None:
        return [ok("slack", "not set up (docs/slack.md)")]
    return [ok("slack", "workspaces install it themselves" if settings.installs else "set up with a bot token")]


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
