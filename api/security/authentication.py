"""Authentication: turns keys, sessions and tokens into identities, and caches them for seconds.

Keys are read from the store and cached for `KNOWN_SECONDS`: for that long a key revoked by another process may still be
accepted here; changes by this process apply at once. The expiry of a key is cached with it and compared with the clock
at every request, so changes of the clock take effect.
"""

import logging
import math
import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from cachetools import FIFOCache

from gpuplan.api.security.access_settings import AccessSettings
from gpuplan.api.security.api_key_secrets import SESSION_PREFIX, Presented, hash_of, identity_of, new_secret, presented
from gpuplan.api.security.authorization import Requester, record
from gpuplan.api.security.identity import SCOPES, Identity
from gpuplan.api.security.oidc import Issuer, NotAccepted
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.runtime.monotonic_clocks import ForwardClock
from gpuplan.catalog.store.access_store import USE_IS_NOTED_EVERY, AccessStore, StoredKey, StoredSession

log = logging.getLogger("gpuplan.identity")

KNOWN_SECONDS = 5.0
#: Tokens live for minutes, and are checked again at least this often.
TOKEN_KNOWN_SECONDS = 60.0
#: Maximum of cached identities; more at once indicates invented credentials.
MOST_KNOWN = 4_096
ADMIN = "admin"
_ADMIN_ID = f"key:{ADMIN}"


class Unauthenticated(Exception):
    """The credentials are not accepted. The reason is for the log; the client only learns that it is unauthenticated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    identity: Identity
    secret_hash: str
    until: float
    """On the monotonic clock: until when the cached identity is used."""
    expires_at: datetime | None
    """On the wall clock."""


class Authenticator:
    """Authenticates keys, sessions and tokens. Thread-safe; methods may wait for the store."""

    def __init__(self, store: AccessStore, settings: AccessSettings, *, issuer: Issuer | None = None) -> None:
        """Uses the keys of this store, the admin key of the environment, and the issuer, if there is one."""
        self._store, self._settings = store, settings
        self.issuer = issuer or (Issuer(settings.oidc) if settings.oidc else None)
        self._admin_hash = hash_of(settings.admin_key) if settings.admin_key else None
        self._clock = ForwardClock()
        self._lock = threading.Lock()
        self._known: FIFOCache[str, _Known] = FIFOCache(MOST_KNOWN)
        self._noted: dict[str, float] = {}

    def opens(self) -> bool:
        """Whether any credentials exist that would be accepted."""
        return self._admin_hash is not None or self.issuer is not None or self._store.has_valid_key(self._clock.now())

    def known(self, text: str, *, session: bool = False) -> Identity | None:
        """The identity of these credentials, if it is cached."""
        cached = self._known.get(_name(text, session))
        if cached is None or time.monotonic() >= cached.until or not _same(cached.secret_hash, text):
            return None
        if cached.expires_at is not None and self._clock.now() >= cached.expires_at:
            return None
        # The use of a key is recorded once a minute, by the method that may wait.
        due = time.monotonic() - self._noted.get(cached.identity.id, 0.0) >= USE_IS_NOTED_EVERY.total_seconds()
        noted = cached.identity.via == "key" and cached.identity.id != _ADMIN_ID
        return None if due and noted else cached.identity

    def was_known(self, text: str, *, session: bool = False) -> bool:
        """Whether these credentials were accepted before and have not been found invalid since."""
        return _name(text, session) in self._known

    def identify(self, text: str, *, session: bool = False) -> Identity:
        """The identity of this key, token or session. Raises `Unauthenticated`, `IssuerDown` or `StoreFailure`."""
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
        if key is None or not key.is_valid(now) or key.secret_hash != session.key_hash:
            raise Unauthenticated(f"a session of key {session.key_id}, which is no longer valid")
        self._note_use(key)
        expires_at = min(filter(None, (session.expires_at, key.expires_at)))
        identity = identity_of(key, via="session")
        return self._keep(text, identity, KNOWN_SECONDS, session=True, expires_at=expires_at)

    def log_in(self, text: str, requester: Requester) -> tuple[str, datetime]:
        """A new session for these credentials, as text for the cookie, and when it ends.

        Raises `Unauthenticated`; tokens open no session, since they expire sooner than users expect.
        """
        now = self._clock.now()
        key = presented(text)
        stored = self._stored(key) if key is not None else None
        if stored is None and (self._admin_hash is None or hash_of(text) != self._admin_hash):
            raise Unauthenticated("an unknown key")
        until = now + timedelta(hours=self._settings.variables.session_hours)
        if stored is not None and stored.expires_at is not None:
            until = min(until, stored.expires_at)
        shown, secret = new_secret(SESSION_PREFIX)
        session = StoredSession(
            id=secret.id,
            secret_hash=secret.secret_hash,
            key_id=stored.id if stored is not None else ADMIN,
            key_hash=stored.secret_hash if stored is not None else str(self._admin_hash),
            created_at=now,
            expires_at=until,
        )
        identity = identity_of(stored, via="session") if stored is not None else _admin("session")
        by = Requester(identity=identity, request_id=requester.request_id, address=requester.address)
        self._store.open_session(session, record("login", secret.id, now, requester=by))
        return shown, until

    def log_out(self, text: str, requester: Requester) -> None:
        """End this session, if it exists."""
        shown = presented(text, SESSION_PREFIX)
        session = self._store.find_session(shown.id) if shown is not None else None
        if shown is None or session is None or not shown.opens(session.secret_hash):
            return
        key = self._store.find_key(session.key_id)
        identity = identity_of(key, via="session") if key is not None else _admin("session")
        by = Requester(identity=identity, request_id=requester.request_id, address=requester.address)
        self._store.end_session(session.id, record("logout", session.id, datetime.now(UTC), requester=by))
        self.forget()

    def forget(self) -> None:
        """Expire all cached identities: keys have changed."""
        with self._lock:
            self._known.update({name: replace(cached, until=-math.inf) for name, cached in self._known.items()})

    def close(self) -> None:
        """Close connections."""
        if self.issuer is not None:
            self.issuer.close()

    def _stored(self, key: Presented) -> StoredKey | None:
        """The stored key that these credentials match, or None if there is no valid one."""
        stored_key = self._store.find_key(key.id)
        # Compare in any case: otherwise the time would show whether the id exists.
        opens = key.opens(stored_key.secret_hash if stored_key is not None else "0" * 64)
        return stored_key if stored_key is not None and opens and stored_key.is_valid(self._clock.now()) else None

    def _note_use(self, key: StoredKey) -> None:
        """Record the use of a key; a failure to record it does not refuse the request."""
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
        return identity


def _admin(via: str) -> Identity:
    return Identity(id=_ADMIN_ID, name="admin", scopes=frozenset(SCOPES), via=via)


def _name(text: str, session: bool) -> str:
    """The cache key of an identity: the hash of its credentials, so that memory holds no secret."""
    return hash_of(("session " if session else "") + text)


def _same(secret_hash: str, text: str) -> bool:
    return Presented(id="", secret_hash=secret_hash).opens(hash_of(text))
