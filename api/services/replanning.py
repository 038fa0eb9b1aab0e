"""Replanning: what to do with a job that is already running."""

import time
from datetime import UTC, datetime

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.services.audited import PlannerService
from gpuplan.api.services.plans import saved_plan
from gpuplan.api.services.service_context import Document, ServiceContext, answer_meta
from gpuplan.planner.model.replan import ReplanAnswer


class ReplanService(PlannerService):
    """Decides whether a running job stays where it is or moves."""

    def replan(self, document: Document, *, snapshot: str | None = None) -> ReplanAnswer:
        """What to do with a running job.

        The question is `{"job": ... or "plan": id, "running": {...}}`. Raises `NotStored` for no such plan.
        """
        with self._audited.question("replan") as entry:
            answer = self._planner.call(answer_replan, document, snapshot=snapshot, now=datetime.now(UTC))
            entry.outcome = answer.outcome
        return answer


def answer_replan(context: ServiceContext, document: Document, *, snapshot: str | None, now: datetime) -> ReplanAnswer:
    """Work out the answer of `ReplanService.replan`; write nothing."""
    from gpuplan.api.schemas.job import canonical
    from gpuplan.api.schemas.replan import read_replan, under_way

    began = time.perf_counter()
    question = read_replan(document)
    planned = None if question.plan is None else saved_plan(context, question.plan)
    job, running = under_way(question, planned, now=now)
    from gpuplan.planner.cost.spend_commitments import with_spending
    from gpuplan.planner.replan.replan_decision import replan
    from gpuplan.planner.replan.replan_document import replan_body

    columns = context.columns(snapshot)
    measured = running.rate is not None or running.hours is not None
    decision = replan(
        job,
        columns,
        running=running,
        owned=context.owned,
        settings=with_spending(context.settings, columns),
        # A measurement in the question replaces earlier reports on the same run.
        past_runs=context.past_runs(besides=question.plan if measured else None),
    )
    body = replan_body(decision, canonical(job), version=gpuplan_version())
    return ReplanAnswer(
        outcome="infeasible" if body.best is None else "replanned",
        replan=body,
        meta=answer_meta(columns, now, began),
    )
