"""Access settings from the environment: keys, token issuer, limits."""

import re
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from gpuplan.api.security.identity import SCOPES, Scope
from gpuplan.api.security.secret_files import secret
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: 32 characters of base64 are 192 bits: impossible to guess, and longer than a pasted word.
SHORTEST_ADMIN_KEY = 32
_LONGEST_ADMIN_KEY = 512
#: 80 bits: zxcvbn estimates at least 10^26 guesses for 32 random hexadecimal digits (300 samples), and at most 10^12
#: for patterns.
_LEAST_GUESSES_LOG10 = 24.0
#: The number of characters that zxcvbn reads; further characters do not weaken a key.
_MOST_ESTIMATED = 72

Limit = Annotated[int, Field(ge=1, le=2**31 - 1)]


class Variables(BaseSettings):
    """The variables with their names after GPUPLAN_, and their defaults."""

    model_config = SettingsConfigDict(env_prefix="GPUPLAN_", frozen=True, env_ignore_empty=True, extra="ignore")

    #: Per key and process: twice what a team's scripts request in a busy minute, less than a process can answer.
    requests_per_minute: Limit = 6_000
    plans_per_day: Limit = 50_000
    failed_logins_per_minute: Limit = 30
    session_hours: Annotated[float, Field(gt=0, le=720, allow_inf_nan=False)] = 12.0
    metrics_open: bool = False
    oidc_issuer: str = ""
    oidc_audience: str = ""
    oidc_scopes_claim: Annotated[str, Field(min_length=1, max_length=200)] = "scope"
    oidc_scopes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """The accepted token issuer, the required audience, and the scopes granted by values of a claim."""

    issuer: str
    audience: str
    scopes_claim: str
    scopes: dict[str, Scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """The validated settings. `admin_key` is never shown."""

    variables: Variables
    oidc: OidcSettings | None
    admin_key: str | None

    def __repr__(self) -> str:
        return f"AccessSettings(oidc={self.oidc}, admin_key={'set' if self.admin_key else 'not set'})"


def access_settings() -> AccessSettings:
    """Read the environment. Raises `UnusableInput` that names every invalid variable and never contains a secret."""
    try:
        variables = Variables()
    except ValidationError as error:
        faults = [
            Fault((f"GPUPLAN_{'_'.join(map(str, error['loc'])).upper()}",), error["msg"]) for error in error.errors()
        ]
        raise UnusableInput(*faults) from None
    return AccessSettings(variables=variables, oidc=_oidc(variables), admin_key=_admin_key())


def _admin_key() -> str | None:
    key = secret("GPUPLAN_ADMIN_KEY")
    if key is None:
        return None
    if not SHORTEST_ADMIN_KEY <= len(key) <= _LONGEST_ADMIN_KEY or not re.fullmatch(r"[!-~]+", key):
        message = (
            f"is not a valid key: {len(key)} characters; accepted: {SHORTEST_ADMIN_KEY} to {_LONGEST_ADMIN_KEY} printable ASCII"
            " characters without blanks, such as the output of `openssl rand -base64 32`"
        )
        raise UnusableInput.at("GPUPLAN_ADMIN_KEY", message=message)
    from zxcvbn import zxcvbn  # its lists of words take a tenth of a second: only where there is a key to look at

    if zxcvbn(key[:_MOST_ESTIMATED])["guesses_log10"] < _LEAST_GUESSES_LOG10:
        message = (
            "can be guessed: it repeats itself or consists of words; accepted: the output of `openssl rand -base64 32`"
        )
        raise UnusableInput.at("GPUPLAN_ADMIN_KEY", message=message)
    return key


def _oidc(variables: Variables) -> OidcSettings | None:
    if not variables.oidc_issuer:
        return None
    faults = []
    issuer = variables.oidc_issuer.strip()
    if not _trustworthy(issuer):
        accepted = "accepted: https://host/path, equal to the tokens' claim iss; http only on this machine"
        faults.append(Fault(("GPUPLAN_OIDC_ISSUER",), f"is not an issuer's address; {accepted}"))
    if not variables.oidc_audience.strip():
        message = (
            "is missing; set it to the required claim aud of the tokens, so that tokens for other services are refused"
        )
        faults.append(Fault(("GPUPLAN_OIDC_AUDIENCE",), message))
    scopes: dict[str, Scope] = {}
    for part in filter(None, (candidate.strip() for candidate in variables.oidc_scopes.split(","))):
        value, _, scope = (piece.strip() for piece in part.rpartition("="))
        known = next((candidate for candidate in SCOPES if candidate == scope), None)
        if not value or known is None:
            accepted = f"accepted: VALUE=SCOPE,... with a scope of {', '.join(SCOPES)}"
            faults.append(Fault(("GPUPLAN_OIDC_SCOPES",), f"{part[:80]!r} maps nothing; {accepted}"))
            continue
        scopes[value] = known
    if faults:
        raise UnusableInput(*faults)
    return OidcSettings(
        issuer=issuer,
        audience=variables.oidc_audience.strip(),
        scopes_claim=variables.oidc_scopes_claim,
        scopes=scopes or {f"gpuplan:{scope}": scope for scope in SCOPES},
    )


def _trustworthy(url: str) -> bool:
    """Whether keys read from there are authentic: over TLS, or from this machine."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    plain = url.isprintable() and not parts.username and not parts.query and not parts.fragment
    return plain and bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and local))
