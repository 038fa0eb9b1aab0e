"""Policies for runs on interruptible machines: solved, queried for the next action, and replayed over traces."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuplan.api.services.audited import Audited
from gpuplan.api.services.planner_calls import PlannerCalls
from gpuplan.api.services.plans import saved_plan
from gpuplan.api.services.service_context import Document, ServiceContext
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

if TYPE_CHECKING:
    from gpuplan.api.schemas.spot_policy_requests import PolicyQuestion, SimulationQuestion
    from gpuplan.api.schemas.spot_run import SpotRunDocument
    from gpuplan.planner.model.ladder_replay import LadderSimulation
    from gpuplan.planner.model.spot_policy import RunPolicy, Simulation
    from gpuplan.planner.spot_policy.availability_traces import Trace

#: Runs x steps x places that a service replays for one request; takes about ten seconds on one core.
MOST_REPLAYED_AT_ONCE = 2_000_000
#: Fields of a question beside its run. Every other field with a fault belongs to the run.
QUESTION_FIELDS = frozenset({"fit", "traces", "starts"})


class SpotPolicyService:
    """Solves and replays policies."""

    def __init__(self, context: ServiceContext, planner: PlannerCalls, audited: Audited) -> None:
        """Work out policies by `planner`, each counted by `audited`."""
        self._context, self._planner, self._audited = context, planner, audited

    def check_run_policy(self, document: Document) -> None:
        """Raises `UnusableInput` for a question that `run_policy` could not read."""
        from gpuplan.api.schemas.spot_policy_requests import PolicyQuestion, one_of_run_and_plan, traces_in
        from gpuplan.catalog.parsing.document_fields import read_as

        with self._audited.refusals("run-policy"):
            question = read_as(PolicyQuestion, document)
            one_of_run_and_plan(question)
            _check_run(self._context, question, traces_in(question.fit, field="fit"))

    def run_policy(self, document: Document) -> "RunPolicy":
        """The policy of a run with its expected cost, or with `now` its decision."""
        with self._audited.question("run-policy") as entry:
            answer = self._planner.call(answer_run_policy, document)
            entry.subject = str(document.get("plan", ""))
        return answer

    def check_simulation(self, document: Document) -> None:
        """Raises `UnusableInput` for a question that `simulation` could not read."""
        from gpuplan.api.schemas.spot_policy_requests import SimulationQuestion, one_of_run_and_plan, traces_in
        from gpuplan.catalog.parsing.document_fields import read_as

        with self._audited.refusals("simulation"):
            question = read_as(SimulationQuestion, document)
            one_of_run_and_plan(question)
            traces_in(question.traces, field="traces")
            _check_run(self._context, question, traces_in(question.fit, field="fit"))

    def simulation(self, document: Document) -> "Simulation":
        """The cost of a run's policy over many starts."""
        with self._audited.question("simulation") as entry:
            answer = self._planner.call(answer_simulation, document)
            entry.subject = str(document.get("plan", ""))
        return answer

    def check_ladder_simulation(self, document: Document) -> None:
        """Raises `UnusableInput` for a question that `ladder_simulation` could not read."""
        from gpuplan.api.schemas.spot_policy_requests import LadderQuestion, traces_in
        from gpuplan.catalog.parsing.document_fields import read_as

        with self._audited.refusals("simulation"):
            question = read_as(LadderQuestion, document)
            traces_in(question.traces, field="traces")
            saved_plan(self._context, question.plan)

    def ladder_simulation(self, document: Document) -> "LadderSimulation":
        """What a plan's capacity ladder would have got."""
        with self._audited.question("simulation") as entry:
            answer = self._planner.call(answer_ladder_simulation, document)
            entry.subject = str(document["plan"])
        return answer


def answer_ladder_simulation(context: ServiceContext, document: Document) -> "LadderSimulation":
    """Work out the answer of `SpotPolicyService.ladder_simulation`; write nothing."""
    from gpuplan.api.schemas.spot_policy_requests import LadderQuestion, traces_in
    from gpuplan.api.services.ladder_replay import LadderReplays, replay_ladder
    from gpuplan.catalog.parsing.document_fields import read_as

    question = read_as(LadderQuestion, document)
    asked = LadderReplays(
        traces=traces_in(question.traces, field="traces"),
        starts=question.starts,
        refused=question.refused,
        most_cells=MOST_REPLAYED_AT_ONCE,
    )
    answer = saved_plan(context, question.plan)
    return replay_ladder(answer, context.columns(answer.body.snapshot_id), asked)


def answer_run_policy(context: ServiceContext, document: Document) -> "RunPolicy":
    """Work out the answer of `SpotPolicyService.run_policy`; write nothing."""
    from gpuplan.api.schemas.spot_policy_requests import PolicyQuestion, one_of_run_and_plan, traces_in
    from gpuplan.api.schemas.spot_run import spot_request
    from gpuplan.api.services.spot_policy_solving import about, decision, fitting_of, solved
    from gpuplan.api.services.spot_run_of_plan import finish_of_plan
    from gpuplan.catalog.parsing.document_fields import read_as

    question = read_as(PolicyQuestion, document)
    one_of_run_and_plan(question)
    fit = traces_in(question.fit, field="fit")
    run = _run(context, question)
    with faults_under("run", but=QUESTION_FIELDS):
        stored_policy = solved(spot_request(run, fitting=fitting_of(run, fit)))
    if question.now is not None:
        with faults_under("now"):
            return decision(stored_policy, question.now)
    answer = about(stored_policy)
    if question.plan is None:
        return answer
    return replace(answer, as_planned=finish_of_plan(saved_plan(context, question.plan), run))


def answer_simulation(context: ServiceContext, document: Document) -> "Simulation":
    """Work out the answer of `SpotPolicyService.simulation`; write nothing."""
    from gpuplan.api.schemas.spot_policy_requests import SimulationQuestion, one_of_run_and_plan, traces_in
    from gpuplan.api.services.spot_policy_solving import Replays, simulate
    from gpuplan.catalog.parsing.document_fields import read_as

    question = read_as(SimulationQuestion, document)
    one_of_run_and_plan(question)
    replays = Replays(
        judged=traces_in(question.traces, field="traces"),
        fitted=traces_in(question.fit, field="fit"),
        starts=question.starts,
        seed=question.seed,
        most_cells=MOST_REPLAYED_AT_ONCE,
    )
    run = _run(context, question)
    with faults_under("run", but=QUESTION_FIELDS):
        return simulate(run, replays)


def _check_run(
    context: ServiceContext, question: "PolicyQuestion | SimulationQuestion", fit: "Sequence[Trace]"
) -> None:
    """Raises `UnusableInput` for a run that cannot be read."""
    from gpuplan.api.schemas.spot_run import spot_request
    from gpuplan.api.services.spot_policy_solving import fitting_of

    run = _run(context, question)
    with faults_under("run", but=QUESTION_FIELDS):
        spot_request(run, fitting=fitting_of(run, fit))


def _run(context: ServiceContext, question: "PolicyQuestion | SimulationQuestion") -> "SpotRunDocument":
    """The run of the question, or the one made from the saved plan."""
    from gpuplan.api.schemas.spot_run import SpotRunDocument
    from gpuplan.catalog.parsing.document_fields import read_as

    if question.plan is not None:
        return run_of_saved_plan(context, question.plan)
    with faults_under("run", but=QUESTION_FIELDS):
        return read_as(SpotRunDocument, dict(question.run or {}))


def run_of_saved_plan(context: ServiceContext, plan_id: str) -> "SpotRunDocument":
    """A saved plan as a run, at the prices of its snapshot with the discounts of the settings.

    Raises `NotStored`, and `UnusableInput` as `run_of_plan` does.
    """
    from gpuplan.api.services.spot_run_of_plan import run_of_plan
    from gpuplan.planner.cost.negotiated_discounts import discounted

    answer = saved_plan(context, plan_id)
    return run_of_plan(answer, discounted(context.columns(answer.body.snapshot_id), context.settings.discounts))


@contextmanager
def faults_under(where: str, *, but: frozenset[str] = frozenset()) -> Iterator[None]:
    """Puts the path of each fault below `where`, except for paths that begin with one of `but`."""
    try:
        yield
    except UnusableInput as error:
        raise UnusableInput(*(_placed(fault, where, but) for fault in error.faults)) from None


def _placed(fault: Fault, where: str, but: frozenset[str]) -> Fault:
    first, *rest = fault.path or ("",)
    if first in but:
        return fault
    # The solver names the step by its unit, the document does not.
    return Fault((where, *(("step",) if first == "step_hours" else (first,) if first else ()), *rest), fault.message)
