"""The request for capacity: the machines of a job's plan, or one instance type, and where to ask about it."""

import math
from typing import Annotated, Any

from pydantic import ConfigDict

from gpuplan.api.schemas.job import JobDocument
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.document_fields import Document, Label, Listed, Reads, choice, read_as, whole_number
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput

MOST_NODES = 1_000
MOST_REGIONS = 50
#: A request waits for the clouds as long as this; the command waits up to a minute.
LEAST_SECONDS, MOST_SECONDS = 0.1, 10.0
_OF_A_MACHINE = ("nodes", "kind", "region")


def _seconds(value: object) -> float:
    """Seconds from 0.1 to 10."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(float(value)) or not LEAST_SECONDS <= float(value) <= MOST_SECONDS:  # type: ignore[arg-type]
        raise ValueError(f"{shown(value)} is not accepted; write seconds from {LEAST_SECONDS:g} to {MOST_SECONDS:g}")
    return float(value)  # type: ignore[arg-type]


Seconds = Annotated[
    float,
    Reads(
        _seconds,
        {
            "type": "number",
            "minimum": LEAST_SECONDS,
            "maximum": MOST_SECONDS,
            "description": "time limit for all clouds together, in seconds; default 3",
        },
    ),
]


class CapacityDocument(Document):
    """`{"job": {...}}`: the machines of its plan; or `{"machine": "p5.48xlarge", "nodes": 2}`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"machine": "p5.48xlarge", "nodes": 2, "region": ["us-east-1", "us-west-2"]}]}
    )

    job: JobDocument | None = None
    machine: Annotated[str, Label] | None = None
    nodes: Annotated[int, whole_number(1, MOST_NODES, "machines at once; default 1")] | None = None
    kind: Annotated[str, choice(tuple(price_kinds()), description="the price kind; default spot")] | None = None
    region: Annotated[tuple[Annotated[str, Label], ...], Listed(MOST_REGIONS)] = ()
    limit_seconds: Seconds | None = None


def parse_capacity(document: Any) -> CapacityDocument:
    """The request. Raises `UnusableInput` naming every wrong field, and unless it has either a job or a machine."""
    asked = read_as(CapacityDocument, document)
    if (asked.job is None) == (asked.machine is None):
        raise UnusableInput.at("machine", message="give a job or a machine, and not both")
    for name in _OF_A_MACHINE:
        if asked.job is not None and getattr(asked, name):
            raise UnusableInput.at(name, message="the plan of the job says it; only accepted with a machine")
    return asked
