"""Settings of the Slack interface: secrets from the environment or files, and the address of Slack's API.

Without settings Slack is off. Incomplete settings are refused by name, so that a service never runs with commands that
it cannot answer.
"""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from gpuplan.api.notifications import retries
from gpuplan.catalog.runtime.errors import UnusableInput

PREFIX = "GPUPLAN_SLACK_"
API_URL = "https://slack.com/api/"
#: Largest secret file; a token has about 60 characters.
_LONGEST_SECRET = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience(retries.Patience):
    """Time limits of answers. Slack accepts five messages per `response_url` within 30 minutes."""

    attempt_seconds: float = 10.0
    #: A process that works on an answer for longer counts as dead; longer than a plan may take.
    lease_seconds: float = 45.0
    #: Interval of polling for abandoned answers.
    look_seconds: float = 5.0
    #: Answers that are pending for longer are given up.
    longest_hours: float = 2.0
    #: Time limit of the store; Slack gives up on a request after 3 s.
    store_seconds: float = 1.2
    #: Time for messages being sent when the service stops.
    stop_seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackSettings:
    """Credentials for Slack: the signing secret, and a bot token or the OAuth client."""

    signing_secret: str = field(repr=False)
    bot_token: str = field(repr=False, default="")
    client_id: str = ""
    client_secret: str = field(repr=False, default="")
    redirect_url: str = ""
    api_url: str = API_URL
    page_url: str = ""
    patience: Patience = Patience()

    @property
    def installs(self) -> bool:
        """Whether workspaces install the app themselves and get their own tokens."""
        return not self.bot_token

    @property
    def has_public_page(self) -> bool:
        """Whether Slack can fetch pictures from the page's address; it does so only over https."""
        return self.page_url.startswith("https://")

    def page_of(self, plan_id: str) -> str:
        """The page of a plan; empty if the page's public address is not configured."""
        return f"{self.page_url.rstrip('/')}/plans/{quote(plan_id, safe='')}" if self.page_url and plan_id else ""


class SlackEnvironment(BaseSettings):
    """The variables `GPUPLAN_SLACK_...`; a secret may be in a file named by `..._FILE` instead."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, env_ignore_empty=True, extra="ignore")

    signing_secret: SecretStr | None = None
    signing_secret_file: Path | None = None
    bot_token: SecretStr | None = None
    bot_token_file: Path | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None
    client_secret_file: Path | None = None
    redirect_url: str | None = None
    api_url: str | None = None
    page_url: str | None = None


def slack_settings(environment: SlackEnvironment | None = None) -> SlackSettings | None:
    """Read Slack's settings, None if there are none. Raises `UnusableInput` at the variable that is missing or wrong."""
    given = environment or SlackEnvironment()
    secrets = {name: _secret(given, name) for name in ("signing_secret", "bot_token", "client_secret")}
    if not any(secrets.values()) and not given.client_id:
        return None
    if not secrets["signing_secret"]:
        raise _missing("signing_secret", "find it in the app's Basic Information")
    if not secrets["bot_token"] and not (given.client_id and secrets["client_secret"]):
        name = "client_secret" if given.client_id else "client_id" if secrets["client_secret"] else "bot_token"
        raise _missing(
            name, "set the bot's token (xoxb-...), or client id and client secret so that it can be installed"
        )
    _refuse_misplaced(secrets)
    return SlackSettings(
        signing_secret=secrets["signing_secret"],
        bot_token=secrets["bot_token"],
        client_id=given.client_id or "",
        client_secret=secrets["client_secret"],
        redirect_url=_address(given.redirect_url, "redirect_url") or "",
        api_url=_address(given.api_url, "api_url") or API_URL,
        page_url=_address(given.page_url, "page_url") or "",
    )


def _secret(given: SlackEnvironment, name: str) -> str:
    """The secret from its variable or from the file named by `..._FILE`; not both."""
    stated: SecretStr | None = getattr(given, name)
    path: Path | None = getattr(given, f"{name}_file")
    variable = f"{PREFIX}{name.upper()}"
    if path is None:
        text = "" if stated is None else stated.get_secret_value()
        return _one_line(text, variable)
    if stated is not None:
        raise UnusableInput.at(variable, message=f"is set, and so is {variable}_FILE; set one of the two")
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_SECRET + 1).decode("ascii")
    except OSError as error:
        message = f"cannot read {str(path)!r}: {error.strerror or type(error).__name__}"
        raise UnusableInput.at(f"{variable}_FILE", message=message) from None
    except UnicodeDecodeError:
        raise UnusableInput.at(f"{variable}_FILE", message="is not a secret; accepted: only its text") from None
    if not text.strip():
        raise UnusableInput.at(f"{variable}_FILE", message="names an empty file; accepted: one with the secret in it")
    return _one_line(text, f"{variable}_FILE")


def _one_line(text: str, variable: str) -> str:
    """The secret without line end. Errors never show the value."""
    secret = text.strip()
    if len(secret) > _LONGEST_SECRET or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise UnusableInput.at(variable, message="is not a secret; accepted: only its text, on one line")
    return secret


def _refuse_misplaced(secrets: dict[str, str]) -> None:
    """Refuse common mistakes: one secret in place of another."""
    if secrets["signing_secret"].startswith("xox"):
        raise _wrong("signing_secret", "is a token; accepted: the signing secret of the app's Basic Information")
    if secrets["bot_token"] and not secrets["bot_token"].startswith("xoxb-"):
        raise _wrong("bot_token", "is not a bot token; accepted: one that starts with xoxb-")


def _missing(name: str, why: str) -> UnusableInput:
    return _wrong(name, f"is missing; {why}")


def _wrong(name: str, message: str) -> UnusableInput:
    return UnusableInput.at(f"{PREFIX}{name.upper()}", message=message)


def _address(text: str | None, name: str) -> str | None:
    if text is None:
        return None
    try:
        parts = urlsplit(text.strip())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not text.isprintable():
        raise _wrong(name, "is not a web address; accepted: https://host/path, or http:// for a local server")
    return text.strip()
