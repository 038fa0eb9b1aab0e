"""Explanations: why a plan is what it is, and what having something else would be worth."""

import time
from datetime import UTC, datetime

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.services.audited import PlannerService
from gpuplan.api.services.service_context import Document, ServiceContext, answer_meta
from gpuplan.planner.model.explanation import Frontier, WhyAnswer


class ExplanationService(PlannerService):
    """Explains the plan of a job."""

    def why(self, document: Document, *, snapshot: str | None = None) -> WhyAnswer:
        """Why the plan of `{"job": ..., "not": ...}` is what it is.

        `not` asks why something was not chosen, `with` what having something is worth. The outcome is `infeasible` for
        a job without a plan.
        """
        with self._audited.question("why") as entry:
            answer = self._planner.call(answer_why, document, snapshot=snapshot, now=datetime.now(UTC))
            entry.outcome = answer.outcome
        return answer

    def carbon_frontier(self, job: Document, *, snapshot: str) -> Frontier:
        """Only the frontier of cost, time and carbon of a job, as in `why`."""
        with self._audited.question("carbon"):
            return self._planner.call(answer_carbon_frontier, job, snapshot=snapshot, now=datetime.now(UTC))


def answer_why(context: ServiceContext, question: Document, *, snapshot: str | None, now: datetime) -> WhyAnswer:
    """Work out the answer of `ExplanationService.why`; write nothing."""
    from gpuplan.api.schemas.job import canonical
    from gpuplan.api.schemas.why import parse_why

    began = time.perf_counter()
    job, not_, with_ = parse_why(question, now=now)
    from gpuplan.planner.cost.spend_commitments import with_spending
    from gpuplan.planner.why.explanation import why
    from gpuplan.planner.why.explanation_document import why_answer

    columns = context.columns(snapshot)
    explanation = why(
        job,
        columns,
        owned=context.owned,
        settings=with_spending(context.settings, columns),
        past_runs=context.past_runs(),
        not_=not_,
        with_=with_,
    )
    answer = why_answer(explanation, canonical(job), version=gpuplan_version())
    return WhyAnswer(
        outcome="explained" if answer.infeasible is None else "infeasible",
        why=answer,
        meta=answer_meta(columns, now, began),
    )


def answer_carbon_frontier(context: ServiceContext, job: Document, *, snapshot: str, now: datetime) -> Frontier:
    """Work out the answer of `ExplanationService.carbon_frontier`; write nothing."""
    from gpuplan.api.schemas.job import parse_job
    from gpuplan.planner.cost.spend_commitments import with_spending
    from gpuplan.planner.why.explanation import carbon_frontier
    from gpuplan.planner.why.explanation_document import frontier_document

    columns = context.columns(snapshot)
    frontier = carbon_frontier(
        parse_job(job, now=now),
        columns,
        owned=context.owned,
        settings=with_spending(context.settings, columns),
        past_runs=context.past_runs(),
    )
    return frontier_document(frontier)
