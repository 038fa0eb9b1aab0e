"""Asks the clouds about machines within a time limit; answers of the last minutes are reused, new ones are stored."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gpuplan.api.services.capacity_candidates import Candidate, candidate_of
from gpuplan.api.services.own_runs import TRIES_FOR, with_own_runs
from gpuplan.api.services.service_context import ServiceContext
from gpuplan.catalog.model.capacity_answers import CapacityAnswer, CapacityAnswers, NotLearned

if TYPE_CHECKING:
    from gpuplan.providers.capacity.capacity_sources import CapacitySources
from gpuplan.providers.capacity.capacity_queries import CapacityQuery

#: How long an answer is reused. The clouds name no validity; scores change within the hour.
REUSED_FOR = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was learned and what was not; `reused` of the answers are of the last minutes, `asked` are new."""

    learned: CapacityAnswers
    reused: int
    asked: int


class LiveQueries:
    """Questions on behalf of all services, so that the clouds' rate limits hold over all of them."""

    def __init__(self, context: ServiceContext) -> None:
        """Ask the clouds of `context`'s environment."""
        self._context = context
        self._making = threading.Lock()
        self._made: CapacitySources | None = None

    def ask(self, candidates: Sequence[Candidate], *, now: datetime, limit_seconds: float | None = None) -> Asked:
        """The answers about these candidates, in the order of provider, region and instance type."""
        from gpuplan.providers.capacity.capacity_queries import LIMIT_SECONDS, ask_capacity, in_order

        recent = self._recent(candidates, now)
        known = {candidate_of(answer) for answer in recent}
        queries = _queries([candidate for candidate in candidates if candidate not in known])
        learned = ask_capacity(self._sources(), queries, asked_at=now, limit_seconds=limit_seconds or LIMIT_SECONDS)
        if learned.answers:
            self._context.store.capacity.write(learned.answers)
        answers = self._with_own_runs([*recent, *learned.answers], candidates, now)
        both = in_order([*answers, *learned.not_learned])
        return Asked(learned=both, reused=len(recent), asked=len(learned.answers))

    def ask_for_start(self, candidates: Sequence[Candidate], start: datetime, *, now: datetime) -> CapacityAnswers:
        """The answers for a job that starts at `start`: clouds answer for the moment, and are not asked about another day."""
        from gpuplan.planner.candidates.live_chances import MOST_HOURS_FROM_START

        if abs(start - now) + REUSED_FOR > timedelta(hours=MOST_HOURS_FROM_START):
            reason = f"not asked: the job starts at {start:%Y-%m-%d %H:%M} UTC, and clouds answer for the moment"
            providers = sorted({candidate.provider for candidate in candidates})
            return CapacityAnswers(not_learned=tuple(NotLearned(provider=name, reason=reason) for name in providers))
        return self.ask(candidates, now=now, limit_seconds=_plan_limit()).learned

    def _sources(self) -> "CapacitySources":
        """One for the life of the service, so that its rate limits hold over all queries."""
        from gpuplan.providers.capacity.capacity_sources import CapacitySources

        with self._making:
            if self._made is None:
                self._made = CapacitySources(self._context.environment.sources())
            return self._made

    def _with_own_runs(
        self, answers: Sequence[CapacityAnswer], candidates: Sequence[Candidate], now: datetime
    ) -> Sequence[CapacityAnswer]:
        tries = self._context.store.capacity.since(now - TRIES_FOR, own_runs=True)
        if not tries:
            return answers
        return with_own_runs(answers, candidates, tries, self._context.columns(), now)

    def _recent(self, candidates: Sequence[Candidate], now: datetime) -> list[CapacityAnswer]:
        """The newest stored answers for these candidates that are young enough to reuse."""
        wanted = set(candidates)
        newest: dict[Candidate, datetime] = {}
        stored = [
            answer
            for answer in self._context.store.capacity.since(now - REUSED_FOR)
            if candidate_of(answer) in wanted and answer.asked_at <= now
        ]
        for answer in stored:
            newest[candidate_of(answer)] = answer.asked_at  # the oldest come first
        return [answer for answer in stored if answer.asked_at == newest[candidate_of(answer)]]


def _plan_limit() -> float:
    """Seconds for the clouds while a plan waits: it is also worked out twice, and takes three seconds more in all."""
    from gpuplan.providers.capacity.capacity_queries import LIMIT_SECONDS

    return LIMIT_SECONDS * 5 / 6


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
