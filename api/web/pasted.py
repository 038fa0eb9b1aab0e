"""A document that a reader pasted or uploaded: its text, what is in it, and what is wrong at which line of it."""

from dataclasses import dataclass

from api.app import Document
from api.web.document_lines import line_of
from api.web.forms import Sent
from api.web.pages import refusal_of
from catalog.documents import read_document
from catalog.errors import Fault, UnusableInput

#: The longest line that is shown of a document.
_LONGEST_LINE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """A fault: the job that it is in (from 1), the field there, what is wrong, and its line with that line's text."""

    job: int | None
    field: str
    message: str
    line: int | None
    excerpt: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An expected error of a form: the status, what is to be mended, and headers."""

    status: int
    mending: list[Mending]
    headers: dict[str, str]


def sent_text(form: Sent) -> str:
    """The text that was sent: that of a file, if one was chosen, before what was pasted."""
    if "file" in form.files:
        return form.files["file"][1].decode("utf-8-sig", "replace")
    return form.texts.get("document", [""])[0]


def sent_document(form: Sent, *, name: str) -> Document:
    """The document in it, `name` being what it is called in errors. Raises `UnusableInput`."""
    if "file" in form.files:
        file, body = form.files["file"]
        return read_document(body, name=file[:80])
    text = sent_text(form)
    if not text:
        raise UnusableInput.at(message="paste it here, choose a file, or begin with the example")
    return read_document(text, name=name)


def refusal(error: Exception, text: str) -> Refusal:
    """How an expected error is told at the form that sent `text`."""
    status, faults, headers = refusal_of(error)
    return Refusal(status=status, mending=[_mending(fault, text) for fault in faults], headers=headers)


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
