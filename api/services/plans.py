"""Plans of one job: made, saved under their id, and read again."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from gpuplan.api.observability.plan_observers import plan_made
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.security.authorization import charge, counting, owner, viewer
from gpuplan.api.services.audited import Audited
from gpuplan.api.services.planner_calls import PlannerCalls
from gpuplan.api.services.service_context import Document, ServiceContext, an_id, body_of, meta
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.runtime.stage_timing import stage
from gpuplan.catalog.store.saved_answers import as_json
from gpuplan.planner.model.settings import PRICES, PlannerSettings


class PlanService:
    """Plans jobs, saves the plans, and reads saved plans."""

    def __init__(self, context: ServiceContext, planner: PlannerCalls, audited: Audited) -> None:
        """Work out plans by `planner`, and save them in the store of `context`."""
        self._context, self._planner, self._audited = context, planner, audited

    def plan(
        self,
        document: Document,
        *,
        frontier: bool = False,
        snapshot: str | None = None,
        prices: str | None = None,
        now: datetime | None = None,
        save: bool = True,
        source: str | None = None,
    ) -> Document:
        """The cheapest plan for a job document, or why there is none; saved under its id unless `save` is off.

        `prices` is expected or as-observed; the settings' own unless given. `source` is what the job was read from. The answer is `{"outcome": "planned", "plan": ..., "meta": ...}` or `{"outcome": "infeasible", ...}`.
        """
        now = now or datetime.now(UTC)
        if save:
            return self._plan_and_save(
                document, frontier=frontier, snapshot=snapshot, prices=prices, now=now, source=source
            )[0]
        answer = self._planner.call(
            answer_plan, document, frontier=frontier, snapshot=snapshot, prices=prices, now=now, source=source
        )
        plan_made(answer)
        return answer

    def plan_text(
        self,
        document: Document,
        *,
        frontier: bool = False,
        snapshot: str | None = None,
        prices: str | None = None,
        now: datetime | None = None,
    ) -> str:
        """The answer of `plan` as JSON text. The same text is saved, so that it is written only once."""
        now = now or datetime.now(UTC)
        return self._plan_and_save(document, frontier=frontier, snapshot=snapshot, prices=prices, now=now)[1]

    def _plan_and_save(
        self,
        document: Document,
        *,
        frontier: bool,
        snapshot: str | None,
        prices: str | None,
        now: datetime,
        source: str | None = None,
    ) -> tuple[Document, str]:
        with self._audited.failures("plan"):
            answer = self._planner.call(
                answer_plan, document, frontier=frontier, snapshot=snapshot, prices=prices, now=now, source=source
            )
        with stage("store"):
            text = as_json(answer)
            self.save(answer, now, text=text)
        plan_made(answer)
        return answer, text

    def save(
        self,
        answer: Document,
        now: datetime,
        *,
        text: str | None = None,
        owners: Sequence[str | None] | None = None,
    ) -> None:
        """Save an answer of `plan` under its id and count it. Raises `QuotaExceeded`, and then saves nothing.

        `text` is the answer as JSON, if that is already written. The plan belongs to `owners`, by default to the
        current requester.
        """
        body = body_of(answer)
        clock = datetime.now(UTC)
        charged = charge("plan", body["id"], clock, outcome=answer["outcome"])
        with counting(clock):
            self._context.store.save_plan(
                body["id"],
                body["snapshot_id"],
                body["job"],
                text or answer,
                now,
                charge=charged,
                owners=(owner(),) if owners is None else owners,
            )

    def saved(self, plan_id: str) -> Document:
        """The answer saved under `plan_id`. Raises `NotStored` if the requester may read no such plan."""
        return saved_plan(self._context, plan_id)


def answer_plan(
    context: ServiceContext,
    document: Document,
    *,
    frontier: bool,
    snapshot: str | None,
    now: datetime,
    prices: str | None = None,
    source: str | None = None,
) -> Document:
    """Work out the answer of `PlanService.plan`; write nothing."""
    from gpuplan.api.schemas.job import canonical, parse_job

    began = time.perf_counter()
    with stage("parse"):
        job = parse_job(document, now=now)
    # Imported only now, so that a job with faults is refused without waiting for the planner's libraries.
    from gpuplan.planner.cost.spend_commitments import with_spending
    from gpuplan.planner.model.outcome import Planned
    from gpuplan.planner.planning import plan
    from gpuplan.planner.serialization.inventory_id import inventory_id
    from gpuplan.planner.serialization.plan_document import document as as_document

    columns, past_runs = context.columns_and_past_runs(snapshot)
    settings = with_spending(_at_prices(context.settings, prices), columns)
    outcome = plan(job, columns, owned=context.owned, settings=settings, past_runs=past_runs, frontier=frontier)
    context.last_job = document
    inventory = inventory_id(context.owned)
    answer: Document = as_document(outcome, canonical(job), version=gpuplan_version(), inventory=inventory)
    solver = outcome.proof.certificate.milliseconds if isinstance(outcome, Planned) else None
    about = {"solver_milliseconds": solver} | ({} if source is None else {"source": source})
    return answer | {"meta": meta(answer, columns, now, began) | about}


def _at_prices(settings: PlannerSettings, prices: str | None) -> PlannerSettings:
    """The settings with the prices that a request names. Raises `UnusableInput` for another word."""
    if prices is None:
        return settings
    if prices not in PRICES:
        accepted = " or ".join(PRICES)
        raise UnusableInput.at("prices", message=f"{shown(prices)} is not accepted; accepted: {accepted}")
    return replace(settings, prices=prices)


def saved_plan(context: ServiceContext, plan_id: str) -> Document:
    """The answer saved under `plan_id`. Raises `NotStored` if the requester may read no such plan."""
    return context.store.plan(an_id(plan_id, "plan"), viewer()).outcome
