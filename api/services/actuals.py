"""What runs of plans measured: reported, listed and forgotten."""

from datetime import UTC, datetime

from gpuplan.api.schemas.actual_reports import Actual, Actuals, Forgotten
from gpuplan.api.security.authorization import record, viewer
from gpuplan.api.services.costs import adopt_plan
from gpuplan.api.services.plans import saved_document
from gpuplan.api.services.service_context import ContextService, Document, an_id


class ActualsService(ContextService):
    """Keeps reports on runs of plans."""

    def report(self, plan_id: str, document: Document, *, now: datetime | None = None) -> Actual:
        """Keep what a run of a plan measured, and compare it with the plan. Keeps the same report only once."""
        saved = self._context.store.plan(an_id(plan_id, "plan"), viewer())
        from gpuplan.api.services.run_actuals import report

        now = now or datetime.now(UTC)
        reported = report(self._context.store, saved, document, now)
        hours = reported.figures.get("hours")
        adopt_plan(self._context, saved, now, ran_hours=0.0 if hours is None else hours.measured)
        self._context.store.access.record(record("actuals.report", plan_id, now))
        return reported

    def listed(self, plan_id: str | None = None) -> Actuals:
        """Reports on a plan, or on all plans that the requester may read, and the corrections learned from all reports."""
        if plan_id is not None:
            saved_document(self._context, plan_id)
        from gpuplan.api.services.run_actuals import listed

        return listed(self._context.store, plan_id, viewer=viewer(), learning=self._context.settings.learning == "on")

    def forget(self, actual_id: str | None = None) -> Forgotten:
        """Forget one report, or all reports on plans of the requester. Estimates then ignore them."""
        store = self._context.store
        if actual_id is None:
            forgotten = store.forget_actuals(viewer())
        else:
            store.forget_actual(an_id(actual_id, "actual"), viewer())
            forgotten = 1
        store.access.record(record("actuals.forget", actual_id or "all", datetime.now(UTC)))
        return Forgotten(forgotten=forgotten)
