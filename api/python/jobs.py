"""A job as a Python object, and every form of a job as the JSON document that services read."""

import os
from collections.abc import Mapping
from copy import deepcopy
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from gpuplan.api.schemas.job import JobDocument
from gpuplan.api.schemas.settings_file import read_file
from gpuplan.catalog.parsing.document_fields import faults_of
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import UnusableInput


class Job(JobDocument):
    """A training job. Takes the keys of a job file as keywords and checks them at once.

    Quantities may carry units ("14d", "300B", "$250k"); a `timedelta` and an aware `datetime` are accepted too. What is
    read is an attribute: `Job(workload=..., deadline="7d").deadline` is 168.0. Raises `UnusableInput` with every fault.
    """

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**{name: as_json(value) for name, value in fields.items()})
        except ValidationError as error:
            raise UnusableInput(*faults_of(error.errors(include_url=False), JobDocument)) from None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """The job in a YAML or JSON file. Raises `UnusableInput` if it cannot be read or is no job."""
        return cls(**read_job_file(path))

    def to_dict(self) -> JsonObject:
        """The job as JSON has it: what was given, quantities in the units of their fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


#: What every function accepts as a job.
AnyJob = Job | Mapping[str, Any] | str | os.PathLike[str]


def job_document(job: AnyJob) -> JsonObject:
    """The JSON document of a job; text is the path of a job file. Raises `UnusableInput` at `job`."""
    if isinstance(job, Job):
        return job.to_dict()
    if isinstance(job, Mapping):
        return {name: as_json(value) for name, value in job.items()}
    if isinstance(job, str | os.PathLike):
        return read_job_file(job)
    message = f"{type(job).__name__} is no job; give a gpuplan.Job, a mapping, or the path of a YAML or JSON file"
    raise UnusableInput.at("job", message=message)


def read_job_file(path: str | os.PathLike[str]) -> JsonObject:
    """The document in a YAML or JSON file. Raises `UnusableInput` at `job`."""
    return read_document(read_file(Path(path), field="job"), name=os.fspath(path))


def as_json(value: Any) -> Any:
    """A value of Python as a job file writes it: times as ISO 8601, spans as hours, NumPy scalars as numbers."""
    match value:
        case Mapping():
            return {name: as_json(part) for name, part in value.items()}
        case list() | tuple():
            return [as_json(part) for part in value]
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return f"{value.total_seconds() / 3600!r}h"
        case Decimal() | os.PathLike():
            return str(value)
        case JobDocument():
            return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
        case _:
            return _scalar(value)


def _scalar(value: Any) -> Any:
    """A NumPy scalar as the number or text that it holds; anything else as it is, for the reader to accept or refuse."""
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return value.item()
    return deepcopy(value)
