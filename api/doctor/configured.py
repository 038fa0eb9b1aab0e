"""What the environment and the files say: settings, own machines, who may ask, Slack."""

from pathlib import Path

from api.doctor.finding import Finding, broken, ok, warning
from api.doctor.stored import any_key
from api.own_machines import owned_machines
from api.settings import Environment, planner_settings, settings_file
from api.web_address import is_loopback
from catalog.errors import UnusableInput


def files(environment: Environment) -> list[Finding]:
    """The settings file and the inventory, read as a plan reads them. Raises `UnusableInput` at what is wrong."""
    found = []
    if environment.settings is None:
        found.append(ok("settings", "no settings file (GPUPLAN_SETTINGS): every assumption is the default"))
    else:
        planner_settings(environment.settings)
        channels = settings_file(environment.settings).channels
        found.append(ok("settings", f"{_there(environment.settings)} reads well; {len(channels)} channels for watches"))
    if environment.inventory is None:
        found.append(
            ok("own machines", "no inventory (GPUPLAN_INVENTORY): nothing but what clouds rent out is planned on")
        )
    else:
        machines = owned_machines(environment)
        found.append(
            ok("own machines", f"{_there(environment.inventory)} reads well: {len(machines)} kinds of machine")
        )
    return found


def named_by_channels(environment: Environment) -> frozenset[str]:
    """The variables, and those of files, that channels take their addresses and secrets from. Whatever is wrong with
    the file is a finding of its own.
    """
    try:
        channels = settings_file(environment.settings).channels
    except UnusableInput:
        return frozenset()
    names = {name for each in channels for name in (each.url_from, each.secret_from) if name is not None}
    return frozenset(names | {f"{name}_FILE" for name in names})


def _there(path: Path) -> str:
    return str(path.absolute())


def sources(environment: Environment) -> list[Finding]:
    """The addresses of clouds. Raises `UnusableInput` at each that is none."""
    given = environment.sources()
    usual = type(given)()
    names = [name for name in usual.__slots__ if name.endswith(("_url", "_endpoint"))]
    other = sorted(name for name in names if getattr(given, name) != getattr(usual, name))
    said = f"other addresses than the clouds' own: {', '.join(other)}" if other else "the clouds' own addresses"
    if given.anonymous:
        advice = "unset GPUPLAN_ANONYMOUS unless the addresses are those of a local server"
        return [warning("sources", f"{said}; no GCP or Azure credentials are used (GPUPLAN_ANONYMOUS)", advice)]
    return [ok("sources", said)]


def schedule(environment: Environment) -> list[Finding]:
    """When workers begin a refresh. Raises `UnusableInput` at GPUPLAN_REFRESH_CRON for what is no schedule."""
    from api.tasks.worker import check_cron

    cron = environment.refresh_cron
    check_cron(cron)
    if cron is None:
        return [ok("schedule", "workers begin no refresh by themselves (GPUPLAN_REFRESH_CRON is not set)")]
    if not (environment.database_url or "").startswith("postgresql"):
        advice = "run gpuplan refresh by cron or a timer (docs/nightly.md), or use PostgreSQL and gpuplan worker"
        return [warning("schedule", "GPUPLAN_REFRESH_CRON is for workers, which need PostgreSQL", advice)]
    return [ok("schedule", f"a worker begins a refresh at {cron!r} (UTC)")]


def access(host: str, url: str | None) -> list[Finding]:
    """Who will be let in by a service that listens there. Raises `UnusableInput` at each variable that cannot be used,
    and `StoreFailure` where only the keys of the store could tell.
    """
    from api.identity.settings import access_settings

    found = access_settings()
    ways = [
        name
        for name, there in (
            ("an admin key", found.admin_key is not None),
            ("tokens of an issuer (OIDC)", found.oidc is not None),
        )
        if there
    ]
    if ways:
        return [ok("access", f"who asks needs a key; besides keys of the store: {', '.join(ways)}")]
    if is_loopback(host):
        return [ok("access", "open to this machine alone; beyond it only with keys (gpuplan keys create)")]
    if any_key(url):
        return [ok("access", "who asks needs a key of the store")]
    advice = "gpuplan keys create --name NAME --scope admin, or --insecure-no-auth behind a proxy that authenticates"
    return [broken("access", f"with {host[:80]!r} others can reach the service, and no key lets anybody in", advice)]


def limits() -> list[Finding]:
    """What a question may take. Raises `UnusableInput` at the variable that says no such limit."""
    from api.planning_processes.budget import budget

    given = budget()
    said = f"a question over HTTP is stopped after {given.seconds:g} seconds or {given.mib} MiB"
    return [ok("limits", f"{said}; {given.processes} processes answer")]


def slack() -> list[Finding]:
    """Whether commands in Slack can be answered. Raises `UnusableInput` at what is missing or wrong."""
    from api.slack.settings import slack_settings

    found = slack_settings()
    if found is None:
        return [ok("slack", "not set up (docs/slack.md)")]
    return [ok("slack", "workspaces install it themselves" if found.installs else "set up with a bot's token")]
