"""The row changes from one snapshot to the next: rows to end and rows to begin."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from gpuplan.catalog.model.offer import Offer

Key = tuple[str, str, str, str, str]


class Figures(NamedTuple):
    """The figures of one offer: price in micro-dollars per node-hour, and interruption risk."""

    usd_micros_per_hour: int
    interruptions_per_hour: float | None
    available: bool


class Reading(NamedTuple):
    """The fields shared by offers of one place that were read together: source, time, missing parts."""

    provider: str
    region: str
    source: str
    modelled: tuple[str, ...]
    partial: tuple[str, ...]
    observed_at: datetime
    observed_approximately: bool
    stale_since: datetime | None


class CurrentPrice(NamedTuple):
    """A price that is valid in the latest snapshot."""

    offer_id: int
    figures: Figures
    reading_id: int


@dataclass(slots=True, kw_only=True)
class PriceChanges:
    """Rows to end (by offer and reading id) and to begin; an updated reading is in both.

    `begun_prices` identifies the offer by key, since it may not have had a price before.
    """

    ended_prices: list[int] = field(default_factory=list)
    begun_prices: list[tuple[Key, Figures, int]] = field(default_factory=list)
    ended_readings: list[int] = field(default_factory=list)
    begun_readings: dict[int, Reading] = field(default_factory=dict)


def figures_of(offer: Offer) -> Figures:
    """The offer's own figures."""
    return Figures(offer.usd_micros_per_hour, offer.interruptions_per_hour, offer.available)


def reading_of(offer: Offer) -> Reading:
    """The fields that the offer shares with others."""
    return Reading(
        offer.provider,
        offer.region,
        offer.source,
        offer.modelled,
        offer.partial,
        offer.observed_at,
        offer.observed_approximately,
        offer.stale_since,
    )


def price_changes(
    current: Mapping[Key, CurrentPrice], readings: Mapping[int, Reading], first_free_id: int, offers: Iterable[Offer]
) -> PriceChanges:
    """The changes that turn the current prices and readings into `offers`.

    A reading updates to the value of most of its unchanged offers; only the other offers are rewritten. New readings are
    numbered from `first_free_id`.
    """
    given = {offer.key: (figures_of(offer), reading_of(offer)) for offer in offers}
    moved = _moved_readings(current, given)
    changes = PriceChanges(
        ended_prices=[price.offer_id for key, price in current.items() if key not in given],
        ended_readings=[number for number, reading in readings.items() if moved.get(number) != reading],
        begun_readings={number: reading for number, reading in moved.items() if readings[number] != reading},
    )
    numbers = {reading: number for number, reading in sorted(moved.items(), reverse=True)}
    for key, (figures, reading) in given.items():
        price = current.get(key)
        if price is not None:
            if price.figures == figures and moved[price.reading_id] == reading:
                continue
            changes.ended_prices.append(price.offer_id)
        if reading not in numbers:
            numbers[reading] = first_free_id
            changes.begun_readings[first_free_id] = reading
            first_free_id += 1
        changes.begun_prices.append((key, figures, numbers[reading]))
    return changes


def _moved_readings(
    current: Mapping[Key, CurrentPrice], given: Mapping[Key, tuple[Figures, Reading]]
) -> dict[int, Reading]:
    votes: defaultdict[int, Counter[Reading]] = defaultdict(Counter)
    for key, (figures, reading) in given.items():
        price = current.get(key)
        if price is not None and price.figures == figures:
            votes[price.reading_id][reading] += 1
    return {number: vote.most_common(1)[0][0] for number, vote in votes.items()}
