"""HTTP route that exports a saved plan as a file for another tool, or says why the tool cannot run it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from gpuplan.api.exports.export_formats import FORMATS, one_export
from gpuplan.api.exports.launch_command import read_wishes
from gpuplan.api.http.path_ids import PlanId
from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.http.problem_details import Refused
from gpuplan.catalog.runtime.errors import Fault

router = APIRouter()

_TEXT = {"schema": {"type": "string"}}
_FILES = {"application/yaml": _TEXT, "text/x-shellscript": _TEXT, "text/csv": _TEXT, "application/json": {"schema": {}}}


class ExportQuery(BaseModel):
    """Export parameters that the plan does not contain."""

    phase: int | None = Field(None, description="The phase, counted from 1; required if the plan has several")
    command: str = Field(
        "python train.py", description="The command that starts the training, as words; nothing is expanded"
    )
    image: str | None = Field(None, description="The container image with your code, for formats that use one")
    reservation: str | None = Field(None, description="Reservation ids, for capacity blocks and calendar bookings")
    run_limit: str | None = Field(
        None,
        description="Time limit after which every machine is terminated, such as 36h; default: the plan's run_limit",
    )
    checkpoints: str | None = Field(
        None, description="Where checkpoints are stored; default: the job's data.checkpoints"
    )


@router.get(
    "/v1/plans/{plan_id}/export/{format}",
    summary="Export a plan as a file for another tool",
    response_class=Response,
    responses={200: {"description": "The file", "content": _FILES}},
)
def export(
    plan_id: PlanId,
    to: Annotated[str, Path(alias="format", description=", ".join(FORMATS), examples=["slurm"])],
    query: Annotated[ExportQuery, Query()],
    gpuplan: OurGpuplan,
) -> Response:
    """One file for one phase; for `focus` and `json`, one file for the whole plan."""
    if to not in FORMATS:
        fault = Fault(("format",), f"is not a known format; accepted: {', '.join(FORMATS)}")
        raise Refused(404, str(fault), faults=(fault,), within="path")
    wishes = read_wishes(**query.model_dump(exclude={"phase"}))
    made = one_export(gpuplan.plans.saved_document(plan_id), to=to, phase=query.phase, wishes=wishes)
    headers = {"Content-Disposition": f'attachment; filename="{made.file_name}"', "X-Content-Type-Options": "nosniff"}
    return Response(made.text.encode(), media_type=made.media_type, headers=headers)
