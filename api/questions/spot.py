"""What may be asked of a run on interruptible machines: a policy, what to do now, and how it would have gone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from api.questions.one_job import OneJob
from api.questions.opened import Document
from catalog.errors import Fault, UnusableInput

if TYPE_CHECKING:
    from api.documents.spot_questions import PolicyQuestion, SimulationQuestion, SituationDocument
    from api.spot_policy_file import KeptPolicy
    from planner.spot.advice import Situation
    from planner.spot.traces import Trace

#: Runs times steps times places that a service replays for one request: about ten seconds of one core.
MOST_REPLAYED_AT_ONCE = 2_000_000
#: What stands beside the run in a question; every other field at fault is one of the run's.
ASKED = frozenset({"fit", "traces", "starts"})


class SpotQuestions(OneJob):
    """Questions about runs on interruptible machines."""

    def check_run_policy(self, document: Document) -> None:
        """Raises `UnusableInput` for a question that `run_policy` could not read."""
        from api.documents.spot_questions import PolicyQuestion, one_of_run_and_plan, traces_in
        from catalog.document_fields import read_as

        with self.refusals_noted("run-policy"):
            asked = read_as(PolicyQuestion, document)
            one_of_run_and_plan(asked)
            self._check_run(asked, traces_in(asked.fit, field="fit"))

    def run_policy(self, document: Document) -> Document:
        """The policy of a run and what it expects, or with `now` its decision: what `gpuplan run-policy --json` gives."""
        with self.counted("run-policy") as noted:
            answer = self.worked_out(self._run_policy, document)
            noted.subject = str(document.get("plan", ""))
        return answer

    def _run_policy(self, document: Document) -> Document:
        from api.documents.spot_questions import PolicyQuestion, one_of_run_and_plan, traces_in
        from api.documents.spot_run import parse_spot_run
        from api.spot import about, decision, fitting_of, solved
        from api.spot_of_plan import finish_of_plan
        from catalog.document_fields import read_as

        asked = read_as(PolicyQuestion, document)
        one_of_run_and_plan(asked)
        fit = traces_in(asked.fit, field="fit")
        run = self._run_asked_about(asked)
        with faults_under("run", but=ASKED):
            kept = solved(parse_spot_run(run, fitting=fitting_of(run, fit)))
        if asked.now is not None:
            with faults_under("now"):
                return decision(kept, _situation(kept, asked.now))
        answer = about(kept)
        if asked.plan is not None:
            answer |= {"as_planned": finish_of_plan(self.saved_plan(asked.plan), run)}
        return answer

    def check_simulation(self, document: Document) -> None:
        """Raises `UnusableInput` for a question that `simulation` could not read."""
        from api.documents.spot_questions import SimulationQuestion, one_of_run_and_plan, traces_in
        from catalog.document_fields import read_as

        with self.refusals_noted("simulation"):
            asked = read_as(SimulationQuestion, document)
            one_of_run_and_plan(asked)
            traces_in(asked.traces, field="traces")
            self._check_run(asked, traces_in(asked.fit, field="fit"))

    def simulation(self, document: Document) -> Document:
        """What a run's policy would have cost over many starts: what `gpuplan simulate --json` gives."""
        with self.counted("simulation") as noted:
            answer = self.worked_out(self._simulation, document)
            noted.subject = str(document.get("plan", ""))
        return answer

    def _simulation(self, document: Document) -> Document:
        from api.documents.spot_questions import SimulationQuestion, one_of_run_and_plan, traces_in
        from api.spot import Replays, simulate
        from catalog.document_fields import read_as

        asked = read_as(SimulationQuestion, document)
        one_of_run_and_plan(asked)
        replays = Replays(
            judged=traces_in(asked.traces, field="traces"),
            fitted=traces_in(asked.fit, field="fit"),
            starts=asked.starts,
            seed=asked.seed,
            most_cells=MOST_REPLAYED_AT_ONCE,
        )
        run = self._run_asked_about(asked)
        with faults_under("run", but=ASKED):
            return simulate(run, replays)

    def _check_run(self, asked: "PolicyQuestion | SimulationQuestion", fit: "Sequence[Trace]") -> None:
        """Raises `UnusableInput` for a run that cannot be read."""
        from api.documents.spot_run import parse_spot_run
        from api.spot import fitting_of

        run = self._run_asked_about(asked)
        with faults_under("run", but=ASKED):
            parse_spot_run(run, fitting=fitting_of(run, fit))

    def _run_asked_about(self, asked: "PolicyQuestion | SimulationQuestion") -> dict[str, Any]:
        """The run's document, given or made of the saved plan."""
        if asked.plan is None:
            return dict(asked.run or {})
        from api.spot_of_plan import run_of_plan
        from planner.discounts import discounted

        answer = self.saved_plan(asked.plan)
        snapshot = (answer.get("plan") or {}).get("snapshot_id")
        return run_of_plan(answer, discounted(self.columns(snapshot), self.settings.discounts))


def _situation(kept: "KeptPolicy", now: "SituationDocument") -> "Situation":
    from planner.spot.advice import Situation

    return Situation(
        left_hours=kept.policy.terms.deadline_hours - now.time,
        work_hours=now.work_left,
        saved_work_hours=now.work_left if now.saved_work_left is None else now.saved_work_left,
        up=frozenset(now.up),
        at=now.at,
        data_at=now.data_at,
        to_go_hours=now.starts_in,
        checkpoint_age_hours=now.checkpoint_age,
        up_hours=dict(now.since),
    )


@contextmanager
def faults_under(where: str, *, but: frozenset[str] = frozenset()) -> Iterator[None]:
    """Puts the fields at fault where they stand in the question: `where`, except for those that begin with one of `but`."""
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
