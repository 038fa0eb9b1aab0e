"""Ask the clouds about capacity: all at once, within one time limit. A cloud never delays or fails the caller.

Every cloud has a thread that finds its credentials and splits the queries into calls, and every call has a thread.
They are daemons, so a server that never answers delays neither the answer nor the end of the process.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, CapacityAnswers, NotLearned
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.providers.capacity.contract import CapacityCall, CapacityResult, CapacitySource
from gpuplan.providers.error_redaction import redacted_text

LIMIT_SECONDS = 3.0
#: Calls per cloud for one set of queries: more candidates than a plan looks at.
MOST_CALLS = 64
log = logging.getLogger("gpuplan.capacity")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityQuery:
    """How likely are `nodes` of each of `machines`, at this price kind, in each of `places` (regions) of a provider?"""

    provider: str
    machines: tuple[str, ...]
    nodes: int
    kind: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """From a thread: results, the calls that it began, and how many calls it ended."""

    results: Sequence[tuple[CapacityQuery, CapacityResult]] = ()
    begun: int = 0
    ended: int = 0


type Sources = Mapping[str, Callable[[], CapacitySource]]


def ask_capacity(
    sources: Sources,
    queries: Sequence[CapacityQuery],
    *,
    asked_at: datetime,
    limit_seconds: float = LIMIT_SECONDS,
) -> CapacityAnswers:
    """The answers that arrive within `limit_seconds`, and a `NotLearned` for everything else. Never raises for a cloud."""
    deadline = time.monotonic() + limit_seconds
    messages: SimpleQueue[_Message] = SimpleQueue()
    by_provider: dict[str, list[CapacityQuery]] = {}
    for query in queries:
        by_provider.setdefault(query.provider, []).append(query)
    for provider_queries in by_provider.values():
        _Cloud(provider_queries, sources, messages, asked_at=asked_at, deadline=deadline).start()
    results: list[tuple[CapacityQuery, CapacityResult]] = []
    open_parts = len(by_provider)
    while open_parts:
        try:
            message = messages.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        results += message.results
        open_parts += message.begun - message.ended
    late = f"no answer within {limit_seconds:g} s"
    return in_order([*(result for _, result in results), *_uncovered(queries, results, late)])


class _Cloud:
    """The threads of one cloud."""

    def __init__(
        self,
        queries: Sequence[CapacityQuery],
        sources: Sources,
        messages: SimpleQueue[_Message],
        *,
        asked_at: datetime,
        deadline: float,
    ) -> None:
        """All `queries` are about one provider."""
        self._provider, self._sources, self._queries = queries[0].provider, sources, queries
        self._messages, self._asked_at, self._deadline = messages, asked_at, deadline

    def start(self) -> None:
        """Begin in a thread of its own, which counts as one part."""
        self._thread(self._split)

    def _split(self) -> None:
        results: list[tuple[CapacityQuery, CapacityResult]] = []
        calls: list[tuple[CapacityQuery, CapacityCall]] = []
        with self._failing(self._queries, results):
            source = self._source()
            for query in self._queries:
                for part in source.capacity(query.machines, query.nodes, query.kind, query.places):
                    if isinstance(part, NotLearned):
                        results.append((query, part))
                    else:
                        calls.append((query, part))
            for query, call in calls[MOST_CALLS:]:
                results += _for_each(self._provider, query, call, f"more than {MOST_CALLS} calls at once")
            turn = threading.Semaphore(source.parallel)
            self._messages.put(_Message(begun=len(calls[:MOST_CALLS])))
            for query, call in calls[:MOST_CALLS]:
                self._thread(self._call, query, call, turn)
        self._messages.put(_Message(results=results, ended=1))

    def _source(self) -> CapacitySource:
        if self._provider not in self._sources:
            raise ProviderFailure("publishes no such figure, or gpuplan does not read it")
        return self._sources[self._provider]()

    def _call(self, query: CapacityQuery, call: CapacityCall, turn: threading.Semaphore) -> None:
        results: list[tuple[CapacityQuery, CapacityResult]] = []
        with turn, self._failing([query], results, call):
            seconds = self._deadline - time.monotonic()
            if seconds > 0:
                results += [(query, result) for result in call.ask(self._asked_at, seconds)]
        self._messages.put(_Message(results=results, ended=1))

    @contextmanager
    def _failing(
        self,
        queries: Sequence[CapacityQuery],
        results: list[tuple[CapacityQuery, CapacityResult]],
        call: CapacityCall | None = None,
    ) -> Iterator[None]:
        """Turn a failure into `NotLearned` for what it concerns."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (the boundary of a thread: otherwise the error would be lost)
            reason = _reason(self._provider, error)
        else:
            return
        for query in queries:
            if call is not None:
                results += _for_each(self._provider, query, call, reason)
            else:
                results.append((query, NotLearned(provider=self._provider, reason=reason)))

    def _thread(self, run: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=run, args=arguments, daemon=True, name=f"capacity-{self._provider}").start()


def _reason(provider: str, error: Exception) -> str:
    """The error for people; a bug is also logged."""
    if isinstance(error, ProviderFailure):
        return redacted_text(error)
    if isinstance(error, ModuleNotFoundError):
        with suppress(ModuleNotFoundError):
            return f"needs {needed_module(error)}"
    log.warning("asking %s about capacity failed", provider, exc_info=error)
    return f"failed unexpectedly ({type(error).__name__}: {redacted_text(error)})"


def _for_each(
    provider: str, query: CapacityQuery, call: CapacityCall, reason: str
) -> list[tuple[CapacityQuery, CapacityResult]]:
    return [
        (query, NotLearned(provider=provider, region=region, instance_type=machine, reason=reason))
        for region in call.regions
        for machine in call.machines
    ]


def _uncovered(
    queries: Sequence[CapacityQuery], results: Sequence[tuple[CapacityQuery, CapacityResult]], reason: str
) -> Iterator[NotLearned]:
    """A `NotLearned` for every machine and place that no result speaks of."""
    for query in queries:
        spoken = {
            (result.instance_type, result.region)
            for of, result in results
            if of is query and (isinstance(result, CapacityAnswer) or result.what in ("capacity", "price_kind"))
        }
        for machine in query.machines:
            for place in query.places:
                if not spoken & {(machine, place), ("", place), (machine, ""), ("", "")}:
                    yield NotLearned(provider=query.provider, region=place, instance_type=machine, reason=reason)


def in_order(results: Sequence[CapacityResult]) -> CapacityAnswers:
    """Results in the order of provider, region and instance type, without repetitions of what was not learned."""
    answers = [result for result in results if isinstance(result, CapacityAnswer)]
    missing = {result for result in results if isinstance(result, NotLearned)}
    return CapacityAnswers(
        answers=tuple(
            sorted(answers, key=lambda row: (row.provider, row.region, row.zone, row.instance_type, row.nodes))
        ),
        not_learned=tuple(
            sorted(missing, key=lambda row: (row.provider, row.region, row.instance_type, row.what, row.reason))
        ),
    )
