"""Errors of providers and SDKs as one line without secrets, for users and logs."""

import os
import re
from urllib.parse import urlsplit

#: Longer than any useful message; cuts off HTML pages and whole replies.
LONGEST = 300
#: Variables whose values must never be shown, whichever library repeats them in an error.
SECRET_VARIABLES = re.compile(r"SECRET|TOKEN|PASSWORD|API_KEY|ACCESS_KEY|CREDENTIAL|CLIENT_ID|WEBHOOK", re.IGNORECASE)
#: Matching variables that hold a file's path, which is not secret and useful to users.
FILE_VARIABLES = re.compile(r"_FILE$|^GOOGLE_APPLICATION_CREDENTIALS$")
_SHORTEST_SECRET = 6
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+"), r"\1 ***"),
    (re.compile(r"(?i)\b(sig|signature|token|key|secret|password|code)=[^&\s\"']+"), r"\1=***"),
    (re.compile(r"(?i)Credential=[^,\s\"']+"), "Credential=***"),
    (re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{12,}\b"), "***"),
    (re.compile(r"\bAIza[0-9A-Za-z_-]{30,}"), "***"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9._-]+"), "***"),
    (re.compile(r"://[^/\s@]+@"), "://***@"),
)


def redacted_text(error: BaseException | str, *, secrets: tuple[str | None, ...] = ()) -> str:
    """The first line of an error's message, cut to `LONGEST`, with every known or likely secret masked.

    `secrets` are values outside the environment, such as a key from a settings file.
    """
    text = str(error) if isinstance(error, str) else (str(error).strip() or type(error).__name__)
    for value in (*secrets, *_values_of_the_environment()):
        if value and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    for pattern, mask in _PATTERNS:
        text = pattern.sub(mask, text)
    if "<html" in text.lower() or "<!doctype" in text.lower():
        text = "the answer was an HTML page, not the provider's API; check the endpoint and any proxy"
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def shown_url(url: str) -> str:
    """Host and path of a URL, which identify it, without user, password and query."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _values_of_the_environment() -> list[str]:
    secret = [
        value for name, value in os.environ.items() if SECRET_VARIABLES.search(name) and not FILE_VARIABLES.search(name)
    ]
    return sorted(secret, key=len, reverse=True)
