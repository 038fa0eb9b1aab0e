"""The request for an explanation: a job, and an optional item to ask about."""

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from gpuplan.api.schemas.job import JOB_EXAMPLE, JobDocument
from gpuplan.catalog.parsing.document_fields import Document, Reads, read_as
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.place_names import PROVIDER_ALIASES
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import TrainingJob

_LONGEST = 100
_ACCEPTED = "write an accelerator such as H100, an instance type such as p5.48xlarge or p5.*, a provider, a region or a price kind"


def something_named(value: object) -> str:
    """A name or glob of an accelerator, instance type, provider, region or price kind."""
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST or not value.isprintable():
        raise ValueError(f"{shown(value)} is not accepted; {_ACCEPTED}")
    text = value.strip()
    return PROVIDER_ALIASES.get(text.lower(), text)


Name = Annotated[
    str,
    Reads(something_named, {"type": "string", "minLength": 1, "maxLength": _LONGEST, "examples": ["H100", "us-*"]}),
]

_EXAMPLES: list[JsonValue] = [{"job": JOB_EXAMPLE, "not": "H100"}, {"job": JOB_EXAMPLE}]


class WhyDocument(Document):
    """`{"job": {...}, "not": "H100"}`: why not; `"with"`: what it would save; neither: only the plan."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})

    job: JobDocument
    not_: Name | None = Field(default=None, alias="not")
    with_: Name | None = Field(default=None, alias="with")


def parse_why(document: JsonObject, *, now: datetime) -> tuple[TrainingJob, str | None, str | None]:
    """Read the job, the item of `not` and the item of `with`.

    Raises `UnusableInput` with all faults, at paths that begin with `job`, `not` or `with`.
    """
    request = read_as(WhyDocument, document)
    try:
        job = request.job.job(now=now)
    except UnusableInput as error:
        raise error.under("job") from None
    return job, request.not_, request.with_
