"""The contract of every source of capacity answers.

A cloud that publishes how likely machines are obtained has a module `capacity` whose `capacity_source(sources)` returns
a `CapacitySource`. `gpuplan.providers.capacity.capacity_queries` uses nothing else of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, NotLearned

type CapacityResult = CapacityAnswer | NotLearned


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityCall:
    """The API calls that answer one part of a question.

    `ask(asked_at, seconds)` sends them and spends at most about `seconds`. It returns an answer or a `NotLearned` for each
    part, and raises `ProviderFailure` if it learned nothing.
    """

    machines: tuple[str, ...]
    regions: tuple[str, ...]
    ask: Callable[[datetime, float], Sequence[CapacityResult]]


class CapacitySource(Protocol):
    """What one cloud publishes about getting machines. Any number of threads may use it at the same time.

    It keeps the cloud's published rate limits over its whole life, so a process should have one of each.
    """

    @property
    def name(self) -> str:
        """The provider's name in rows."""
        ...

    @property
    def parallel(self) -> int:
        """How many calls may run concurrently."""
        ...

    def capacity(
        self, machines: Sequence[str], nodes: int, kind: str, places: Sequence[str]
    ) -> Sequence[CapacityCall | NotLearned]:
        """The calls that tell how likely `nodes` of each machine are obtained in each of `places` (regions).

        Sends nothing. What the cloud does not publish (another price kind, a machine that the API excludes) is a
        `NotLearned`. Raises `ProviderFailure` if nothing can be asked at all.
        """
        ...


def split_places(
    provider: str, places: Sequence[str], reason_not: Callable[[str], str]
) -> tuple[list[str], list[NotLearned]]:
    """The places that can be asked about, and a `NotLearned` for each other one with the text of `reason_not`."""
    refused = [(place, reason) for place in places if (reason := reason_not(place))]
    names = {place for place, _ in refused}
    return (
        [place for place in dict.fromkeys(places) if place not in names],
        [NotLearned(provider=provider, region=place, reason=reason) for place, reason in refused],
    )


def parts[Item](items: Sequence[Item], most: int) -> list[tuple[Item, ...]]:
    """The items in groups of at most `most`, in order."""
    return [tuple(items[start : start + most]) for start in range(0, len(items), most)]
