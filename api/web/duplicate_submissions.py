"""Answers a form that is submitted twice only once: a double click, or a reload while waiting.

Every rendered form has a unique number. The same number with the same contents is the same request, like one with an
`Idempotency-Key` under `/v1`. With other contents it is a new request, because a user may go back and edit the form.
"""

import hashlib
import re
import uuid

from gpuplan.api.http.idempotency import Idempotency
from gpuplan.api.web.form_bodies import Sent

FIELD = "once"
_NUMBER = re.compile(r"[0-9a-f]{32}")


def new_number() -> str:
    """A number for the field `once` of a new form."""
    return uuid.uuid4().hex


def idempotency_of(form: Sent, *, scope: str) -> Idempotency:
    """The idempotency of a form's request; a form without a valid number is always a new request."""
    contents = hashlib.sha256()
    texts = [(name, value) for name, values in sorted(form.texts.items()) if name != FIELD for value in values]
    files = [(name, file, body) for name, (file, body) in sorted(form.files.items())]
    for part in (repr(texts).encode(), repr(files).encode()):
        contents.update(len(part).to_bytes(8, "big") + part)
    number = form.texts.get(FIELD, [""])[0]
    digest = contents.hexdigest()
    key = f"{number}-{digest}" if _NUMBER.fullmatch(number) else None
    return Idempotency(key=key, scope=scope, request_hash=digest)
