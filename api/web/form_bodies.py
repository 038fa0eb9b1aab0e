"""Reads submitted forms, within a size limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.types import Message

from gpuplan.api.http.authentication import refuse_other_sites
from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.request_bodies import BODY_LIMIT_BYTES

__all__ = ["Sent", "read_form", "refuse_other_sites"]

#: The largest document with its form; URL encoding may triple the size.
FORM_LIMIT_BYTES = 3 * BODY_LIMIT_BYTES
MOST_FIELDS = 200
#: Fields with a whole file, whose leading blanks are significant.
_FILES = frozenset({"document"})
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A submitted form: non-blank texts by field, and files by field as name and bytes.

    Texts are stripped, except pasted files. `fields` are the names of all fields, including blank ones.
    """

    texts: Mapping[str, Sequence[str]]
    files: Mapping[str, tuple[str, bytes]]
    fields: frozenset[str]


async def read_form(request: Request) -> Sent:
    """Read the fields of a form.

    Raises `Refused`: 413 above the limit, 415 for another media type; and `HTTPException` (400) for a malformed form.
    A middleware refuses forms sent by other sites.
    """
    if not request.headers.get("content-type", "").lower().startswith(_FORMS):
        raise Refused(415, "the page accepts only forms; send documents to /v1")
    seen = 0

    async def limited_receive() -> Message:
        nonlocal seen
        message = await request.receive()
        seen += len(message.get("body", b""))
        if seen > FORM_LIMIT_BYTES:
            raise Refused(
                413, f"the form is larger than {FORM_LIMIT_BYTES // 1024} KiB, the limit; send a smaller document"
            )
        return message

    limited = Request(request.scope, limited_receive)
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
        raise Refused(413, f"the file is larger than {BODY_LIMIT_BYTES // 1024} KiB, the limit; choose a smaller file")
    return body
