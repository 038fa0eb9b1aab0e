"""Capacity by the stock of a price list: whether a machine is in stock in a region, in the list's own words or numbers.

A list says whether one machine can be had. How many at once is known only where it states their number; for more nodes
than one, anything else than none in stock is not learned. A list is read at most once a minute.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, NotLearned, probability_of
from gpuplan.catalog.model.offer import Implausible
from gpuplan.providers.capacity.contract import CapacityCall, CapacityResult
from gpuplan.providers.price_lists.list_provider import ListProvider, RegionalListProvider
from gpuplan.providers.price_lists.listed_machines import IN_STOCK, SOLD_OUT, ListedMachine, Listing

type MakeList = Callable[[datetime], ListProvider | RegionalListProvider]

#: Providers whose lists state stock by place, with the words of `catalog/data/capacity_scores.csv`.
LISTED_STOCK = ("hyperstack", "lambda", "runpod", "scaleway", "verda")
#: A list is not read again within so many seconds: every read is several calls.
READ_AGAIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A provider's list as it was read: when by the clock of the question, and when by this process's own."""

    provider: str
    listing: Listing
    source: str
    asked_at: datetime
    read_at: float


class ListedStock:
    """Questions to one provider's list."""

    parallel = 2

    def __init__(self, name: str, make: MakeList) -> None:
        """`make` returns the provider at a time; its list is read anew for every provider that is made."""
        self.name, self._make = name, make
        self._locks: dict[str, Lock] = {}
        self._making = Lock()
        self._reads: dict[str, _Read] = {}

    def capacity(
        self, machines: Sequence[str], nodes: int, kind: str, places: Sequence[str]
    ) -> list[CapacityCall | NotLearned]:
        """A call per region, which reads the list if no other call has just done so."""

        def call(region: str) -> CapacityCall:
            def ask(asked_at: datetime, _: float) -> list[CapacityResult]:
                read = self._of(region, asked_at)
                return [result for name in machines for result in answers_of(read, name, nodes, kind, region)]

            return CapacityCall(machines=tuple(machines), regions=(region,), ask=ask)

        return [call(region) for region in dict.fromkeys(places)]

    def _of(self, region: str, asked_at: datetime) -> _Read:
        """The list that has the region. Raises `ProviderFailure`."""
        provider = self._make(asked_at)
        key = region if isinstance(provider, RegionalListProvider) else ""
        with self._making:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            read = self._reads.get(key)
            if read is None or time.monotonic() - read.read_at > READ_AGAIN_SECONDS:
                machines = [row for listing in provider.listings([region]) for row in listing.machines]
                read = _Read(
                    provider=self.name,
                    listing=Listing(regions=(region,), machines=tuple(machines)),
                    source=provider.source,
                    asked_at=asked_at,
                    read_at=time.monotonic(),
                )
                self._reads[key] = read
            return read


def answers_of(read: _Read, name: str, nodes: int, kind: str, region: str) -> list[CapacityResult]:
    """What a list says of `nodes` of a machine in a region: an answer, or one per zone, or why it says nothing."""
    rows = [row for row in read.listing.machines if row.name == name and row.price_kind == kind]
    if any(row.region for row in rows):
        rows = [row for row in rows if row.region == region]
    if not rows:
        return [_not(read.provider, region, name, f"the list has no {kind} price of it there")]
    results: list[CapacityResult] = []
    for row in rows:
        try:
            results.append(_answer(read, row, nodes, region))
        except Implausible as problem:
            results.append(_not(read.provider, region, name, str(problem)))
    return results


def _answer(read: _Read, row: ListedMachine, nodes: int, region: str) -> CapacityAnswer:
    """Raises `Implausible` where the list does not tell."""
    word, count = _stock(row, region)
    probability = probability_of(read.provider, row.price_kind, word)
    if probability > 0 and row.region and not row.in_stock:
        raise Implausible("is in stock there, but not sold any more")
    if count:
        word = f"{word}, {count} machines"
    if count is not None:
        probability = probability if nodes <= count else 0.0
    elif nodes > 1 and probability > 0:
        raise Implausible(f"{word}: the list says whether one machine can be had, not {nodes} at once")
    return CapacityAnswer(
        provider=read.provider,
        region=region,
        zone=row.zone,
        instance_type=row.name,
        nodes=nodes,
        price_kind=row.price_kind,
        probability=probability,
        published=word,
        asked_at=read.asked_at,
        source=read.source,
        scored_types=(row.name,),
        modelled=("probability",),
    )


def _stock(row: ListedMachine, region: str) -> tuple[str, int | None]:
    """The list's word for a machine in a region, and the number of machines. Raises `Implausible` where it has none."""
    if not row.stock_known:
        raise Implausible("the list states no stock to this account")
    level = next((level for level in row.levels if level.region == region), None)
    if level is not None:
        return level.word, level.machines
    if region in row.regions_in_stock:
        return IN_STOCK, None
    if row.in_stock:
        raise Implausible("is in stock, but the list does not say where")
    return SOLD_OUT, None


def _not(provider: str, region: str, name: str, reason: str) -> NotLearned:
    return NotLearned(provider=provider, region=region, instance_type=name, reason=reason)
