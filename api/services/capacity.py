"""How likely machines are obtained: asked of the clouds within seconds, reused for minutes, and stored as observations."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from gpuplan.api.schemas.capacity_request import parse_capacity
from gpuplan.api.services.audited import Audited
from gpuplan.api.services.plans import PlanService
from gpuplan.api.services.service_context import Document, ServiceContext
from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.wire import wire

if TYPE_CHECKING:
    from gpuplan.providers.capacity.capacity_queries import CapacityQuery
    from gpuplan.providers.capacity.capacity_sources import CapacitySources

#: How long an answer is reused. The clouds name no validity; scores change within the hour.
REUSED_FOR = timedelta(minutes=10)
#: Regions that are asked about when none is named: those with a price, at most so many per machine.
MOST_REGIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One machine in one region, as many nodes at one price kind."""

    provider: str
    instance_type: str
    region: str
    nodes: int
    kind: str


class CapacityService:
    """Answers and stores queries about capacity."""

    def __init__(self, context: ServiceContext, plans: PlanService, audited: Audited) -> None:
        """Ask the clouds of `context`'s environment; `plans` says which machines a job would use."""
        self._context, self._plans, self._audited = context, plans, audited
        self._making = threading.Lock()
        self._made: CapacitySources | None = None

    def read(self, document: Document, *, now: datetime | None = None) -> Document:
        """The answer to `{"job": {...}}` or `{"machine": ..., "nodes": ..., "kind": ..., "region": [...]}`.

        `limit_seconds` in it limits the time of all clouds. Raises `UnusableInput`.
        """
        with self._audited.question("capacity") as entry:
            asked = parse_capacity(document)
            if asked.machine is None:
                candidates = self._planned(document["job"], now)
            else:
                entry.subject = asked.machine
                candidates = self._priced(asked.machine, asked.nodes or 1, asked.kind or "spot", asked.region)
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
    ) -> Document:
        """`answers` and `not_learned` for `nodes` of one instance type, in `regions` or wherever it has a price.

        Raises `UnusableInput` for a machine, region or price kind that the catalogue does not have.
        """
        candidates = self._priced(machine, nodes, kind, regions)
        return self.of(candidates, now=now, limit_seconds=limit_seconds)

    def of_job(self, job: Document, *, now: datetime | None = None, limit_seconds: float | None = None) -> Document:
        """`answers` and `not_learned` for the machines of the job's plan, its capacity ladder and its alternatives."""
        return self.of(
            planned_candidates(self._plans.plan(job, now=now, save=False)), now=now, limit_seconds=limit_seconds
        )

    def of(
        self, candidates: Sequence[Candidate], *, now: datetime | None = None, limit_seconds: float | None = None
    ) -> Document:
        """`{"outcome": "asked", "answers": [...], "not_learned": [...], "meta": {"asked": ..., "reused": ...}}`.

        Answers of the last minutes are reused, others are asked for and stored.
        """
        from gpuplan.providers.capacity.capacity_queries import LIMIT_SECONDS, ask_capacity

        now = now or datetime.now(UTC)
        recent = self._recent(candidates, now)
        known = {_of(answer) for answer in recent}
        queries = _queries([candidate for candidate in candidates if candidate not in known])
        learned = ask_capacity(self._sources(), queries, asked_at=now, limit_seconds=limit_seconds or LIMIT_SECONDS)
        if learned.answers:
            self._context.store.capacity.write(learned.answers)
        answers = sorted(
            (*recent, *learned.answers), key=lambda row: (-row.probability, row.provider, row.region, row.zone)
        )
        return {
            "outcome": "asked",
            "answers": [wire(answer) | {"wait_hours": answer.wait_hours} for answer in answers],
            "not_learned": wire(learned.not_learned),
            "meta": {"asked_at": wire(now), "reused": len(recent), "asked": len(learned.answers)},
        }

    def _planned(self, job: Document, now: datetime | None) -> list[Candidate]:
        """The machines of the plan of a request's job."""
        try:
            answer = self._plans.plan(job, now=now, save=False)
        except UnusableInput as error:
            raise error.under("job") from None
        return planned_candidates(answer)

    def _sources(self) -> "CapacitySources":
        """One for the life of the service, so that its rate limits hold over all queries."""
        from gpuplan.providers.capacity.capacity_sources import CapacitySources

        with self._making:
            if self._made is None:
                self._made = CapacitySources(self._context.environment.sources())
            return self._made

    def _recent(self, candidates: Sequence[Candidate], now: datetime) -> list[CapacityAnswer]:
        """The newest stored answers for these candidates that are young enough to reuse."""
        wanted = set(candidates)
        newest: dict[Candidate, datetime] = {}
        stored = [
            answer
            for answer in self._context.store.capacity.since(now - REUSED_FOR)
            if _of(answer) in wanted and answer.asked_at <= now
        ]
        for answer in stored:
            newest[_of(answer)] = answer.asked_at  # the oldest come first
        return [answer for answer in stored if answer.asked_at == newest[_of(answer)]]

    def _priced(self, machine: str, nodes: int, kind: str, regions: Sequence[str]) -> list[Candidate]:
        """Where the machine has a price of this kind, the cheapest regions first."""
        if kind not in price_kinds():
            raise UnusableInput.at(
                "kind", message=f"{kind[:40]!r} is no price kind; accepted: {', '.join(price_kinds())}"
            )
        offers = [offer for offer in self._context.columns().offers if offer.instance_type == machine]
        if not offers:
            message = f"no instance type is called {machine[:80]!r}; gpuplan offers --instance-type 'p5*' lists names"
            raise UnusableInput.at("machine", message=message)
        cheapest: dict[tuple[str, str], int] = {}
        for offer in offers:
            place = offer.provider, offer.region
            if offer.price_kind == kind:
                cheapest[place] = min(offer.usd_micros_per_hour, cheapest.get(place, offer.usd_micros_per_hour))
        places = sorted(cheapest, key=lambda place: (cheapest[place], place))[:MOST_REGIONS]
        if regions:
            sold = {(offer.provider, offer.region) for offer in offers}
            places = [place for place in sorted(sold) if place[1] in regions]
            if strange := set(regions) - {region for _, region in places}:
                known = ", ".join(sorted({region for _, region in sold}))
                message = f"{machine} has no price in {min(strange)[:60]!r}; accepted: {known}"
                raise UnusableInput.at("region", message=message)
        if not places:
            kinds = ", ".join(sorted({offer.price_kind for offer in offers}))
            raise UnusableInput.at("kind", message=f"{machine} has no {kind} price; accepted: {kinds}")
        return [
            Candidate(provider=provider, instance_type=machine, region=region, nodes=nodes, kind=kind)
            for provider, region in places
        ]


def planned_candidates(answer: Document) -> list[Candidate]:
    """The rented machines of a plan, of its capacity ladder and of its alternatives, in this order.

    Raises `UnusableInput` for an answer without a plan.
    """
    plan = answer.get("plan")
    if plan is None:
        raise UnusableInput.at("job", message="no plan meets the job's requirements; gpuplan plan says why")
    choices = (plan.get("capacity_ladder") or {}).get("next_choices", ())
    rented = [*plan["phases"], *choices, *plan.get("alternatives", ())]
    return list(
        dict.fromkeys(
            Candidate(
                provider=row["provider"],
                instance_type=row["instance_type"],
                region=row["region"],
                nodes=row["nodes"],
                kind=row["price_kind"],
            )
            for row in rented
            if not price_kinds()[row["price_kind"]].owned
        )
    )


def _of(answer: CapacityAnswer) -> Candidate:
    return Candidate(
        provider=answer.provider,
        instance_type=answer.instance_type,
        region=answer.region,
        nodes=answer.nodes,
        kind=answer.price_kind,
    )


def _queries(candidates: Sequence[Candidate]) -> "list[CapacityQuery]":
    """One query for all regions of the same machine, nodes and price kind."""
    from gpuplan.providers.capacity.capacity_queries import CapacityQuery

    places: dict[tuple[str, str, int, str], list[str]] = {}
    for candidate in candidates:
        key = candidate.provider, candidate.instance_type, candidate.nodes, candidate.kind
        places.setdefault(key, []).append(candidate.region)
    return [
        CapacityQuery(provider=provider, machines=(machine,), nodes=nodes, kind=kind, places=tuple(regions))
        for (provider, machine, nodes, kind), regions in places.items()
    ]
