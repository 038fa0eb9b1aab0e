"""On whose behalf the work at hand is done: set at a door, read where something is recorded or counted.

It follows a request into the threads that answer it. Where no door set it (the command line, a worker), it is the
user of this machine.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache

from api.identity.who import LOCAL, SCOPES, Identity
from catalog.access_store import Charge
from catalog.audit import AuditRecord
from catalog.ownership import UNRESTRICTED, Viewer
from catalog.quota_use import QuotaExceeded

#: Longer than any name or id of ours; what is longer was made up by somebody else.
_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who asks, in which request, from where; and how many plans they may have today (None: any number)."""

    identity: Identity
    request_id: str = ""
    address: str = ""
    plans_per_day: int | None = None


_asking: ContextVar[Asking | None] = ContextVar("asking", default=None)


def asked_by(asking: Asking) -> None:
    """From here on the work at hand is done for them."""
    _asking.set(asking)


@contextmanager
def acting_as(asking: Asking) -> Iterator[None]:
    """What is done inside is done for them."""
    token = _asking.set(asking)
    try:
        yield
    finally:
        _asking.reset(token)


def now_asking() -> Asking | None:
    """Who is asking, for work in another process; None for no door."""
    return _asking.get()


def whose_turn() -> str:
    """Whose work waits and goes on as one: an identity's, or an address's where nobody says who they are."""
    found = _asking.get()
    if found is None:
        return ""
    return found.address if found.identity.via == LOCAL.via else found.identity.id


def uncounted() -> Asking | None:
    """Who is asking, for work in another thread that counts against nobody's plans of a day; None for no door."""
    found = _asking.get()
    return (
        None if found is None else replace(found, identity=replace(found.identity, unlimited=True), plans_per_day=None)
    )


def viewer() -> Viewer:
    """Who looks at stored objects: who is asking, or one who sees all: an admin, and whoever has this machine."""
    found = _asking.get()
    if found is None or "admin" in found.identity.scopes:
        return UNRESTRICTED
    return Viewer(found.identity.id)


def keys_in_force() -> bool:
    """Whether who is asking showed who they are; not on loopback, nor on the command line."""
    found = _asking.get()
    return found is not None and found.identity.via != LOCAL.via


def owner() -> str | None:
    """Whose what is made now is to be; None, everybody's, where no keys are in force."""
    found = _asking.get()
    return found.identity.id if found is not None and keys_in_force() else None


def record(
    action: str, subject: str, now: datetime, *, outcome: str = "done", asking: Asking | None = None
) -> AuditRecord:
    """What the audit log says of this, and who did it: who is asking, unless told."""
    found = asking or _asking.get() or _this_user()
    identity = found.identity
    return AuditRecord(
        at=now,
        identity=_clean(identity.id),
        name=_clean(identity.name),
        via=identity.via,
        action=action,
        subject=_clean(subject),
        outcome=_clean(outcome),
        request_id=_clean(found.request_id),
        address=_clean(found.address),
    )


#: Identities whose plans of a day are used up, by what this process was told when it wrote the last: so that nothing is
#: computed that could not be given. The store alone decides.
_used_up: dict[str, date] = {}
_MOST_USED_UP = 10_000


def refuse_used_up(now: datetime) -> None:
    """Raises `QuotaExceeded` where today's plans of who is asking are known to be used up."""
    found = _asking.get()
    if found is not None and found.plans_per_day is not None and _used_up.get(found.identity.id) == now.date():
        raise QuotaExceeded(found.plans_per_day)


@contextmanager
def counting(now: datetime) -> Iterator[None]:
    """Around what writes a `charge`: where the store says that today's plans are used up, that is known from then on."""
    try:
        yield
    except QuotaExceeded:
        found = _asking.get()
        if found is not None:
            if len(_used_up) >= _MOST_USED_UP:
                _used_up.clear()
            _used_up[found.identity.id] = now.date()
        raise


def charge(action: str, subject: str, now: datetime, *, outcome: str = "done") -> Charge:
    """The record of a plan, which also counts against what who is asking may have in a day."""
    found = _asking.get()
    counted = found is not None and not found.identity.unlimited
    limit = found.plans_per_day if found is not None else None
    return Charge(record=record(action, subject, now, outcome=outcome), counted=counted, limit=limit)


@cache
def _this_user() -> Asking:
    """The user of this machine who runs the process; a number where it has no name, as in a container."""
    import getpass
    import os

    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        name = str(os.getuid())
    return Asking(
        identity=Identity(id=f"user:{name}", name=name, scopes=frozenset(SCOPES), via="command", unlimited=True)
    )


def _clean(text: str) -> str:
    """Text that a database takes and a terminal shows as it is: no control characters, no half characters, not endless."""
    kept = text[:_LONGEST]
    # Nearly always, and told in one step; what is not is rare enough to be looked at letter by letter.
    return kept if kept.isprintable() else "".join(each if each.isprintable() else "?" for each in kept)
