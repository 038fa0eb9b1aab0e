"""`Idempotency-Key`: the same key with the same request gets the same answer, so that a client may send again."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Request

from api.app import Document, Gpuplan
from api.http.problems import Refused, unusable
from api.identity.who import LOCAL
from catalog.errors import Fault, UnusableInput

IDEMPOTENCY_KEY = "idempotency-key"
_KEY = re.compile(r"[!-~]{1,255}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """One request's key (None without the header), whose it is and what for, and the hash of the request.

    Keys of different identities never meet: what one was answered is not for another, who may have guessed the key.
    """

    key: str | None
    scope: str
    request_hash: str

    @classmethod
    def read(cls, request: Request, body: bytes, query: str) -> "Idempotency":
        """From the request. Raises `Refused` (400) for a key that is no printable ASCII of 1 to 255 characters, or for two."""
        keys = request.headers.getlist(IDEMPOTENCY_KEY)
        if not keys:
            return cls(key=None, scope="", request_hash="")
        if len(keys) > 1:
            raise _refused("is given more than once; give it once")
        [key] = keys
        if not _KEY.fullmatch(key):
            raise _refused("is no key; accepted: 1 to 255 printable ASCII characters without blanks")
        digest = hashlib.sha256()
        for part in (request.headers.get("content-type", "").encode(), query.encode(), body):
            digest.update(len(part).to_bytes(8, "big") + part)
        return cls(key=key, scope=_scope(request), request_hash=digest.hexdigest())

    def once(self, gpuplan: Gpuplan, answer: Callable[[], Document]) -> Document:
        """The answer given before under this key, else `answer()`, which is then kept.

        Raises `Refused` (422) if the key was used for another request.
        """
        if self.key is None:
            return answer()
        try:
            kept = gpuplan.store.recall(self.key, self.scope, self.request_hash)
        except UnusableInput as error:
            raise unusable(error, within="header") from error
        if kept is None:
            kept = gpuplan.store.remember(self.key, self.scope, self.request_hash, answer())
        if not isinstance(kept, dict):
            raise TypeError("what is kept under an Idempotency-Key is an answer, and so an object")
        return kept


def _refused(message: str) -> Refused:
    fault = Fault(("Idempotency-Key",), message)
    return Refused(400, str(fault), faults=(fault,), within="header")


def _scope(request: Request) -> str:
    """What the key is for, and of whom; everybody is one where nobody says who they are."""
    identity = getattr(request.state, "identity", LOCAL)
    whose = "" if identity is LOCAL else f" of {identity.id}"
    return f"{request.method} {request.url.path}{whose}"
