"""A report on a try to get machines: what was asked for, and whether the cloud had it."""

from typing import Annotated, Any

from pydantic import ConfigDict

from gpuplan.api.schemas.capacity_request import MOST_NODES
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.document_fields import Document, Label, YesNo, choice, read_as, whole_number
from gpuplan.catalog.runtime.errors import UnusableInput


class CapacityReportDocument(Document):
    """One try: `refused` is the cloud's own error code, or `obtained` is true."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "machine": "p5.48xlarge",
                    "nodes": 2,
                    "kind": "on_demand",
                    "region": "us-east-1",
                    "zone": "use1-az4",
                    "refused": "InsufficientInstanceCapacity",
                }
            ]
        }
    )

    machine: Annotated[str, Label] | None = None
    nodes: Annotated[int, whole_number(1, MOST_NODES, "machines at once; default 1")] | None = None
    kind: Annotated[str, choice(tuple(price_kinds()), description="the price kind; default on_demand")] | None = None
    region: Annotated[str, Label] | None = None
    zone: Annotated[str, Label] | None = None
    refused: Annotated[str, Label] | None = None
    obtained: Annotated[bool, YesNo] = False


def parse_capacity_report(document: Any) -> CapacityReportDocument:
    """The report. Raises `UnusableInput` naming every wrong or missing field."""
    given = read_as(CapacityReportDocument, document)
    for name in ("machine", "region"):
        if getattr(given, name) is None:
            raise UnusableInput.at(name, message="is missing; name what was asked for")
    if (given.refused is None) != given.obtained:
        raise UnusableInput.at("refused", message="give the cloud's error code here, or obtained, and not both")
    return given
