"""The request of `afford`: a budget and a deadline, and what else limits the training of a model of any size."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from gpuplan.api.schemas.constraints import ConstraintsDocument
from gpuplan.api.schemas.job import Start, TrainingDocument
from gpuplan.api.schemas.job_fields import declared_fields
from gpuplan.catalog.parsing.document_fields import Document, quantity, read_as, whole_number
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import count
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import TrainingJob

_FIELDS = {key: about.reads for key, (_, about) in declared_fields(TrainingJob).items()}
#: What a job of any size has too.
_OF_A_JOB = ("training", "start", "deadline", "confidence", "constraints")


class AffordDocument(Document):
    """A budget, the most tokens that there are to train on, and the fields of a job that hold for every size."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"budget_usd": "2k", "deadline": "2w", "tokens": "2T"}]})

    budget_usd: Annotated[float, _FIELDS["budget_usd"]]
    tokens: (
        Annotated[float, quantity(count, "the most tokens that there are to train on, each seen once", "2T")] | None
    ) = None
    sequence_length: Annotated[int, whole_number(1, 1_048_576)] = 4096
    deadline: Annotated[float | datetime, _FIELDS["deadline"]] | None = None
    confidence: Annotated[float, _FIELDS["confidence"]] = 0.9
    start: Start | None = None
    training: TrainingDocument = Field(default_factory=TrainingDocument)
    constraints: ConstraintsDocument = Field(default_factory=ConstraintsDocument)


def parse_afford(document: Any) -> tuple[AffordDocument, JsonObject]:
    """The request, and what the job of every size has in common. Raises `UnusableInput` naming every wrong field."""
    if not isinstance(document, dict):
        raise UnusableInput.at(message="the request is no mapping of keys to values")
    asked = read_as(AffordDocument, document)
    for name, usual in (("method", "full"), ("stage", "sft")):
        stated = getattr(asked.training, name)
        if stated != usual:
            message = f"{stated} trains no model from its start, of which the laws are; leave it out"
            raise UnusableInput.at("training", name, message=message)
    return asked, {key: document[key] for key in _OF_A_JOB if document.get(key) is not None}
