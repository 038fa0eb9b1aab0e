"""A pasted or uploaded document: its text, contents, and faults by line."""

from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import Response

from gpuplan.api.services.service_context import Document
from gpuplan.api.web.document_lines import line_of
from gpuplan.api.web.duplicate_submissions import new_number
from gpuplan.api.web.form_bodies import Sent
from gpuplan.api.web.page_rendering import refusal_of, render
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: Longest excerpt of a document's line.
_LONGEST_LINE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """A fault: job number (from 1), field, message, and line with its text."""

    job: int | None
    field: str
    message: str
    line: int | None
    excerpt: str | None


def sent_text(form: Sent) -> str:
    """The submitted text; an uploaded file takes precedence over pasted text."""
    if "file" in form.files:
        return form.files["file"][1].decode("utf-8-sig", "replace")
    return form.texts.get("document", [""])[0]


def sent_document(form: Sent, *, name: str) -> Document:
    """Read the submitted document; `name` is its name in errors. Raises `UnusableInput`."""
    if "file" in form.files:
        file, body = form.files["file"]
        return read_document(body, name=file[:80])
    text = sent_text(form)
    if not text:
        raise UnusableInput.at(message="paste a document here, choose a file, or start with the example")
    return read_document(text, name=name)


def document_form(
    request: Request, template: str, text: str, error: Exception | None = None, **context: object
) -> Response:
    """The form of a document, with this text; after an expected error with its faults, at its status."""
    status, faults, headers = refusal_of(error) if error is not None else (200, [], {})
    context |= {"section": "Portfolio", "document": text, "submission": new_number()}
    context["faults"] = [_mending(fault, text) for fault in faults]
    return render(request, template, context, status=status, headers=headers)


def _mending(fault: Fault, text: str) -> Mending:
    path = fault.path
    job, inside = None, path
    if len(path) > 1 and path[0] == "jobs" and isinstance(path[1], int):
        job, inside = path[1] + 1, path[2:]
    line = line_of(text, path) if path and text else None
    lines = text.splitlines()
    return Mending(
        job=job,
        field=Fault(inside, "").field,
        message=fault.message,
        line=line,
        excerpt=lines[line - 1][:_LONGEST_LINE] if line is not None and line <= len(lines) else None,
    )
