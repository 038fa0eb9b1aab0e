"""Procurement: what to own, commit to and rent for a forecast of jobs."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.security.authorization import owner
from gpuplan.api.services.audited import Audited
from gpuplan.api.services.planner_calls import PlannerCalls
from gpuplan.api.services.service_context import Document, ServiceContext, days_between
from gpuplan.catalog.store.run_store import Run

if TYPE_CHECKING:
    from gpuplan.planner.model.procurement import DecidedAnswer, DecisionAnswer


class ProcurementService:
    """Decides what to own, commit to and rent."""

    def __init__(self, context: ServiceContext, planner: PlannerCalls, audited: Audited) -> None:
        """Work out decisions by `planner`, and save them in the store of `context`."""
        self._context, self._planner, self._audited = context, planner, audited

    def decide(
        self, document: Document, *, snapshot: str | None = None, now: datetime | None = None, save: bool = False
    ) -> "DecisionAnswer":
        """What to own, commit to and rent for a forecast.

        With `save`, the decision can be read again under its id.
        """
        now = now or datetime.now(UTC)
        answer = self._planner.call(answer_decide, document, snapshot=snapshot, now=now)
        if save and answer.outcome == "decided":
            self._context.store.runs.add(_ended_run(document, answer, now), owner=owner())
        return answer

    def check(self, document: Document, *, snapshot: str | None = None, now: datetime | None = None) -> None:
        """Raises `UnusableInput` for a forecast that `decide` could not read, `NotStored` for no such snapshot."""
        from gpuplan.api.schemas.forecast import parse_forecast

        with self._audited.refusals("buy"):
            parse_forecast(document, now=now or datetime.now(UTC))
            if snapshot is not None:
                self._context.store.find_snapshot(snapshot)


def answer_decide(
    context: ServiceContext, document: Document, *, snapshot: str | None, now: datetime
) -> "DecisionAnswer":
    """Work out the answer of `ProcurementService.decide`; write nothing."""
    from gpuplan.api.schemas.forecast import parse_forecast

    began = time.perf_counter()
    forecast = replace(parse_forecast(document, now=now), past_runs=context.past_runs())
    from gpuplan.planner.model.procurement import DecidedAnswer, ProcurementPlan, UndecidedAnswer
    from gpuplan.planner.model.shared import Meta
    from gpuplan.planner.procurement.procurement_answer import typed_answer
    from gpuplan.planner.procurement.procurement_decision import decide

    columns = context.columns(snapshot)
    decision = typed_answer(
        decide(forecast, columns, context.settings, context.owned), context.settings, version=gpuplan_version()
    )
    meta = Meta(
        created_at=now,
        milliseconds=round((time.perf_counter() - began) * 1e3, 3),
        price_age_days=None,
        snapshot_age_days=days_between(now, columns.observed_at),
        version=gpuplan_version(),
    )
    if isinstance(decision, ProcurementPlan):
        return DecidedAnswer(outcome="decided", decision=decision, meta=meta)
    return UndecidedAnswer(outcome="infeasible", infeasible=decision, meta=meta)


def _ended_run(document: Document, answer: "DecidedAnswer", now: datetime) -> Run:
    """A decision as a run that has ended, because both are stored alike."""
    from gpuplan.planner.model.wire import wire

    return Run(
        id=answer.decision.id,
        kind="buy",
        status="done",
        request={"document": document},
        created_at=now,
        started_at=now,
        finished_at=datetime.now(UTC),
        beat_at=now,
        answer=wire(answer),
    )
