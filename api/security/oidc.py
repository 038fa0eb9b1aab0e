"""Bearer tokens of an OpenID Connect issuer: reads and caches the issuer's keys and validates the claims.

Only asymmetric algorithms are accepted: with a shared secret, or `none`, anybody with the public key could sign.
"""

import threading
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from gpuplan.api.security.access_settings import OidcSettings
from gpuplan.api.security.identity import Identity, with_lesser
from gpuplan.catalog.parsing.json_object import JsonObject

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
#: Tolerated difference between the clocks of issuer and service.
LEEWAY_SECONDS = 30
#: Longer than any token with a few dozen groups; checking longer signatures would waste work.
MOST_TOKEN_CHARACTERS = 16_384
#: The longest subject in OpenID Connect Core 1.0, section 2.
MOST_SUBJECT_CHARACTERS = 255
#: Keys are read again after this time, and stay in use while the issuer does not answer.
KEYS_LAST_SECONDS = 600.0
#: Tokens with unknown keys make the service query the issuer at most this often.
ASK_AGAIN_SECONDS = 10.0
FETCH_SECONDS = 5.0
#: Of the forty threads that wait for the store and the network, this many may wait for the issuer: tokens with invented
#: keys must not block other requests while it is slow.
MOST_WAITING = 8
MOST_KEY_BYTES = 1024 * 1024


class NotAccepted(Exception):
    """The token grants nothing; the reason is for the log, not for the client."""


class IssuerDown(Exception):
    """The issuer does not answer, and no cached key can check the token."""


class Issuer:
    """One issuer and its signing keys. Thread-safe; methods may wait for the network."""

    def __init__(self, settings: OidcSettings, *, transport: httpx.BaseTransport | None = None) -> None:
        """Reads nothing before the first token."""
        self._settings = settings
        self._client = httpx.Client(timeout=FETCH_SECONDS, transport=transport, follow_redirects=False)
        self._lock = threading.Lock()
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_at = self._asked_at = -float("inf")

    def identity(self, token: str) -> tuple[Identity, float]:
        """The identity of the token, and when it expires (seconds since 1970).

        Raises `NotAccepted`, or `IssuerDown` if it cannot be checked.
        """
        if len(token) > MOST_TOKEN_CHARACTERS:
            raise NotAccepted(f"{len(token)} characters long")
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise NotAccepted(f"algorithm {str(header.get('alg'))[:20]!r}")
            key = self._key(str(header.get("kid", "")))
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            return self._identity(claims), float(claims["exp"])
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise NotAccepted(f"{type(error).__name__}: {error}") from error

    def reach(self) -> int:
        """The number of keys that the issuer publishes now. Raises `IssuerDown`."""
        with self._lock:
            self._read(time.monotonic(), needed=True)
            return len(self._keys)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _identity(self, claims: JsonObject) -> Identity:
        subject = str(claims["sub"])
        if not _shows(subject):
            raise NotAccepted(f"its subject is not 1 to {MOST_SUBJECT_CHARACTERS} printable characters")
        named = (claims.get(value) for value in ("email", "preferred_username", "name"))
        name = next((value for value in named if isinstance(value, str) and _shows(value)), subject)
        granted = [
            self._settings.scopes[value] for value in _values(claims, self._settings) if value in self._settings.scopes
        ]
        return Identity(id=f"oidc:{subject}", name=name, scopes=with_lesser(granted), via="oidc")

    def _key(self, kid: str) -> jwt.PyJWK:
        """The key with this id (the only one, if the token names none); queries the issuer if it is unknown."""
        known = self._named(kid)
        if known is None:
            return self._unknown(kid)
        # One thread renews outdated keys; the others use the old ones meanwhile.
        if time.monotonic() - self._read_at < KEYS_LAST_SECONDS or not self._lock.acquire(blocking=False):
            return known
        try:
            return self._asked_for(kid)
        finally:
            self._lock.release()

    def _unknown(self, kid: str) -> jwt.PyJWK:
        """A key that the issuer may have. Raises `IssuerDown` if enough threads already wait for it."""
        if not self._waiting.acquire(blocking=False):
            raise IssuerDown(f"{self._settings.issuer} is being asked, and {MOST_WAITING} wait for it")
        try:
            with self._lock:
                return self._asked_for(kid)
        finally:
            self._waiting.release()

    def _asked_for(self, kid: str) -> jwt.PyJWK:
        """The key, queried from the issuer unless it is cached or was queried a moment ago. The caller holds the lock."""
        now = time.monotonic()
        key = self._named(kid)
        fresh = now - self._read_at < KEYS_LAST_SECONDS
        if (key is None or not fresh) and now - self._asked_at >= ASK_AGAIN_SECONDS:
            self._asked_at = now
            self._read(now, needed=key is None)
            key = self._named(kid)
        if key is None and not self._keys:
            raise IssuerDown(f"{self._settings.issuer} gave no keys yet")
        if key is None:
            raise NotAccepted("signed with a key that the issuer does not publish")
        return key

    def _named(self, kid: str) -> jwt.PyJWK | None:
        keys = self._keys
        if kid:
            return keys.get(kid)
        return next(iter(keys.values())) if len(keys) == 1 else None

    def _read(self, now: float, *, needed: bool) -> None:
        """The issuer's current keys. If it does not answer, the known ones stay in use."""
        try:
            document = self._get(self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
            if document.get("issuer") != self._settings.issuer:
                raise ValueError("its configuration names another issuer")
            address = str(document.get("jwks_uri"))
            if urlsplit(address).scheme != "https" and not self._settings.issuer.startswith("http://"):
                raise ValueError("its keys are not served over https")
            listed = self._get(address).get("keys")
            self._keys = _keys(listed if isinstance(listed, list) else [])
            self._read_at = now
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            if needed:
                raise IssuerDown(f"{self._settings.issuer}: {type(error).__name__}: {error}") from error

    def _get(self, url: str) -> JsonObject:
        with self._client.stream("GET", url) as response:
            response.raise_for_status()
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MOST_KEY_BYTES:
                    raise ValueError("its answer is too long")
        document = httpx.Response(200, content=bytes(body)).json()
        if not isinstance(document, dict):
            raise ValueError("its answer is not a JSON object")
        return document


def _keys(listed: list[Any]) -> dict[str, jwt.PyJWK]:
    """The signing keys by id; unsupported key types are skipped, as the standard requires."""
    keys: dict[str, jwt.PyJWK] = {}
    for document in listed:
        if not isinstance(document, dict) or document.get("kty") == "oct" or document.get("use", "sig") != "sig":
            continue
        try:
            keys[str(document.get("kid", ""))] = jwt.PyJWK.from_dict(document)
        except jwt.PyJWTError:
            continue
    return keys


def _shows(text: str) -> bool:
    """Whether the text is safe for a database, a log and a message."""
    return text.isprintable() and 1 <= len(text.strip()) <= len(text) <= MOST_SUBJECT_CHARACTERS


def _values(claims: JsonObject, settings: OidcSettings) -> list[str]:
    """The values of the claim: a text with blanks or a list; dots in its name lead into objects."""
    value: Any = claims.get(settings.scopes_claim)
    if value is None:
        value = claims
        for part in settings.scopes_claim.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, str):
        return value.split()
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
