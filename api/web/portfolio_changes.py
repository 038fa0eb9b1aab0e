"""Changes of the deadlines and priorities of a planned portfolio, to plan it again."""

import copy
from dataclasses import dataclass

import yaml

from gpuplan.api.services.service_context import Document
from gpuplan.api.web.form_bodies import Sent

#: What can be changed of a job.
FIELDS = ("deadline", "priority")
#: Most jobs whose fields are shown; a form takes 200 fields. Others are changed in the document.
MOST_JOBS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EditableJob:
    """A job of the submitted document by its place, with its fields as they were written."""

    number: int
    name: str
    deadline: str
    priority: str


def editable_jobs(document: Document) -> list[EditableJob]:
    """The first jobs of a document."""
    return [
        EditableJob(
            number=number,
            name=str(job.get("name") or f"job {number + 1}"),
            **{field: "" if job.get(field) is None else str(job[field]) for field in FIELDS},
        )
        for number, job in enumerate(document["jobs"][:MOST_JOBS])
    ]


def with_changes(document: Document, form: Sent) -> Document:
    """The document with what the form states; an empty field is left out, and one that is not in the form stays."""
    changed: Document = copy.deepcopy(dict(document))
    for before in editable_jobs(document):
        job = changed["jobs"][before.number]
        for field in FIELDS:
            name = f"{field}-{before.number}"
            text = form.texts.get(name, [""])[0]
            if name not in form.fields or text == getattr(before, field):
                continue
            job.pop(field, None)
            if text:
                job[field] = yaml.safe_load(text) if field == "priority" and text.lstrip("-").isdecimal() else text
    return changed


def document_text(document: Document) -> str:
    """A document as the text of the form."""
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return text
