"""What a browser sends with a form: never more than a job needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.types import Message

from api.http.access import refuse_other_sites
from api.http.bodies import BODY_LIMIT_BYTES
from api.http.problems import Refused

__all__ = ["Sent", "read_form", "refuse_other_sites"]

#: A file of the largest size that a document may have, with the form around it, whose escapes may triple it.
FORM_LIMIT_BYTES = 3 * BODY_LIMIT_BYTES
MOST_FIELDS = 200
#: Fields that hold a whole file, in which the blanks before the first word are part of what it says.
_FILES = frozenset({"document"})
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What was sent: texts by field without blank ones, and files by field as name and bytes.

    Texts are stripped, but for a pasted file, which stays as it is. `fields` are the names of all, empty or not.
    """

    texts: Mapping[str, Sequence[str]]
    files: Mapping[str, tuple[str, bytes]]
    fields: frozenset[str]


async def read_form(request: Request) -> Sent:
    """The fields of a form.

    Raises `Refused`: 413 above the limit, 415 for what is no form, and `HTTPException` (400) for what is called a form
    and is none. That no other site's page sends it is seen to at the door of the service.
    """
    if not request.headers.get("content-type", "").lower().startswith(_FORMS):
        raise Refused(415, "the page takes forms alone; documents go to /v1")
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await request.receive()
        seen += len(message.get("body", b""))
        if seen > FORM_LIMIT_BYTES:
            raise Refused(413, f"the form is larger than {FORM_LIMIT_BYTES // 1024} KiB, and no job is; send less")
        return message

    limited = Request(request.scope, counted)
    async with limited.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=BODY_LIMIT_BYTES) as form:
        texts: dict[str, list[str]] = {}
        files = {}
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                if value.filename:
                    files[name] = value.filename, await _whole(value)
            elif value.strip():
                texts.setdefault(name, []).append(value if name in _FILES else value.strip())
        return Sent(texts=texts, files=files, fields=frozenset(form))


async def _whole(file: UploadFile) -> bytes:
    body = await file.read(BODY_LIMIT_BYTES + 1)
    if len(body) > BODY_LIMIT_BYTES:
        raise Refused(413, f"the file is larger than {BODY_LIMIT_BYTES // 1024} KiB, and no job is; choose another")
    return body
