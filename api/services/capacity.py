"""How likely machines are obtained now: those of a job's plan, or one instance type."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from gpuplan.api.schemas.capacity_report import parse_capacity_report
from gpuplan.api.schemas.capacity_request import parse_capacity
from gpuplan.api.security.authorization import record
from gpuplan.api.services.audited import Audited
from gpuplan.api.services.capacity_candidates import Candidate, candidate_of
from gpuplan.api.services.live_queries import LiveQueries
from gpuplan.api.services.own_runs import TRIES_FOR, in_words
from gpuplan.api.services.plans import PlanService
from gpuplan.api.services.priced_machines import priced_candidates
from gpuplan.api.services.service_context import Document, ServiceContext
from gpuplan.catalog.model.capacity_answers import OBTAINED, OWN_RUN, CapacityAnswer, capacity_errors
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.document_fields import choose
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.live_capacity import Capacity, CapacityAnswers, CapacityMeta, CapacityReport, NotLearned
from gpuplan.planner.model.plan import InfeasibleAnswer, PlanAnswer


class CapacityService:
    """Answers and stores queries about capacity."""

    def __init__(
        self, context: ServiceContext, plans: PlanService, audited: Audited, live_queries: LiveQueries
    ) -> None:
        """Ask the clouds by `live_queries`; `plans` says which machines a job would use."""
        self._context, self._plans, self._audited, self._live_queries = context, plans, audited, live_queries

    def read(self, document: Document, *, now: datetime | None = None) -> CapacityAnswers:
        """The answer to `{"job": {...}}` or `{"machine": ..., "nodes": ..., "kind": ..., "region": [...]}`.

        `limit_seconds` in it limits the time of all clouds. Raises `UnusableInput`.
        """
        with self._audited.question("capacity") as entry:
            asked = parse_capacity(document)
            if asked.machine is None:
                candidates = self._planned(document["job"], now)
            else:
                entry.subject = asked.machine
                candidates = priced_candidates(
                    self._context.columns(), asked.machine, asked.nodes or 1, asked.kind or "spot", asked.region
                )
            return self.of(candidates, now=now, limit_seconds=asked.limit_seconds)

    def of_machine(
        self,
        machine: str,
        *,
        nodes: int = 1,
        kind: str = "spot",
        regions: Sequence[str] = (),
        now: datetime | None = None,
        limit_seconds: float | None = None,
    ) -> CapacityAnswers:
        """`answers` and `not_learned` for `nodes` of one instance type, in `regions` or wherever it has a price.

        Raises `UnusableInput` for a machine, region or price kind that the catalogue does not have.
        """
        candidates = priced_candidates(self._context.columns(), machine, nodes, kind, regions)
        return self.of(candidates, now=now, limit_seconds=limit_seconds)

    def of_job(
        self, job: Document, *, now: datetime | None = None, limit_seconds: float | None = None
    ) -> CapacityAnswers:
        """`answers` and `not_learned` for the machines of the job's plan, its capacity ladder and its alternatives."""
        return self.of(
            planned_candidates(self._plans.plan(job, now=now, save=False)), now=now, limit_seconds=limit_seconds
        )

    def of(
        self, candidates: Sequence[Candidate], *, now: datetime | None = None, limit_seconds: float | None = None
    ) -> CapacityAnswers:
        """The answers about these candidates; those of the last minutes are reused, others are asked for and stored."""
        now = now or datetime.now(UTC)
        asked = self._live_queries.ask(candidates, now=now, limit_seconds=limit_seconds)
        answers = sorted(asked.learned.answers, key=lambda row: (-row.probability, row.provider, row.region, row.zone))
        return CapacityAnswers(
            outcome="asked",
            answers=tuple(Capacity(**asdict(answer), wait_hours=answer.wait_hours) for answer in answers),
            not_learned=tuple(NotLearned(**asdict(row)) for row in asked.learned.not_learned),
            meta=CapacityMeta(asked_at=now, reused=asked.reused, asked=asked.asked),
        )

    def report(self, document: Document, *, now: datetime | None = None) -> CapacityReport:
        """Store a try to get machines: refused with a code of the cloud, or obtained. Later live chances count it.

        Raises `UnusableInput` for machines without a price there, and for an error that is no lack of machines.
        """
        with self._audited.refusals("capacity.report"):
            given = parse_capacity_report(document)
            kind = given.kind or "on_demand"
            machine, region = str(given.machine), str(given.region)
            [asked] = priced_candidates(self._context.columns(), machine, given.nodes or 1, kind, (region,))
            code = "" if given.refused is None else _code(given.refused, asked.provider)
        now = now or datetime.now(UTC)
        attempt = CapacityAnswer(
            provider=asked.provider,
            region=asked.region,
            zone=given.zone or "",
            instance_type=asked.instance_type,
            nodes=asked.nodes,
            price_kind=kind,
            probability=1.0 if given.obtained else 0.0,
            published=code or OBTAINED,
            asked_at=now,
            source=OWN_RUN,
        )
        store = self._context.store
        store.capacity.write([attempt])
        store.access.record(record("capacity.report", f"{machine} {given.zone or region}", now))
        place = candidate_of(attempt), attempt.zone
        tries = store.capacity.since(now - TRIES_FOR, own_runs=True)
        return CapacityReport(
            outcome="reported",
            provider=asked.provider,
            region=asked.region,
            zone=attempt.zone,
            instance_type=asked.instance_type,
            nodes=asked.nodes,
            price_kind=kind,
            obtained=given.obtained,
            code=code,
            reported_at=now,
            own_runs=in_words([row for row in tries if (candidate_of(row), row.zone) == place]),
        )

    def _planned(self, job: Document, now: datetime | None) -> list[Candidate]:
        """The machines of the plan of a request's job."""
        try:
            answer = self._plans.plan(job, now=now, save=False)
        except UnusableInput as error:
            raise error.under("job") from None
        return planned_candidates(answer)


def _code(refused: str, provider: str) -> str:
    """The provider's error code. Raises `UnusableInput` for another error, as that of a quota."""
    try:
        return choose(refused, capacity_errors(provider))
    except ValueError as error:
        raise UnusableInput.at("refused", message=f"{error}; other errors are no lack of machines") from None


def planned_candidates(answer: PlanAnswer) -> list[Candidate]:
    """The rented machines of a plan, of its capacity ladder and of its alternatives, in this order.

    Raises `UnusableInput` for an answer without a plan.
    """
    if isinstance(answer, InfeasibleAnswer):
        raise UnusableInput.at("job", message="no plan meets the job's requirements; gpuplan plan says why")
    plan, ladder = answer.plan, answer.plan.capacity_ladder
    choices = () if ladder is None else ladder.next_choices
    changing = () if ladder is None or ladder.changing_machines is None else ladder.changing_machines.phases
    rented = [*plan.phases, *choices, *changing, *plan.alternatives]
    return list(
        dict.fromkeys(
            Candidate(
                provider=row.provider,
                instance_type=row.instance_type,
                region=row.region,
                nodes=row.nodes,
                kind=row.price_kind,
            )
            for row in rented
            if not price_kinds()[row.price_kind].owned
        )
    )
