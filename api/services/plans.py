"""Plans of one job: made, saved under their id, and read again."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.observability.plan_observers import plan_made
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.security.authorization import charge, counting, owner, viewer
from gpuplan.api.services.audited import Audited
from gpuplan.api.services.capacity_candidates import Candidate
from gpuplan.api.services.live_queries import LiveQueries
from gpuplan.api.services.planner_calls import PlannerCalls
from gpuplan.api.services.service_context import Document, ServiceContext, an_id, answer_meta
from gpuplan.catalog.model.capacity_answers import CapacityAnswers
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.runtime.stage_timing import stage
from gpuplan.catalog.store.plan_store import SavedPlan
from gpuplan.catalog.store.schema.column_types import as_json
from gpuplan.planner.model.plan import InfeasibleAnswer, Plan, PlanAnswer, PlanMeta, PlannedAnswer
from gpuplan.planner.model.settings import PRICES, PlannerSettings
from gpuplan.planner.model.wire import wire

if TYPE_CHECKING:
    from gpuplan.catalog.snapshots.offer_columns import Columns
    from gpuplan.planner.model.job import TrainingJob
    from gpuplan.planner.model.outcome import NoPlan, Planned


class PlanService:
    """Plans jobs, saves the plans, and reads saved plans."""

    def __init__(
        self, context: ServiceContext, planner: PlannerCalls, audited: Audited, live_queries: LiveQueries
    ) -> None:
        """Work out plans by `planner`, save them in the store of `context`, and ask the clouds by `live_queries`."""
        self._context, self._planner, self._audited, self._live_queries = context, planner, audited, live_queries

    def plan(
        self,
        document: Document,
        *,
        frontier: bool = False,
        snapshot: str | None = None,
        prices: str | None = None,
        live: bool | None = False,
        now: datetime | None = None,
        save: bool = True,
        source: str | None = None,
    ) -> PlanAnswer:
        """The cheapest plan for a job document, or why there is none; saved under its id unless `save` is off.

        `prices` is expected or as-observed; the settings' own unless given. With `live` the clouds are asked how likely the
        machines are obtained; None means what the environment says. `source` is what the job was read from.
        """
        now = now or datetime.now(UTC)
        asked = Asked(document=document, now=now, frontier=frontier, snapshot=snapshot, prices=prices, source=source)
        if save:
            return self._plan_and_save(asked, live)[0]
        answer = self._answer(asked, live)
        plan_made(answer)
        return answer

    def plan_text(
        self,
        document: Document,
        *,
        frontier: bool = False,
        snapshot: str | None = None,
        prices: str | None = None,
        live: bool | None = False,
        now: datetime | None = None,
    ) -> str:
        """The answer of `plan` as JSON text. The same text is saved, so that it is written only once."""
        now = now or datetime.now(UTC)
        asked = Asked(document=document, now=now, frontier=frontier, snapshot=snapshot, prices=prices)
        return self._plan_and_save(asked, live)[1]

    def _plan_and_save(self, asked: "Asked", live: bool | None) -> tuple[PlanAnswer, str]:
        with self._audited.failures("plan"):
            answer = self._answer(asked, live)
        with stage("store"):
            text = as_json(wire(answer))
            self.save(answer, asked.now, text=text)
        plan_made(answer)
        return answer, text

    def _answer(self, asked: "Asked", live: bool | None) -> PlanAnswer:
        """The answer; the clouds are asked about the machines of the plan that is made without them."""
        if self._context.environment.asks_live() if live is None else live:
            subject = self._planner.call(machines_to_ask_about, replace(asked, frontier=False))
            if subject is not None:
                with stage("clouds"):
                    asked = replace(asked, capacity=self._live_queries.ask_for_start(*subject, now=asked.now))
        return self._planner.call(answer_plan, asked)

    def save(
        self,
        answer: PlanAnswer,
        now: datetime,
        *,
        text: str | None = None,
        owners: Sequence[str | None] | None = None,
    ) -> None:
        """Save an answer of `plan` under its id and count it. Raises `QuotaExceeded`, and then saves nothing.

        `text` is the answer as JSON, if that is already written. The plan belongs to `owners`, by default to the
        current requester.
        """
        body = answer.body
        clock = datetime.now(UTC)
        charged = charge("plan", body.id, clock, outcome=answer.outcome)
        with counting(clock):
            self._context.store.save_plan(
                body.id,
                body.snapshot_id,
                body.job,
                text or as_json(wire(answer)),
                now,
                charge=charged,
                owners=(owner(),) if owners is None else owners,
            )

    def saved(self, plan_id: str) -> PlanAnswer:
        """The answer saved under `plan_id`. Raises `NotStored` if the requester may read no such plan."""
        return saved_plan(self._context, plan_id)

    def saved_document(self, plan_id: str) -> Document:
        """The same as it is stored: an older release may have written it. Raises `NotStored`."""
        return saved_document(self._context, plan_id)

    def recent(self, most: int) -> tuple[SavedPlan, ...]:
        """The plans that the requester may read, the newest first, at most so many."""
        return self._context.store.recent_plans(most, viewer())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question for a plan, as `PlanService.plan` describes it; with the clouds' answers about its machines, if asked."""

    document: Document
    now: datetime
    frontier: bool = False
    snapshot: str | None = None
    prices: str | None = None
    source: str | None = None
    capacity: CapacityAnswers | None = None


def machines_to_ask_about(context: ServiceContext, asked: Asked) -> "tuple[list[Candidate], datetime] | None":
    """The best few dozen machines for a job, and its start; None if it has no plan."""
    from gpuplan.api.schemas.job import parse_job

    job = parse_job(asked.document, now=asked.now)
    from gpuplan.planner.availability.query_shapes import query_shapes
    from gpuplan.planner.model.outcome import Planned

    outcome, _ = _outcome(context, job, asked)
    if not isinstance(outcome, Planned):
        return None
    return [
        Candidate(provider=provider, region=region, instance_type=machine, kind=kind, nodes=nodes)
        for provider, region, machine, kind, nodes in query_shapes(outcome)
    ], outcome.start


def answer_plan(context: ServiceContext, asked: Asked) -> PlanAnswer:
    """Work out the answer of `PlanService.plan`; write nothing."""
    from gpuplan.api.schemas.job import canonical, parse_job

    began = time.perf_counter()
    with stage("parse"):
        job = parse_job(asked.document, now=asked.now)
    # Imported only now, so that a job with faults is refused without waiting for the planner's libraries.
    from gpuplan.planner.model.outcome import Planned
    from gpuplan.planner.serialization.content_ids import inventory_id
    from gpuplan.planner.serialization.plan_document import answer_body

    outcome, columns = _outcome(context, job, asked)
    context.last_job = asked.document
    inventory = inventory_id(context.owned)
    body = answer_body(outcome, canonical(job), version=gpuplan_version(), inventory=inventory)
    oldest = min((phase.price_observed_at for phase in body.phases), default=None) if isinstance(body, Plan) else None
    meta = PlanMeta(
        **asdict(answer_meta(columns, asked.now, began, oldest_price=oldest)),
        solver_milliseconds=outcome.proof.certificate.milliseconds if isinstance(outcome, Planned) else None,
        source=asked.source,
    )
    if isinstance(body, Plan):
        return PlannedAnswer(outcome="planned", plan=body, meta=meta)
    return InfeasibleAnswer(outcome="infeasible", infeasible=body, meta=meta)


def _outcome(context: ServiceContext, job: "TrainingJob", asked: Asked) -> "tuple[Planned | NoPlan, Columns]":
    """The outcome of planning the job, and the columns of its snapshot."""
    from gpuplan.planner.cost.spend_commitments import with_spending
    from gpuplan.planner.planning import plan

    columns, past_runs = context.columns_and_past_runs(asked.snapshot)
    settings = with_spending(_at_prices(context.settings, asked.prices), columns)
    outcome = plan(
        job,
        columns,
        owned=context.owned,
        settings=settings,
        past_runs=past_runs,
        frontier=asked.frontier,
        capacity=asked.capacity,
    )
    return outcome, columns


def _at_prices(settings: PlannerSettings, prices: str | None) -> PlannerSettings:
    """The settings with the prices that a request names. Raises `UnusableInput` for another word."""
    if prices is None:
        return settings
    if prices not in PRICES:
        accepted = " or ".join(PRICES)
        raise UnusableInput.at("prices", message=f"{shown(prices)} is not accepted; accepted: {accepted}")
    return replace(settings, prices=prices)


def saved_plan(context: ServiceContext, plan_id: str) -> PlanAnswer:
    """The answer saved under `plan_id`. Raises `NotStored` if the requester may read no such plan."""
    from gpuplan.api.schemas.answers import read_answer

    return read_answer(saved_document(context, plan_id))


def saved_document(context: ServiceContext, plan_id: str) -> Document:
    """The answer as it is stored. Raises `NotStored` if the requester may read no such plan."""
    return context.store.plan(an_id(plan_id, "plan"), viewer()).outcome
