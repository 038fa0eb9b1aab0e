"""The request of an estimate: a job and one configuration."""

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field

from gpuplan.api.schemas.job import JobDocument
from gpuplan.api.schemas.layout import LayoutDocument, parse_layout
from gpuplan.catalog.model.mig_slices import find_card_or_slice
from gpuplan.catalog.parsing.accelerator_names import card_or_slice_text
from gpuplan.catalog.parsing.document_fields import Document, Reads, quantity, read_as, whole_number
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import count
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import MAX_ACCELERATORS, TrainingJob

__all__ = ["EstimateDocument", "OnDocument", "parse_estimate_request", "parse_layout"]

#: A node with 72 NICs of 1.6 Tbit/s has 115,200 Gbit/s: more than any machine sold.
MAX_INTERNODE_GBPS = 200_000.0

Accelerator = Annotated[
    str,
    Reads(
        card_or_slice_text,
        {"type": "string", "examples": ["H100-80GB-SXM", "A100 80GB", "RTX 3090", "A100-80GB-SXM:3g.40gb"]},
    ),
]
Gbps = Annotated[
    float, quantity(lambda value: count(value, top=MAX_INTERNODE_GBPS), "Gbit/s per node, over all NICs", 3200)
]


class OnDocument(Document):
    """The configuration: accelerator and number are required; other fields are chosen or have usual values."""

    accelerator: Accelerator
    gpus: Annotated[int, whole_number(1, MAX_ACCELERATORS)]
    gpus_per_node: Annotated[int, whole_number(1, 1024)] | None = None
    internode_gbps: Gbps | None = None
    micro_batch: Annotated[int, whole_number(1, 1_048_576)] | None = None
    layout: LayoutDocument = Field(default_factory=LayoutDocument)

    def faults(self) -> list[Fault]:
        """Contradictions between fields, at paths below `on`."""
        faults = [Fault(("on", *fault.path), fault.message) for fault in self.layout.faults(self.gpus)]
        per_node = self.gpus_per_node
        if per_node is not None and self.gpus % per_node:
            message = f"{per_node} does not divide gpus ({self.gpus}); give a divisor, because nodes are identical"
            faults.append(Fault(("on", "gpus_per_node"), message))
        if None not in {self.micro_batch, self.layout.micro_batch} and self.micro_batch != self.layout.micro_batch:
            message = f"{self.micro_batch} contradicts layout.micro_batch {self.layout.micro_batch}; give it once"
            faults.append(Fault(("on", "micro_batch"), message))
        return faults

    def configuration(self) -> JsonObject:
        """The estimator's configuration; `layout` contains the micro-batch from either field."""
        stated = self.model_dump(include={"gpus", "gpus_per_node", "internode_gbps"})
        card, mig_slice = find_card_or_slice(self.accelerator)
        stated["accelerator"] = card.name if mig_slice is None else mig_slice.name
        merged = self.layout.model_copy(update={"micro_batch": self.micro_batch or self.layout.micro_batch})
        return stated | {"layout": merged.request()}


class EstimateDocument(Document):
    """`{"job": {...}, "on": {...}}`; the job needs no deadline."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job": {
                        "name": "llama-3-8b",
                        "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "15B"},
                    },
                    "on": {"accelerator": "H100-80GB-SXM", "gpus": 64, "gpus_per_node": 8, "internode_gbps": 3200},
                }
            ]
        }
    )

    job: JobDocument
    on: OnDocument


def parse_estimate_request(document: JsonObject, *, now: datetime) -> tuple[TrainingJob, JsonObject]:
    """The job, and the configuration: accelerator (table name), gpus, gpus_per_node, internode_gbps, layout.

    Missing parts of the configuration are None; `layout` is a `LayoutRequest`. Raises
    `UnusableInput` with all faults, at paths that begin with `job` or `on`.
    """
    request = read_as(EstimateDocument, document)
    faults = request.on.faults()
    try:
        job = request.job.job(now=now)
    except UnusableInput as error:
        faults = [Fault(("job", *fault.path), fault.message) for fault in error.faults] + faults
    if faults:
        raise UnusableInput(*faults)
    return job, request.on.configuration()
