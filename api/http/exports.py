"""A saved plan as a file for another tool: what a tool cannot do is refused with the reason."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from api.http.plans import OurGpuplan
from api.http.problems import PROBLEM_JSON, Refused
from catalog.errors import Fault

router = APIRouter()

#: As `api.export.formats` has them, which is not loaded before the first export.
FORMATS = (
    "skypilot",
    "dstack",
    "terraform",
    "kubernetes",
    "jobset",
    "slurm",
    "aws-cli",
    "gcloud",
    "az",
    "focus",
    "json",
)
_TEXT = {"schema": {"type": "string"}}
_FILES = {"application/yaml": _TEXT, "text/x-shellscript": _TEXT, "text/csv": _TEXT, "application/json": {"schema": {}}}
_REFUSED = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def _responses() -> dict[int | str, dict[str, Any]]:
    found: dict[int | str, dict[str, Any]] = {200: {"description": "The file", "content": _FILES}}
    for status in (404, 422, 503, 500):
        found[status] = {"description": HTTPStatus(status).phrase, "content": _REFUSED}
    return found


class ExportQuery(BaseModel):
    """What is not in the plan."""

    phase: int | None = Field(None, description="This phase, counted from 1; needed where there are several")
    command: str = Field("python train.py", description="What starts the training: words, nothing is expanded")
    image: str | None = Field(None, description="The container image with your code, where one is used")
    reservation: str | None = Field(None, description="What was booked, for capacity blocks and calendar bookings")
    run_limit: str | None = Field(
        None, description="When every machine is ended, such as 36h; the plan's run_limit unless given"
    )
    checkpoints: str | None = Field(
        None, description="Where checkpoints are kept; the job's data.checkpoints unless given"
    )


@router.get(
    "/v1/plans/{plan_id}/export/{format}",
    summary="A plan as a file for another tool",
    operation_id="export",
    response_class=Response,
    responses=_responses(),
)
def export(
    plan_id: str,
    to: Annotated[str, Path(alias="format", description=", ".join(FORMATS))],
    query: Annotated[ExportQuery, Query()],
    gpuplan: OurGpuplan,
) -> Response:
    """One file: one phase, or for `focus` and `json` the whole plan."""
    from api.export.formats import one_export
    from api.export.launcher import read_wishes

    if to not in FORMATS:
        fault = Fault(("format",), f"is not known; it is one of {', '.join(FORMATS)}")
        raise Refused(404, str(fault), faults=(fault,), within="path")
    wishes = read_wishes(**query.model_dump(exclude={"phase"}))
    made = one_export(gpuplan.saved_plan(plan_id), to=to, phase=query.phase, wishes=wishes)
    headers = {"Content-Disposition": f'attachment; filename="{made.file_name}"', "X-Content-Type-Options": "nosniff"}
    return Response(made.text.encode(), media_type=made.media_type, headers=headers)
