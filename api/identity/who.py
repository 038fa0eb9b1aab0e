"""Who asks, and what they may: four scopes, each of which includes those before it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Scope = Literal["read", "plan", "refresh", "admin"]
#: From the least to the most; one who may do a later thing may do the earlier ones.
SCOPES: tuple[Scope, ...] = ("read", "plan", "refresh", "admin")

MEANING: dict[Scope, str] = {
    "read": "see the catalogue and prices, and plans, runs and watches that are its own or shared with it",
    "plan": "ask for plans, estimates and portfolios, report runs, watch jobs, share what is its own",
    "refresh": "pull live prices into a new snapshot",
    "admin": "make and revoke keys, read the audit log, see and change what belongs to anybody",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody who asks: `id` is unique, `name` for people, `via` how they showed who they are.

    `requests_per_minute` and `plans_per_day` are None where the service's own limits hold; one who is `unlimited`
    has none.
    """

    id: str
    name: str
    scopes: frozenset[Scope]
    via: str
    requests_per_minute: int | None = None
    plans_per_day: int | None = None
    unlimited: bool = False


def with_lesser(granted: Iterable[str]) -> frozenset[Scope]:
    """The scopes granted with all that they include; what is no scope grants nothing."""
    given = set(granted)
    highest = max((place for place, scope in enumerate(SCOPES) if scope in given), default=-1)
    return frozenset(SCOPES[: highest + 1])


#: Whoever reaches a service that only this machine can reach.
LOCAL = Identity(id="local", name="local", scopes=frozenset(SCOPES), via="loopback", unlimited=True)
