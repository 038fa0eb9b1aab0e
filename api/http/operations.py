"""Operations that send one document to a service and answer with what it gives: a row each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from gpuplan.api.http.openapi_bodies import document_responses, takes
from gpuplan.api.http.plans import OurGpuplan, OurLongWorkers, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.schemas.afford_request import AffordDocument
from gpuplan.api.schemas.capacity_report import CapacityReportDocument
from gpuplan.api.schemas.capacity_request import CapacityDocument
from gpuplan.api.schemas.costs import BudgetDocument
from gpuplan.api.schemas.estimate_request import EstimateDocument
from gpuplan.api.schemas.import_request import ImportDocument
from gpuplan.api.schemas.replan import ReplanDocument
from gpuplan.api.schemas.saved_answer import AnswerDocument
from gpuplan.api.schemas.spot_policy_requests import LadderQuestion, PolicyQuestion, SimulationQuestion
from gpuplan.api.schemas.why import WhyDocument
from gpuplan.api.services.composition import Services
from gpuplan.api.services.service_context import Document


class SnapshotQuery(BaseModel):
    """Query parameters of a question about the prices of one snapshot."""

    snapshot: str | None = Field(None, description="Use the prices of this snapshot, not of the current one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: where it is, what it takes and answers, and the method of the services that answers it.

    One that `names_stored` things, such as a snapshot or a plan, answers 404 for unknown ones. One that `checks` its
    document refuses an unreadable one at once, and then answers in the threads for questions that take seconds, as one
    that `takes_seconds` does.
    """

    path: str
    name: str
    summary: str
    description: str
    takes: type[BaseModel]
    answers: str
    method: str = "POST"
    names_stored: bool = False
    of_a_snapshot: bool = False
    asks: Callable[[Services], Callable[..., object]]
    checks: Callable[[Services], Callable[[Document], None]] | None = None
    takes_seconds: bool = False


OPERATIONS = (
    Operation(
        path="/v1/estimates",
        name="estimate",
        summary="Estimate time and memory of one configuration",
        description="Uses no prices. Values missing in `on` are chosen or assumed, and the answer lists them.",
        takes=EstimateDocument,
        answers="Estimate",
        asks=lambda gpuplan: gpuplan.estimates.estimate,
    ),
    Operation(
        path="/v1/import",
        name="import_config",
        summary="Read a configuration of another tool into a job",
        description="The formats of `gpuplan import`, as text. No file is read, and nothing is executed or looked up.",
        takes=ImportDocument,
        answers="ImportAnswer",
        asks=lambda gpuplan: gpuplan.imports.read,
    ),
    Operation(
        path="/v1/afford",
        name="afford",
        summary="Say which models a budget trains",
        description="Sizes and tokens by published scaling laws, each with its cheapest plan; an extrapolation. No plan is"
        " saved.",
        takes=AffordDocument,
        answers="AffordAnswer",
        asks=lambda gpuplan: gpuplan.afford.afford,
    ),
    Operation(
        path="/v1/capacity",
        name="capacity",
        summary="Ask the clouds how likely machines are obtained now",
        description="All clouds at once, within `limit_seconds`; answers of the last ten minutes are reused. A cloud that"
        " gives no answer is listed with its reason in `not_learned`.",
        takes=CapacityDocument,
        answers="CapacityAnswers",
        asks=lambda gpuplan: gpuplan.capacity.read,
        takes_seconds=True,
    ),
    Operation(
        path="/v1/capacity/reports",
        name="report_capacity",
        summary="Report that a cloud refused or gave machines",
        description="One try of a run or script. Live chances count the tries of the last seven days, and plans quote them.",
        takes=CapacityReportDocument,
        answers="CapacityReport",
        asks=lambda gpuplan: gpuplan.capacity.report,
    ),
    Operation(
        path="/v1/why",
        name="why",
        summary="Explain a plan, and why it does not use something else",
        description="The binding constraints, the effect of relaxing each, the extra cost of `not`, and the price at which"
        " it would be chosen.",
        takes=WhyDocument,
        answers="WhyAnswer",
        names_stored=True,
        of_a_snapshot=True,
        asks=lambda gpuplan: gpuplan.explanations.why,
    ),
    Operation(
        path="/v1/replan",
        name="replan",
        summary="Replan a running job",
        description="Continue, move, or run on more or fewer machines: the lowest cost from now, compared with continuing"
        " unchanged.",
        takes=ReplanDocument,
        answers="ReplanAnswer",
        names_stored=True,
        of_a_snapshot=True,
        asks=lambda gpuplan: gpuplan.replanning.replan,
    ),
    Operation(
        path="/v1/verify",
        name="verify",
        summary="Verify a plan",
        description="Independent code recomputes an answer of `/v1/plans` from its snapshot and names each wrong figure.",
        takes=AnswerDocument,
        answers="VerificationAnswer",
        checks=lambda gpuplan: gpuplan.verification.check,
        asks=lambda gpuplan: gpuplan.verification.verify,
    ),
    Operation(
        path="/v1/run-policies",
        name="run_policy",
        summary="Decide what to do now in a run on spot machines",
        description="With `now`: stay, checkpoint, move, wait or switch to on-demand, with the reason. Without: the"
        " expected cost and time of the policy.",
        takes=PolicyQuestion,
        answers="RunPolicy",
        names_stored=True,
        checks=lambda gpuplan: gpuplan.spot_policies.check_run_policy,
        asks=lambda gpuplan: gpuplan.spot_policies.run_policy,
    ),
    Operation(
        path="/v1/simulations",
        name="simulation",
        summary="Simulate the cost of a run on spot machines",
        description="Replays many starts in the traces of the body, compared with simple rules and the omniscient optimum.",
        takes=SimulationQuestion,
        answers="Simulation",
        names_stored=True,
        checks=lambda gpuplan: gpuplan.spot_policies.check_simulation,
        asks=lambda gpuplan: gpuplan.spot_policies.simulation,
    ),
    Operation(
        path="/v1/ladder-simulations",
        name="ladder_simulation",
        summary="Replay the capacity ladder of a plan over availability traces",
        description="What each choice would have given, when and at what cost, beside the first choice alone and on-demand.",
        takes=LadderQuestion,
        answers="LadderSimulation",
        names_stored=True,
        checks=lambda gpuplan: gpuplan.spot_policies.check_ladder_simulation,
        asks=lambda gpuplan: gpuplan.spot_policies.ladder_simulation,
    ),
    Operation(
        path="/v1/costs/budgets",
        method="PUT",
        name="set_budget",
        summary="Set a team's budget for each month",
        description="In place of the earlier one; without `usd` it is removed.",
        takes=BudgetDocument,
        answers="TeamBudget",
        asks=lambda gpuplan: gpuplan.costs.set_budget,
    ),
)


def _endpoint(operation: Operation) -> Callable[..., object]:
    """What FastAPI calls for an operation."""

    async def answer(request: Request, gpuplan: Services, quick: Workers, long: Workers, **about: object) -> Response:
        _, document = await read_body(request)
        if operation.checks is not None:
            await quick.run(operation.checks(gpuplan), document)
        workers = long if operation.takes_seconds or operation.checks is not None else quick
        return json_answer(await workers.run(operation.asks(gpuplan), document, **about))

    if operation.of_a_snapshot:

        async def of_snapshot(
            request: Request,
            query: Annotated[SnapshotQuery, Query()],
            gpuplan: OurGpuplan,
            quick: OurWorkers,
            long: OurLongWorkers,
        ) -> Response:
            return await answer(request, gpuplan, quick, long, snapshot=query.snapshot)

        return of_snapshot

    async def of_document(request: Request, gpuplan: OurGpuplan, quick: OurWorkers, long: OurLongWorkers) -> Response:
        return await answer(request, gpuplan, quick, long)

    return of_document


def _routes() -> APIRouter:
    routes = APIRouter()
    for operation in OPERATIONS:
        routes.add_api_route(
            operation.path,
            _endpoint(operation),
            methods=[operation.method],
            summary=operation.summary,
            description=operation.description,
            name=operation.name,
            responses=document_responses(operation.answers, *((404,) if operation.names_stored else ())),
            openapi_extra=takes(operation.takes),
        )
    return routes


router = _routes()
