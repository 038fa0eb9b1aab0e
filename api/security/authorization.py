"""The requester of the current work: set by an interface, read for the audit log, ownership and quotas.

It follows a request into the threads that answer it. Without an interface that sets it (command line, worker), it is
the user of this machine.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache

from gpuplan.api.security.identity import LOCAL, SCOPES, Identity
from gpuplan.catalog.store.access_store import AuditRecord, Charge, QuotaExceeded
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer

#: Longer than any of our names or ids; longer ones are invented.
_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Identity, request and address of the requester, and its daily quota of plans (None: unlimited)."""

    identity: Identity
    request_id: str = ""
    address: str = ""
    plans_per_day: int | None = None


_current: ContextVar[Requester | None] = ContextVar("asking", default=None)


def asked_by(requester: Requester) -> None:
    """Set the requester of the current work."""
    _current.set(requester)


@contextmanager
def acting_as(requester: Requester) -> Iterator[None]:
    """Set the requester within the context."""
    token = _current.set(requester)
    try:
        yield
    finally:
        _current.reset(token)


def current_requester() -> Requester | None:
    """The current requester, for work in another process; None without an interface."""
    return _current.get()


def whose_turn() -> str:
    """The key for fair scheduling: the identity, or the address of an anonymous requester."""
    requester = _current.get()
    if requester is None:
        return ""
    return requester.address if requester.identity.via == LOCAL.via else requester.identity.id


def uncounted() -> Requester | None:
    """The current requester without its quota, for work in another thread; None without an interface."""
    requester = _current.get()
    return (
        None
        if requester is None
        else replace(requester, identity=replace(requester.identity, unlimited=True), plans_per_day=None)
    )


def viewer() -> Viewer:
    """Who reads stored objects: the requester, or None with access to all for an admin and on the command line."""
    requester = _current.get()
    if requester is None or "admin" in requester.identity.scopes:
        return UNRESTRICTED
    return Viewer(requester.identity.id)


def keys_in_force() -> bool:
    """Whether the requester is authenticated; false on loopback and on the command line."""
    requester = _current.get()
    return requester is not None and requester.identity.via != LOCAL.via


def owner() -> str | None:
    """The owner of new objects; None (everybody) without authentication."""
    requester = _current.get()
    return requester.identity.id if requester is not None and keys_in_force() else None


def record(
    action: str, subject: str, now: datetime, *, outcome: str = "done", requester: Requester | None = None
) -> AuditRecord:
    """An audit record of this event; `requester` defaults to the current one."""
    actor = requester or _current.get() or _this_user()
    identity = actor.identity
    return AuditRecord(
        at=now,
        identity=_clean(identity.id),
        name=_clean(identity.name),
        via=identity.via,
        action=action,
        subject=_clean(subject),
        outcome=_clean(outcome),
        request_id=_clean(actor.request_id),
        address=_clean(actor.address),
    )


#: Identities whose daily quota is used up according to the store's last answer, so that nothing is computed that would
#: be refused. Only the store decides.
_used_up: dict[str, date] = {}
_MOST_USED_UP = 10_000


def refuse_used_up(now: datetime) -> None:
    """Raises `QuotaExceeded` if the requester's daily quota is known to be used up."""
    requester = _current.get()
    if (
        requester is not None
        and requester.plans_per_day is not None
        and _used_up.get(requester.identity.id) == now.date()
    ):
        raise QuotaExceeded(requester.plans_per_day)


@contextmanager
def counting(now: datetime) -> Iterator[None]:
    """Wraps the code that writes a `charge`: remembers when the store reports an exhausted quota."""
    try:
        yield
    except QuotaExceeded:
        requester = _current.get()
        if requester is not None:
            if len(_used_up) >= _MOST_USED_UP:
                _used_up.clear()
            _used_up[requester.identity.id] = now.date()
        raise


def charge(action: str, subject: str, now: datetime, *, outcome: str = "done") -> Charge:
    """The record of a plan, which also counts against the requester's daily quota."""
    requester = _current.get()
    counts_against_quota = requester is not None and not requester.identity.unlimited
    limit = requester.plans_per_day if requester is not None else None
    return Charge(
        record=record(action, subject, now, outcome=outcome), counts_against_quota=counts_against_quota, limit=limit
    )


@cache
def _this_user() -> Requester:
    """The user of this machine who runs the process; a number if it has no name, as in a container."""
    import getpass
    import os

    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        name = str(os.getuid())
    return Requester(
        identity=Identity(id=f"user:{name}", name=name, scopes=frozenset(SCOPES), via="command", unlimited=True)
    )


def _clean(text: str) -> str:
    """Text that is safe for a database and a terminal: no control characters, no surrogates, bounded length."""
    shortened = text[:_LONGEST]
    # Nearly all texts pass this single check; only the others are inspected by character.
    return (
        shortened
        if shortened.isprintable()
        else "".join(character if character.isprintable() else "?" for character in shortened)
    )
