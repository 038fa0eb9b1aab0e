"""Merge one provider's old and new rows; rows that could not be read again stay and are marked.

A new row replaces the old row with its key. An old row without a new one:

(1) is removed with its region, if the provider no longer lists that;

(2) is removed if its region was read and its price kind was read completely;

(3) otherwise stays, stale since the first refresh that could not confirm it: its region failed, its kind or the list of its
machines was read only in part, or its new row was quarantined. In a region that the account may not use, which no refresh
can confirm, it also becomes unavailable.

A modelled price never replaces or joins a price that a source states.
"""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.regions import regions
from gpuplan.providers.refresh.parallel_fetch import Gathered
from gpuplan.providers.refresh.row_validation import Key, ValidatedRows

#: The entry of `Offer.modelled` for a price that no source states.
MODELLED_PRICE = "spot_price"
_WORDS = re.compile(r"[^\s,;:/()'\"]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """One provider's rows in the previous snapshot: machines by name, offers by key.

    `live` are the keys of offers that a refresh has read, not those that came with a release; `shipped` the names of
    machines of this release, which stay even without offers.
    """

    types: Mapping[str, InstanceType]
    offers: Mapping[Key, Offer]
    live: Set[Key] = frozenset()
    shipped: Set[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """One provider's rows after a refresh, sorted by key, and the changes."""

    types: tuple[InstanceType, ...]
    offers: tuple[Offer, ...]
    new: int = 0
    vanished: int = 0
    changed: int = 0


def merged(gathered: Gathered, sifted: ValidatedRows, before: Before, *, at: datetime) -> Merged:
    """The rows after a refresh at `at` that yielded `sifted`."""
    came = _stated_first(sifted.offers, before, gathered)
    unconfirmed = {row.key for row in sifted.aside} | (sifted.offers.keys() - came.keys())
    reported_answer_of = _reported_answer_of(sifted)
    blocked = _places(sifted.offers.keys() - came.keys()) - _places(came)
    rows = dict(came)
    for key, old in before.offers.items():
        if key in rows or _is_gone(gathered, old):
            continue
        stays = (
            key in unconfirmed
            or _place(key) in blocked
            or old.instance_type in reported_answer_of.get(home(gathered, old.region), ())
            or not expected_again(gathered, old)
        )
        if stays:
            retained = stale(old, at)
            rows[key] = replace(retained, available=False) if is_closed(gathered, old) else retained
    return _merged(before, rows, {**before.types, **sifted.types})


def unread(before: Before, *, at: datetime) -> Merged:
    """The rows after a refresh at `at` that read nothing acceptable from this provider."""
    return _merged(before, {key: stale(old, at) for key, old in before.offers.items()}, before.types)


def stale(offer: Offer, at: datetime) -> Offer:
    """The offer marked as unconfirmed by the refresh at `at`; keeps the time of the first such refresh."""
    return offer if offer.stale_since is not None else replace(offer, stale_since=at)


def home(gathered: Gathered, region: str) -> str:
    """The listed region responsible for `region`: itself, or the parent of a zone that is priced as a region."""
    listed = gathered.listed or ()
    known = regions().get((gathered.provider, region))
    if region not in listed and known is not None and known.parent_region in listed:
        return known.parent_region
    return region


def expected_again(gathered: Gathered, old: Offer) -> bool:
    """Whether an existing offer would be among the rows that were read, or its region has gone."""
    if _is_gone(gathered, old):
        return True
    rows = gathered.rows.get(home(gathered, old.region))
    return (
        rows is not None
        and old.price_kind in rows.whole_kinds
        and not any(re.fullmatch(unread_type, old.instance_type) for unread_type in rows.unread_types)
    )


def is_closed(gathered: Gathered, old: Offer) -> bool:
    """Whether the account may rent nothing in the offer's region."""
    rows = gathered.rows.get(home(gathered, old.region))
    return rows is not None and rows.closed


def is_modelled_price(offer: Offer) -> bool:
    """Whether no source states this price."""
    return MODELLED_PRICE in offer.modelled


def _is_gone(gathered: Gathered, old: Offer) -> bool:
    """Whether the provider lists its regions, without the offer's region."""
    return gathered.listed is not None and home(gathered, old.region) not in gathered.listed


def _stated_first(came: Mapping[Key, Offer], before: Before, gathered: Gathered) -> dict[Key, Offer]:
    """The new offers, without modelled prices where a source states one, now or before, in any zone of the region."""
    stated = _places(key for key, offer in came.items() if not is_modelled_price(offer))
    stated |= _places(
        key for key, old in before.offers.items() if not is_modelled_price(old) and not _is_gone(gathered, old)
    )
    return {
        key: replace(offer, stale_since=None) if offer.stale_since is not None else offer
        for key, offer in came.items()
        if not is_modelled_price(offer) or _place(key) not in stated
    }


def _place(key: Key) -> tuple[str, str, str]:
    """An offer's key without the zone: region, instance type, price kind."""
    return key[1], key[3], key[4]


def _places(keys: Iterable[Key]) -> set[tuple[str, str, str]]:
    return {_place(key) for key in keys}


def _reported_answer_of(sifted: ValidatedRows) -> dict[str, set[str]]:
    """By region, the quarantined rows and their words: an instance type among them was answered, but its row is unreadable."""
    words: dict[str, set[str]] = {}
    for row in sifted.aside:
        if row.key is None:
            words.setdefault(row.region, set()).update((row.what, *_WORDS.findall(row.what)))
    return words


def _merged(before: Before, rows: Mapping[Key, Offer], types: Mapping[str, InstanceType]) -> Merged:
    offered = {key[3] for key in rows} | before.shipped
    return Merged(
        types=tuple(instance_type for name, instance_type in sorted(types.items()) if name in offered),
        offers=tuple(offer for _, offer in sorted(rows.items())),
        new=len(rows.keys() - before.offers.keys()),
        vanished=len(before.offers.keys() - rows.keys()),
        changed=sum(
            key in before.offers and _figures(before.offers[key]) != _figures(row) for key, row in rows.items()
        ),
    )


def _figures(offer: Offer) -> tuple[int, float | None, bool]:
    return offer.usd_micros_per_hour, offer.interruptions_per_hour, offer.available
