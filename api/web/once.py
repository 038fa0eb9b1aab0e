"""A form that is sent twice is answered once: a double click, or a page sent again while the first answer is awaited.

Each form that is shown carries a number of its own. The same number with the same contents is the same request, as
one with an `Idempotency-Key` is under `/v1`; with other contents it is another one, since whoever goes back to the
form may change it.
"""

import hashlib
import re
import uuid

from api.http.idempotency import Idempotency
from api.web.forms import Sent

FIELD = "once"
_NUMBER = re.compile(r"[0-9a-f]{32}")


def new_number() -> str:
    """What a form that is shown carries in its field `once`."""
    return uuid.uuid4().hex


def once(form: Sent, *, scope: str) -> Idempotency:
    """The request that a form makes; one without a number of ours is never taken for another."""
    contents = hashlib.sha256()
    texts = [(name, value) for name, values in sorted(form.texts.items()) if name != FIELD for value in values]
    files = [(name, file, body) for name, (file, body) in sorted(form.files.items())]
    for part in (repr(texts).encode(), repr(files).encode()):
        contents.update(len(part).to_bytes(8, "big") + part)
    number = form.texts.get(FIELD, [""])[0]
    digest = contents.hexdigest()
    key = f"{number}-{digest}" if _NUMBER.fullmatch(number) else None
    return Idempotency(key=key, scope=scope, request_hash=digest)
