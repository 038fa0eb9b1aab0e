"""Request bodies: JSON or YAML by content type, at most 1 MiB, parsed as strictly as a file."""

from email.message import Message
from functools import partial

import anyio.to_thread
from fastapi import Request

from gpuplan.api.http.problem_details import Refused, unusable
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import UnusableInput

BODY_LIMIT_BYTES = 1024 * 1024
#: Parsing a longer body takes milliseconds (1 MiB of YAML most of a second), so it runs in a thread.
READ_AT_ONCE_BYTES = 16 * 1024
JSON = "application/json"
#: RFC 9512, and the type that was usual before it.
YAML = ("application/yaml", "application/x-yaml")


async def read_body(request: Request) -> tuple[bytes, JsonObject]:
    """The raw body and the document in it.

    Raises `Refused`: 415 for another content type or encoding, 413 above the size limit, 400 for text that cannot be
    parsed.
    """
    media_type = _media_type(request)
    body = await limited_body(request)
    # The name's extension chooses the parser: YAML sent as JSON is refused.
    name = "body.json" if media_type == JSON else "body.yaml"
    try:
        if len(body) <= READ_AT_ONCE_BYTES:
            return body, read_document(body, name=name)
        return body, await anyio.to_thread.run_sync(partial(read_document, body, name=name))
    except UnusableInput as error:
        raise unusable(error, status=400) from error


def _media_type_and_charset(content_type: str) -> tuple[str, str]:
    """Media type and character set of a header."""
    header = Message()
    header["Content-Type"] = content_type
    media_type = header.get_content_type() if content_type else ""
    return media_type, str(header.get_param("charset", "utf-8")).lower()


def _media_type(request: Request) -> str:
    media_type, charset = _media_type_and_charset(request.headers.get("content-type", ""))
    if media_type not in {JSON, *YAML} or charset not in {"utf-8", "us-ascii"}:
        shown = request.headers.get("content-type", "")[:80] or "no content type"
        accepted = {"Accept-Post": ", ".join((JSON, *YAML))}
        raise Refused(415, f"{shown!r} is not accepted; send {JSON} or {YAML[0]} in UTF-8", headers=accepted)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "a compressed body is not accepted; send it without Content-Encoding")
    return media_type


async def limited_body(request: Request) -> bytes:
    """The body; reading stops as soon as it is too long, whatever Content-Length says."""
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > BODY_LIMIT_BYTES:
        raise _too_large()
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT_BYTES:
            raise _too_large()
    return bytes(body)


def _too_large() -> Refused:
    return Refused(413, f"the body is larger than {BODY_LIMIT_BYTES // 1024} KiB; send less")
