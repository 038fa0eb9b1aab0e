"""`Idempotency-Key`: the same key with the same request returns the same response, so that a client may retry."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Request

from gpuplan.api.http.problem_details import Refused, unusable
from gpuplan.api.security.identity import LOCAL
from gpuplan.api.services.composition import Services
from gpuplan.api.services.service_context import Document
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.wire import wire

IDEMPOTENCY_KEY = "idempotency-key"
_KEY = re.compile(r"[!-~]{1,255}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """The key of one request (None without the header), its owner and operation, and the hash of the request.

    Keys of different identities are separate, so that nobody can read another's response by guessing its key.
    """

    key: str | None
    scope: str
    request_hash: str

    @classmethod
    def read(cls, request: Request, body: bytes, query: str) -> "Idempotency":
        """Read the header. Raises `Refused` (400) unless the key is 1 to 255 printable ASCII characters, or if there
        are two.
        """
        keys = request.headers.getlist(IDEMPOTENCY_KEY)
        if not keys:
            return cls(key=None, scope="", request_hash="")
        if len(keys) > 1:
            raise _refused("is sent more than once; send it once")
        [key] = keys
        if not _KEY.fullmatch(key):
            raise _refused("is not a valid key; accepted: 1 to 255 printable ASCII characters without blanks")
        digest = hashlib.sha256()
        for part in (request.headers.get("content-type", "").encode(), query.encode(), body):
            digest.update(len(part).to_bytes(8, "big") + part)
        return cls(key=key, scope=_scope(request), request_hash=digest.hexdigest())

    def run(self, gpuplan: Services, answer: Callable[[], object]) -> Document:
        """The JSON of the answer given before under this key, else of `answer()`, which is then kept.

        Raises `Refused` (422) if the key was used for another request.
        """
        if self.key is None:
            return _json_of(answer())
        try:
            stored = gpuplan.store.recall(self.key, self.scope, self.request_hash)
        except UnusableInput as error:
            raise unusable(error, within="header") from error
        if stored is None:
            stored = gpuplan.store.remember(self.key, self.scope, self.request_hash, wire(answer()))
        return _json_of(stored)


def _json_of(answer: object) -> Document:
    document = wire(answer)
    if not isinstance(document, dict):
        raise TypeError("the response of an operation with an Idempotency-Key must be an object")
    return document


def _refused(message: str) -> Refused:
    fault = Fault(("Idempotency-Key",), message)
    return Refused(400, str(fault), faults=(fault,), within="header")


def _scope(request: Request) -> str:
    """The operation and the owner of the key; without authentication there is one common owner."""
    identity = getattr(request.state, "identity", LOCAL)
    whose = "" if identity is LOCAL else f" of {identity.id}"
    return f"{request.method} {request.url.path}{whose}"
