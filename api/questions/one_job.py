"""What may be asked of one job: its plan, an estimate, and what a run of it measured."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime

from api.identity.asking import charge, counting, owner, record, viewer
from api.questions.counted import Counted
from api.questions.opened import Document, an_id, body_of, meta
from api.telemetry.told import plan_made
from api.version import gpuplan_version
from catalog.allowed_time import OutOfTime, at_most
from catalog.columns import Columns
from catalog.errors import UnusableInput
from catalog.saved import as_json
from catalog.stages import stage

#: New prices do not wait longer for a plan that nobody asked for.
_AHEAD_SECONDS = 5.0


class OneJob(Counted):
    """Questions about one job."""

    _last_planned: Document | None = None

    def arrange(self, columns: Columns) -> None:
        """As for every question, and the steps of the kind of job that was planned last, which its next one asks about."""
        super().arrange(columns)
        if self._last_planned is None:
            return
        from api.documents.job import parse_job
        from planner.held_spend import with_spending
        from planner.plan import plan

        # What is refused on these prices, or takes long, is so when it is asked for; here nobody asks.
        with suppress(UnusableInput, OutOfTime), at_most(_AHEAD_SECONDS):
            job = parse_job(self._last_planned, now=datetime.now(UTC))
            settings = with_spending(self.settings, columns)
            plan(job, columns, owned=self.owned, settings=settings, past_runs=self.past_runs())

    def plan(
        self,
        document: Document,
        *,
        frontier: bool = False,
        snapshot: str | None = None,
        now: datetime | None = None,
        save: bool = True,
    ) -> Document:
        """The cheapest plan for a job document, or why there is none; saved under its id unless `save` is off.

        The answer is `{"outcome": "planned", "plan": ..., "meta": ...}` or `{"outcome": "infeasible", ...}`.
        """
        now = now or datetime.now(UTC)
        if save:
            return self._planned_and_saved(document, frontier=frontier, snapshot=snapshot, now=now)[0]
        answer = self.worked_out(self._planned, document, frontier=frontier, snapshot=snapshot, now=now)
        plan_made(answer)
        return answer

    def plan_text(
        self, document: Document, *, frontier: bool = False, snapshot: str | None = None, now: datetime | None = None
    ) -> str:
        """The answer of `plan` as the JSON text under which it is saved, written out once for both."""
        now = now or datetime.now(UTC)
        return self._planned_and_saved(document, frontier=frontier, snapshot=snapshot, now=now)[1]

    def _planned_and_saved(
        self, document: Document, *, frontier: bool, snapshot: str | None, now: datetime
    ) -> tuple[Document, str]:
        with self.unanswered_noted("plan"):
            answer = self.worked_out(self._planned, document, frontier=frontier, snapshot=snapshot, now=now)
        with stage("store"):
            text = as_json(answer)
            self.save_plan(answer, now, text=text)
        plan_made(answer)
        return answer, text

    def _planned(self, document: Document, *, frontier: bool, snapshot: str | None, now: datetime) -> Document:
        from api.documents.job import canonical, parse_job

        began = time.perf_counter()
        with stage("parse"):
            job = parse_job(document, now=now)
        # Only now: a job that cannot be read is refused without waiting for the planner's libraries.
        from planner.answer import Planned
        from planner.document import document as as_document
        from planner.held_spend import with_spending
        from planner.inventory_id import inventory_id
        from planner.plan import plan

        columns, past_runs = self.at_hand(snapshot)
        settings = with_spending(self.settings, columns)
        outcome = plan(job, columns, owned=self.owned, settings=settings, past_runs=past_runs, frontier=frontier)
        self._last_planned = document
        own = inventory_id(self.owned)
        answer: Document = as_document(outcome, canonical(job), version=gpuplan_version(), inventory=own)
        solver = outcome.proof.certificate.milliseconds if isinstance(outcome, Planned) else None
        return answer | {"meta": meta(answer, columns, now, began) | {"solver_milliseconds": solver}}

    def why(self, document: Document, *, snapshot: str | None = None, now: datetime | None = None) -> Document:
        """Why the plan of `{"job": ..., "not": ...}` is what it is: `{"outcome": "explained", "why": ..., "meta": ...}`.

        With `not` why something was not chosen, with `with` what having it is worth; `infeasible` for a job without a plan.
        """
        with self.counted("why") as noted:
            answer = self.worked_out(self._why, document, snapshot=snapshot, now=now or datetime.now(UTC))
            noted.of(answer)
        return answer

    def _why(self, document: Document, *, snapshot: str | None, now: datetime) -> Document:
        from api.documents.job import canonical
        from api.documents.why import parse_why

        began = time.perf_counter()
        job, not_, with_ = parse_why(document, now=now)
        from planner.explain.why import why
        from planner.explain.why_document import why_document
        from planner.held_spend import with_spending

        columns = self.columns(snapshot)
        found = why(
            job,
            columns,
            owned=self.owned,
            settings=with_spending(self.settings, columns),
            past_runs=self.past_runs(),
            not_=not_,
            with_=with_,
        )
        answer: Document = why_document(found, canonical(job), version=gpuplan_version())
        return answer | {"meta": meta(answer, columns, now, began)}

    def replan(self, document: Document, *, snapshot: str | None = None, now: datetime | None = None) -> Document:
        """What to do with a job that is under way: `{"outcome": "replanned" | "infeasible", "replan": ..., "meta": ...}`.

        The question is `{"job": ... or "plan": id, "running": {...}}`. Raises `NotStored` for no such plan.
        """
        with self.counted("replan") as noted:
            answer = self.worked_out(self._replan, document, snapshot=snapshot, now=now or datetime.now(UTC))
            noted.of(answer)
        return answer

    def _replan(self, document: Document, *, snapshot: str | None, now: datetime) -> Document:
        from api.documents.job import canonical
        from api.documents.replan import read_replan, under_way

        began = time.perf_counter()
        asked = read_replan(document)
        planned = None if asked.plan is None else self.saved_plan(asked.plan)
        job, running = under_way(asked, planned, now=now)
        from planner.held_spend import with_spending
        from planner.replan.decide import replan
        from planner.replan.document import replan_document

        columns = self.columns(snapshot)
        measured = running.rate is not None or running.hours is not None
        found = replan(
            job,
            columns,
            running=running,
            owned=self.owned,
            settings=with_spending(self.settings, columns),
            # What is measured now stands for what was reported of the same run before.
            past_runs=self.past_runs(besides=asked.plan if measured else None),
        )
        answer: Document = replan_document(found, canonical(job), version=gpuplan_version())
        return answer | {"meta": meta(answer, columns, now, began)}

    def save_plan(
        self,
        answer: Document,
        now: datetime,
        *,
        text: str | None = None,
        owners: Sequence[str | None] | None = None,
    ) -> None:
        """Save an answer of `plan` under its id, with who asked for it. Raises `QuotaExceeded`, and then saves nothing.

        `text` is the answer as JSON, where that is written already. It belongs to its `owners`: to who is asking, unless
        told.
        """
        body = body_of(answer)
        clock = datetime.now(UTC)
        counted = charge("plan", body["id"], clock, outcome=answer["outcome"])
        with counting(clock):
            self.store.save_plan(
                body["id"],
                body["snapshot_id"],
                body["job"],
                text or answer,
                now,
                charge=counted,
                owners=(owner(),) if owners is None else owners,
            )

    def saved_plan(self, plan_id: str) -> Document:
        """The answer saved under `plan_id`, as it was given. Raises `NotStored` if none may be read by who is asking."""
        return self.store.plan(an_id(plan_id, "plan"), viewer()).outcome

    def verify(self, document: Document, *, now: datetime | None = None) -> Document:
        """An answer of `plan` held against its snapshot: `{"outcome": "verified" | "not_verified", "verification": ...}`."""
        with self.counted("verify") as noted:
            answer = self.worked_out(self._verify, document, now=now)
            noted.of(answer, subject=str(body_of(document).get("id", "")))
        return answer

    def _verify(self, document: Document, *, now: datetime | None) -> Document:
        from api.verify import verify_document

        return verify_document(self, document, now=now)

    def check_verify(self, document: Document) -> None:
        """Raises `UnusableInput` for what `verify` would refuse to look at; looks up and works out nothing."""
        from api.documents.plan import parse_answer

        with self.refusals_noted("verify"):
            parse_answer(document)

    def estimate(self, document: Document, *, now: datetime | None = None) -> Document:
        """Time and memory of a job on one given configuration: no prices, and of the store the user's own runs alone."""
        with self.counted("estimate") as noted:
            answer = self.worked_out(self._estimate, document, now=now or datetime.now(UTC))
            noted.outcome = "fits" if answer["memory"]["fits"] else "does not fit"
        return answer

    def _estimate(self, document: Document, *, now: datetime) -> Document:
        from api.documents.estimate_request import parse_estimate_request

        job, on = parse_estimate_request(document, now=now)
        from planner.estimate.learned import learned_from
        from planner.estimate.single import On, estimate_on
        from planner.workload import work_of

        work = work_of(job.workload, job.training)
        learned = learned_from(self.past_runs(), work.task)
        answer: Document = estimate_on(work, job.training, On(**on), goodput=self.settings.goodput, learned=learned)
        return answer

    def presets(self) -> list[Document]:
        """The models known by name."""
        from planner.workload.presets import presets

        return [asdict(each) for each in presets().values()]

    def report_actuals(self, plan_id: str, document: Document, *, now: datetime | None = None) -> Document:
        """Keep what a run of a plan measured, and show it against the plan; the same report twice is one."""
        saved = self.store.plan(an_id(plan_id, "plan"), viewer())
        from api.actuals import report

        now = now or datetime.now(UTC)
        reported = report(self.store, saved, document, now)
        self.store.access.record(record("actuals.report", plan_id, now))
        return reported

    def actuals(self, plan_id: str | None = None) -> Document:
        """What runs of a plan, or of all that may be read by who is asking, measured, and what all reports teach."""
        if plan_id is not None:
            self.saved_plan(plan_id)
        from api.actuals import listed

        return listed(self.store, plan_id, viewer=viewer(), learning=self.settings.learning == "on")

    def forget_actuals(self, actual_id: str | None = None) -> Document:
        """Forget one report, or all, on plans of who is asking; estimates are then as if it had never been given."""
        if actual_id is None:
            forgotten = self.store.forget_actuals(viewer())
        else:
            self.store.forget_actual(an_id(actual_id, "actual"), viewer())
            forgotten = 1
        self.store.access.record(record("actuals.forget", actual_id or "all", datetime.now(UTC)))
        return {"forgotten": forgotten}
