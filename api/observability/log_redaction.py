"""Redaction of secrets in log records: keys, tokens, passwords in addresses, webhooks, and values from the environment.

This is the last line of defence: our code logs no secret, but a library's error may contain an address or a header.
"""

import os
import re
from collections.abc import Iterable, MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

MASK = "***"
#: Variables with such names hold secrets; masking values shorter than `_SHORTEST` would mask ordinary words.
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|WEBHOOK|SIGNATURE)[A-Z0-9_]*$")
_SHORTEST = 8
_MOST_BYTES = 64 * 1024

#: Patterns and their replacements. Ids stay, so that a line still identifies the key.
_PATTERNS = (
    (re.compile(r"\b(gp[kls]_[0-9a-f]{12})_[A-Za-z0-9_-]+"), rf"\1_{MASK}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+(?!gp[kls]_[0-9a-f]{12}_\*)[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {MASK}"),
    (re.compile(r"(?i)(authorization[\"']?\s*[:=]\s*[\"']?)(?!bearer|basic)[^\s\"',}]+"), rf"\1{MASK}"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), MASK),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s:/@'\"]*):[^\s@'\"]+@"), rf"\1:{MASK}@"),
    (re.compile(r"(?i)(https?://hooks\.[^\s/'\"]+/)[^\s'\"]+"), rf"\1{MASK}"),
    (re.compile(r"(?i)(https?://[^\s'\"]*?/(?:webhooks?|services)/)[^\s'\"]+"), rf"\1{MASK}"),
    (re.compile(r"\bxox[a-z]-[A-Za-z0-9-]{6,}"), MASK),
    (re.compile(r"\b(whsec)_[A-Za-z0-9+/=_-]{6,}"), rf"\1_{MASK}"),
    (re.compile(r"(?i)([?&](?:sig|key)=)[^\s&\"',}]+"), rf"\1{MASK}"),
    (
        re.compile(
            r"(?i)([?&;\s\"'{](?:[a-z_]*(?:token|secret|password|passwd|signature|api_?key))[\"']?\s*[=:]\s*[\"']?)[^\s&\"',}]{4,}"
        ),
        rf"\1{MASK}",
    ),
)

#: If a lower-case text contains none of these, no pattern matches: this check suffices for most texts.
_SIGNS = (
    *("gpk_", "gps_", "gpl_", "bearer", "basic", "authorization", "eyj", "://", "xox", "whsec"),
    *("token", "secret", "passw", "signature", "key", "sig="),
)
#: Fields created by the logging itself.
_LOGGING_FIELDS = frozenset({"level", "logger", "timestamp", "method", "request_id", "trace_id", "span_id"})


def scrub(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The record with every text in it redacted, at any depth."""
    for key, value in event.items():
        if key not in _LOGGING_FIELDS and not isinstance(value, int | float):
            event[key] = cleaned(value)
    return event


def cleaned(value: Any) -> Any:
    """Redacted texts; containers with redacted contents; other objects as their redacted text."""
    match value:
        case str():
            return cleaned_text(value)
        case None | bool() | int() | float():
            return value
        case dict():
            return {cleaned(key): cleaned(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [cleaned(item) for item in value]
        case bytes():
            return cleaned_text(value.decode("utf-8", "backslashreplace"))
    return value


def cleaned_text(text: str) -> str:
    """The text without anything that looks like a secret or is one from the environment."""
    for secret in _known_secrets():
        if secret in text:
            text = text.replace(secret, MASK)
    small = text.lower()
    if any(sign in small for sign in _SIGNS):
        for pattern, mask in _PATTERNS:
            text = pattern.sub(mask, text)
    return text


@cache
def _known_secrets() -> tuple[str, ...]:
    """The values of secret variables and of the files they name, the longest first; read once."""
    return tuple(sorted(set(_secrets(os.environ.items())), key=len, reverse=True))


def _secrets(variables: Iterable[tuple[str, str]]) -> Iterable[str]:
    for name, value in variables:
        if name.endswith("_FILE") and _SECRET_NAME.search(name.removesuffix("_FILE")):
            value = _contents(value)  # noqa: PLW2901 - the file stands for the variable
        elif not _SECRET_NAME.search(name):
            continue
        if len(value.strip()) >= _SHORTEST:
            yield value.strip()


def _contents(path: str) -> str:
    """The contents of a file; unreadable ones are reported where they are needed."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
