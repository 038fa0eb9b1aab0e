"""Bearer tokens of an OpenID Connect issuer: its keys are read from it, and kept; what a token says is checked.

Asymmetric algorithms alone are taken: with a shared secret, or `none`, whoever knows the public key could sign.
"""

import threading
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from api.identity.settings import OidcSettings
from api.identity.who import Identity, with_lesser

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
#: Clocks of issuer and service may differ by so much.
LEEWAY_SECONDS = 30
#: Longer than any token with a few dozen groups; checking a signature over more is work for nothing.
MOST_TOKEN_CHARACTERS = 16_384
#: What OpenID Connect Core 1.0, section 2 allows a subject.
MOST_SUBJECT_CHARACTERS = 255
#: Keys are read anew after this, and kept past it while the issuer does not answer.
KEYS_LAST_SECONDS = 600.0
#: Tokens with unknown keys, however many, make the service ask the issuer no more often than this.
ASK_AGAIN_SECONDS = 10.0
FETCH_SECONDS = 5.0
#: Of the forty threads that wait for the store and the network on behalf of all requests, so many wait for the issuer:
#: tokens with made-up keys must not hold up everybody else while it is slow.
MOST_WAITING = 8
MOST_KEY_BYTES = 1024 * 1024


class NotAccepted(Exception):
    """The token is not one that grants anything; why is for the log, not for who sent it."""


class IssuerDown(Exception):
    """The issuer does not answer, and nothing is known by which the token could be checked."""


class Issuer:
    """One issuer and the keys that it signs with. Safe to share between threads; methods may wait for the network."""

    def __init__(self, settings: OidcSettings, *, transport: httpx.BaseTransport | None = None) -> None:
        """Nothing is read before the first token comes."""
        self._settings = settings
        self._client = httpx.Client(timeout=FETCH_SECONDS, transport=transport, follow_redirects=False)
        self._lock = threading.Lock()
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_at = self._asked_at = -float("inf")

    def identity(self, token: str) -> tuple[Identity, float]:
        """Whose token it is, and until when it holds (seconds since 1970).

        Raises `NotAccepted`, or `IssuerDown` where it cannot be told.
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
            return self._who(claims), float(claims["exp"])
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise NotAccepted(f"{type(error).__name__}: {error}") from error

    def reach(self) -> int:
        """How many keys the issuer shows now. Raises `IssuerDown`."""
        with self._lock:
            self._read(time.monotonic(), needed=True)
            return len(self._keys)

    def close(self) -> None:
        """Gives back its connections."""
        self._client.close()

    def _who(self, claims: dict[str, Any]) -> Identity:
        subject = str(claims["sub"])
        if not _shows(subject):
            raise NotAccepted(f"its subject is not 1 to {MOST_SUBJECT_CHARACTERS} printable characters")
        named = (claims.get(each) for each in ("email", "preferred_username", "name"))
        name = next((each for each in named if isinstance(each, str) and _shows(each)), subject)
        granted = [
            self._settings.scopes[each] for each in _values(claims, self._settings) if each in self._settings.scopes
        ]
        return Identity(id=f"oidc:{subject}", name=name, scopes=with_lesser(granted), via="oidc")

    def _key(self, kid: str) -> jwt.PyJWK:
        """The key of this id (the only one, for a token that names none); asks the issuer where it is not known."""
        known = self._named(kid)
        if known is None:
            return self._unknown(kid)
        # Keys past their time are asked for by one, and go on for the others meanwhile.
        if time.monotonic() - self._read_at < KEYS_LAST_SECONDS or not self._lock.acquire(blocking=False):
            return known
        try:
            return self._asked_for(kid)
        finally:
            self._lock.release()

    def _unknown(self, kid: str) -> jwt.PyJWK:
        """A key that may be there once the issuer was asked. Raises `IssuerDown` where enough wait for that already."""
        if not self._waiting.acquire(blocking=False):
            raise IssuerDown(f"{self._settings.issuer} is being asked, and {MOST_WAITING} wait for it")
        try:
            with self._lock:
                return self._asked_for(kid)
        finally:
            self._waiting.release()

    def _asked_for(self, kid: str) -> jwt.PyJWK:
        """The key, from the issuer unless it is known or was asked a moment ago. By the one who holds the lock."""
        now = time.monotonic()
        found = self._named(kid)
        fresh = now - self._read_at < KEYS_LAST_SECONDS
        if (found is None or not fresh) and now - self._asked_at >= ASK_AGAIN_SECONDS:
            self._asked_at = now
            self._read(now, needed=found is None)
            found = self._named(kid)
        if found is None and not self._keys:
            raise IssuerDown(f"{self._settings.issuer} gave no keys yet")
        if found is None:
            raise NotAccepted("signed with a key that the issuer does not show")
        return found

    def _named(self, kid: str) -> jwt.PyJWK | None:
        keys = self._keys
        if kid:
            return keys.get(kid)
        return next(iter(keys.values())) if len(keys) == 1 else None

    def _read(self, now: float, *, needed: bool) -> None:
        """The issuer's keys as it shows them now. One that does not answer leaves those known in use."""
        try:
            document = self._get(self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
            if document.get("issuer") != self._settings.issuer:
                raise ValueError("its configuration names another issuer")
            address = str(document.get("jwks_uri"))
            if urlsplit(address).scheme != "https" and not self._settings.issuer.startswith("http://"):
                raise ValueError("its keys are not shown over https")
            listed = self._get(address).get("keys")
            self._keys = _keys(listed if isinstance(listed, list) else [])
            self._read_at = now
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            if needed:
                raise IssuerDown(f"{self._settings.issuer}: {type(error).__name__}: {error}") from error

    def _get(self, url: str) -> dict[str, Any]:
        with self._client.stream("GET", url) as response:
            response.raise_for_status()
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MOST_KEY_BYTES:
                    raise ValueError("its answer is too long")
        document = httpx.Response(200, content=bytes(body)).json()
        if not isinstance(document, dict):
            raise ValueError("its answer is no JSON object")
        return document


def _keys(listed: list[Any]) -> dict[str, jwt.PyJWK]:
    """The keys by id that sign; those of kinds that nobody here can use are passed over, as the standard has it."""
    found: dict[str, jwt.PyJWK] = {}
    for each in listed:
        if not isinstance(each, dict) or each.get("kty") == "oct" or each.get("use", "sig") != "sig":
            continue
        try:
            found[str(each.get("kid", ""))] = jwt.PyJWK.from_dict(each)
        except jwt.PyJWTError:
            continue
    return found


def _shows(text: str) -> bool:
    """Whether it can stand in a database, a log and a message as it is."""
    return text.isprintable() and 1 <= len(text.strip()) <= len(text) <= MOST_SUBJECT_CHARACTERS


def _values(claims: dict[str, Any], settings: OidcSettings) -> list[str]:
    """What the claim says, as words: text with blanks or a list; dots in its name lead into objects."""
    found: Any = claims.get(settings.scopes_claim)
    if found is None:
        found = claims
        for part in settings.scopes_claim.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, str):
        return found.split()
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
