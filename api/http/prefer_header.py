"""`Prefer` (RFC 7240): whether a client waits for a long answer, and for how long."""

import re
from dataclasses import dataclass

from fastapi import Request

#: Answers that are ready this soon are returned in the response; later ones are fetched from the run.
USUAL_WAIT_SECONDS = 1.0
#: Proxies give up on a response after a minute.
LONGEST_WAIT_SECONDS = 50.0
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefer:
    """How long to wait for an answer, and which of the client's preferences this applies."""

    wait_seconds: float = USUAL_WAIT_SECONDS
    applied: str | None = None

    @classmethod
    def read(cls, request: Request) -> "Prefer":
        """Read the request's headers; unknown or malformed preferences are ignored (RFC 7240, section 2)."""
        wishes: dict[str, str] = {}
        for part in ",".join(request.headers.getlist("prefer")).split(","):
            name, value = _preference(part)
            if _TOKEN.fullmatch(name):
                wishes.setdefault(name.lower(), value)
        wait = wishes.get("wait", "")
        if wait.isdecimal() and wait.isascii() and len(wait) <= 9:
            seconds = min(float(wait), LONGEST_WAIT_SECONDS)
            also = "respond-async, " if "respond-async" in wishes else ""
            return cls(wait_seconds=seconds, applied=f"{also}wait={seconds:.0f}")
        if "respond-async" in wishes:
            return cls(wait_seconds=0.0, applied="respond-async")
        return cls()

    def headers(self) -> dict[str, str]:
        """The response headers that report the applied preference."""
        return {"Vary": "Prefer"} | ({"Preference-Applied": self.applied} if self.applied else {})


def _preference(part: str) -> tuple[str, str]:
    """The name and value of one preference, without its parameters, in linear time."""
    name, _, value = part.partition(";")[0].partition("=")
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1].strip()
    return name.strip(), value
