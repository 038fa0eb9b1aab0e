"""Identities and the four scopes, each of which includes those before it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Scope = Literal["read", "plan", "refresh", "admin"]
#: In ascending order: each scope includes the earlier ones.
SCOPES: tuple[Scope, ...] = ("read", "plan", "refresh", "admin")

MEANING: dict[Scope, str] = {
    "read": "read the catalogue, prices, and its own or shared plans, runs and watches",
    "plan": "request plans, estimates and portfolios, report runs, watch jobs, share its own objects",
    "refresh": "refresh prices into a new snapshot",
    "admin": "create and revoke keys, read the audit log, read and change objects of every owner",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A requester: `id` is unique, `name` is for people, `via` is the means of authentication.

    `requests_per_minute` and `plans_per_day` are None for the service's defaults; an `unlimited` identity has no
    limits.
    """

    id: str
    name: str
    scopes: frozenset[Scope]
    via: str
    requests_per_minute: int | None = None
    plans_per_day: int | None = None
    unlimited: bool = False


def with_lesser(granted: Iterable[str]) -> frozenset[Scope]:
    """The granted scopes with all that they include; unknown scopes grant nothing."""
    given = set(granted)
    highest = max((place for place, scope in enumerate(SCOPES) if scope in given), default=-1)
    return frozenset(SCOPES[: highest + 1])


#: The identity of every requester of a service that only this machine can reach.
LOCAL = Identity(id="local", name="local", scopes=frozenset(SCOPES), via="loopback", unlimited=True)
