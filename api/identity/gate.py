"""Who stands at the door: keys, sessions and tokens turned into identities, and what is known kept for seconds.

Keys are read from the store, and a key that was read holds for `KNOWN_SECONDS`: so long may one that another process
revokes still be taken here; this process's own changes count at once. When a key expires is read with it, and held
against the clock at every request, whatever the clock did since.
"""

import logging
import math
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from api.identity.asking import Asking, record
from api.identity.keys import SESSION_PREFIX, Presented, hash_of, identity_of, new_secret, presented
from api.identity.oidc import Issuer, NotAccepted
from api.identity.settings import AccessSettings
from api.identity.who import SCOPES, Identity
from catalog.access_store import AccessStore
from catalog.errors import StoreFailure
from catalog.keys import USE_IS_NOTED_EVERY, StoredKey, StoredSession
from catalog.steady_clock import ForwardClock

log = logging.getLogger("gpuplan.identity")

KNOWN_SECONDS = 5.0
#: Tokens live for minutes, and are checked anew at least this often.
TOKEN_KNOWN_SECONDS = 60.0
#: Identities kept; more at once means that somebody makes them up.
MOST_KNOWN = 4_096
ADMIN = "admin"
_ADMIN_ID = f"key:{ADMIN}"


class Unauthenticated(Exception):
    """What was shown opens nothing. The reason is for the log; whoever showed it is told no more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    identity: Identity
    secret_hash: str
    until: float
    """On the monotonic clock: until when nobody is asked again."""
    expires_at: datetime | None
    """By the clock on the wall."""


class Gate:
    """Tells who shows a key, a session or a token. Safe to share between threads; methods may wait for the store."""

    def __init__(self, store: AccessStore, settings: AccessSettings, *, issuer: Issuer | None = None) -> None:
        """On the keys of this store, the admin key of the environment, and the issuer, if there is one."""
        self._store, self._settings = store, settings
        self.issuer = issuer or (Issuer(settings.oidc) if settings.oidc else None)
        self._admin_hash = hash_of(settings.admin_key) if settings.admin_key else None
        self._clock = ForwardClock()
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._noted: dict[str, float] = {}

    def opens(self) -> bool:
        """Whether anybody could get in."""
        return self._admin_hash is not None or self.issuer is not None or self._store.any_key_holds(self._clock.now())

    def known(self, text: str, *, session: bool = False) -> Identity | None:
        """Who shows this, where that is known without waiting for anything."""
        found = self._known.get(_name(text, session))
        if found is None or time.monotonic() >= found.until or not _same(found.secret_hash, text):
            return None
        if found.expires_at is not None and self._clock.now() >= found.expires_at:
            return None
        # A key in use is written down once a minute, by the way that waits.
        due = time.monotonic() - self._noted.get(found.identity.id, 0.0) >= USE_IS_NOTED_EVERY.total_seconds()
        noted = found.identity.via == "key" and found.identity.id != _ADMIN_ID
        return None if due and noted else found.identity

    def was_known(self, text: str, *, session: bool = False) -> bool:
        """Whether this has opened something here before, and nothing since said that it no longer does."""
        return _name(text, session) in self._known

    def identify(self, text: str, *, session: bool = False) -> Identity:
        """Who shows this key, token or session. Raises `Unauthenticated`, `IssuerDown` or `StoreFailure`."""
        try:
            return self._identify_session(text) if session else self._identify(text)
        except Unauthenticated:
            with self._lock:
                self._known.pop(_name(text, session), None)
            raise

    def _identify(self, text: str) -> Identity:
        key = presented(text)
        if key is not None and (stored := self._stored(key)) is not None:
            self._note_use(stored)
            return self._keep(text, identity_of(stored), KNOWN_SECONDS, expires_at=stored.expires_at)
        if self._admin_hash is not None and Presented(id=ADMIN, secret_hash=hash_of(text)).opens(self._admin_hash):
            return self._keep(text, _admin("key"), KNOWN_SECONDS)
        if key is None and self.issuer is not None and text.count(".") == 2:
            try:
                identity, until = self.issuer.identity(text)
            except NotAccepted as error:
                raise Unauthenticated(f"token: {error}") from error
            expires_at = datetime.fromtimestamp(until, UTC)
            return self._keep(text, identity, TOKEN_KNOWN_SECONDS, expires_at=expires_at)
        raise Unauthenticated("an unknown key" if key is None else f"key {key.id}")

    def _identify_session(self, text: str) -> Identity:
        now = self._clock.now()
        shown = presented(text, SESSION_PREFIX)
        session = self._store.find_session(shown.id) if shown is not None else None
        if shown is None or session is None or not shown.opens(session.secret_hash) or session.expires_at <= now:
            raise Unauthenticated("a session that has ended")
        if session.key_id == ADMIN:
            if session.key_hash != self._admin_hash:
                raise Unauthenticated("a session of another admin key")
            return self._keep(text, _admin("session"), KNOWN_SECONDS, session=True, expires_at=session.expires_at)
        key = self._store.find_key(session.key_id)
        if key is None or not key.holds(now) or key.secret_hash != session.key_hash:
            raise Unauthenticated(f"a session of key {session.key_id}, which holds no more")
        self._note_use(key)
        expires_at = min(filter(None, (session.expires_at, key.expires_at)))
        who = identity_of(key, via="session")
        return self._keep(text, who, KNOWN_SECONDS, session=True, expires_at=expires_at)

    def log_in(self, text: str, asking: Asking) -> tuple[str, datetime]:
        """A new session for who shows this key, as text for the cookie, and when it ends.

        Raises `Unauthenticated`; tokens open no session, since they end sooner than people expect.
        """
        now = self._clock.now()
        key = presented(text)
        stored = self._stored(key) if key is not None else None
        if stored is None and (self._admin_hash is None or hash_of(text) != self._admin_hash):
            raise Unauthenticated("an unknown key")
        until = now + timedelta(hours=self._settings.variables.session_hours)
        if stored is not None and stored.expires_at is not None:
            until = min(until, stored.expires_at)
        shown, kept = new_secret(SESSION_PREFIX)
        session = StoredSession(
            id=kept.id,
            secret_hash=kept.secret_hash,
            key_id=stored.id if stored is not None else ADMIN,
            key_hash=stored.secret_hash if stored is not None else str(self._admin_hash),
            created_at=now,
            expires_at=until,
        )
        who = identity_of(stored, via="session") if stored is not None else _admin("session")
        by = Asking(identity=who, request_id=asking.request_id, address=asking.address)
        self._store.open_session(session, record("login", kept.id, now, asking=by))
        return shown, until

    def log_out(self, text: str, asking: Asking) -> None:
        """End the session that this shows, if it is one."""
        shown = presented(text, SESSION_PREFIX)
        session = self._store.find_session(shown.id) if shown is not None else None
        if shown is None or session is None or not shown.opens(session.secret_hash):
            return
        key = self._store.find_key(session.key_id)
        who = identity_of(key, via="session") if key is not None else _admin("session")
        by = Asking(identity=who, request_id=asking.request_id, address=asking.address)
        self._store.end_session(session.id, record("logout", session.id, datetime.now(UTC), asking=by))
        self.forget()

    def forget(self) -> None:
        """Whatever is known is read anew: keys have changed."""
        with self._lock:
            self._known = OrderedDict((name, replace(each, until=-math.inf)) for name, each in self._known.items())

    def close(self) -> None:
        """Gives back connections."""
        if self.issuer is not None:
            self.issuer.close()

    def _stored(self, key: Presented) -> StoredKey | None:
        """The key in the store that this opens, None where there is none that holds."""
        found = self._store.find_key(key.id)
        # Compared in any case: how long it takes then says nothing on whether the id is known.
        opens = key.opens(found.secret_hash if found is not None else "0" * 64)
        return found if found is not None and opens and found.holds(self._clock.now()) else None

    def _note_use(self, key: StoredKey) -> None:
        """A use that cannot be written down is no reason to refuse it."""
        identity, now = f"key:{key.id}", time.monotonic()
        if now - self._noted.get(identity, -float("inf")) < USE_IS_NOTED_EVERY.total_seconds():
            return
        self._noted[identity] = now
        try:
            self._store.note_use(key.id, datetime.now(UTC))
        except StoreFailure as error:
            log.warning("the use of key %s could not be noted: %s", key.id, error)

    def _keep(
        self,
        text: str,
        identity: Identity,
        seconds: float,
        *,
        session: bool = False,
        expires_at: datetime | None = None,
    ) -> Identity:
        until = time.monotonic() + seconds
        known = _Known(identity=identity, secret_hash=hash_of(text), until=until, expires_at=expires_at)
        with self._lock:
            self._known[_name(text, session)] = known
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        return identity


def _admin(via: str) -> Identity:
    return Identity(id=_ADMIN_ID, name="admin", scopes=frozenset(SCOPES), via=via)


def _name(text: str, session: bool) -> str:
    """What an identity is kept under: the hash of what was shown, so that memory holds no secret."""
    return hash_of(("session " if session else "") + text)


def _same(secret_hash: str, text: str) -> bool:
    return Presented(id="", secret_hash=secret_hash).opens(hash_of(text))
