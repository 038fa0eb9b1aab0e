"""One provider's rows of before and now as one set, so that what could not be read again stays and says so.

An old row is replaced by the row that came under its key. One that did not come again

* goes with its region, if the provider no longer lists that;
* goes if its region was read and everything there is of its price kind was among what was read;
* stays otherwise, stale since the first refresh that could not confirm it: its region failed, its kind
  or the list of its machines was read only in part, or what came for it was set aside. In a region that
  the account may not use, which no refresh can confirm, it is no longer available either.

A price that a source states is never replaced by a modelled one, nor joined by it.
"""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime

from catalog.offer import InstanceType, Offer
from catalog.regions import regions
from providers.gather import Gathered
from providers.sift import Key, Sifted

#: What `Offer.modelled` names where the price itself is no source's.
MODELLED_PRICE = "spot_price"
_WORDS = re.compile(r"[^\s,;:/()'\"]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """One provider's rows in the snapshot before: machines by name, offers by key.

    `live` are the keys of offers that a refresh has read, not those that came with a release;
    `shipped` the names of machines that come with this one, and stay although nobody offers them.
    """

    types: Mapping[str, InstanceType]
    offers: Mapping[Key, Offer]
    live: Set[Key] = frozenset()
    shipped: Set[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """One provider's rows after a refresh, sorted by key, and what that changed."""

    types: tuple[InstanceType, ...]
    offers: tuple[Offer, ...]
    new: int = 0
    vanished: int = 0
    changed: int = 0


def merged(gathered: Gathered, sifted: Sifted, before: Before, *, at: datetime) -> Merged:
    """The rows after a refresh at `at` that gave `sifted`."""
    came = _stated_first(sifted.offers, before, gathered)
    held = {each.key for each in sifted.aside} | (sifted.offers.keys() - came.keys())
    told_of = _told_of(sifted)
    blocked = _places(sifted.offers.keys() - came.keys()) - _places(came)
    rows = dict(came)
    for key, old in before.offers.items():
        if key in rows or _is_gone(gathered, old):
            continue
        stays = (
            key in held
            or _place(key) in blocked
            or old.instance_type in told_of.get(home(gathered, old.region), ())
            or not expected_again(gathered, old)
        )
        if stays:
            kept = stale(old, at)
            rows[key] = replace(kept, available=False) if is_closed(gathered, old) else kept
    return _counted(before, rows, {**before.types, **sifted.types})


def unread(before: Before, *, at: datetime) -> Merged:
    """The rows after a refresh at `at` that read nothing of this provider that can be taken."""
    return _counted(before, {key: stale(old, at) for key, old in before.offers.items()}, before.types)


def stale(offer: Offer, at: datetime) -> Offer:
    """The offer as one that the refresh at `at` could not confirm; it keeps the time of the first such."""
    return offer if offer.stale_since is not None else replace(offer, stale_since=at)


def home(gathered: Gathered, region: str) -> str:
    """The listed region that answers for `region`: itself, or the parent of a zone that is priced as a region."""
    listed = gathered.listed or ()
    known = regions().get((gathered.provider, region))
    if region not in listed and known is not None and known.parent_region in listed:
        return known.parent_region
    return region


def expected_again(gathered: Gathered, old: Offer) -> bool:
    """Whether an old offer that still exists would be among what was read; also one whose region has gone."""
    if _is_gone(gathered, old):
        return True
    rows = gathered.rows.get(home(gathered, old.region))
    return (
        rows is not None
        and old.price_kind in rows.whole_kinds
        and not any(re.fullmatch(each, old.instance_type) for each in rows.unread_types)
    )


def is_closed(gathered: Gathered, old: Offer) -> bool:
    """Whether the account may rent nothing in the offer's region."""
    rows = gathered.rows.get(home(gathered, old.region))
    return rows is not None and rows.closed


def is_modelled_price(offer: Offer) -> bool:
    """Whether no source states this price."""
    return MODELLED_PRICE in offer.modelled


def _is_gone(gathered: Gathered, old: Offer) -> bool:
    """Whether the provider lists its regions, and the offer's is not among them."""
    return gathered.listed is not None and home(gathered, old.region) not in gathered.listed


def _stated_first(came: Mapping[Key, Offer], before: Before, gathered: Gathered) -> dict[Key, Offer]:
    """What came, fresh, without modelled prices for what a source states, then or now, in any zone of the region."""
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
    """An offer's key but for the zone: region, instance type, price kind."""
    return key[1], key[3], key[4]


def _places(keys: Iterable[Key]) -> set[tuple[str, str, str]]:
    return {_place(key) for key in keys}


def _told_of(sifted: Sifted) -> dict[str, set[str]]:
    """By region, the words of what adapters set aside: an instance type among them did come, in a row nobody can read."""
    words: dict[str, set[str]] = {}
    for each in sifted.aside:
        if each.key is None:
            words.setdefault(each.region, set()).update(_WORDS.findall(each.what))
    return words


def _counted(before: Before, rows: Mapping[Key, Offer], types: Mapping[str, InstanceType]) -> Merged:
    offered = {key[3] for key in rows} | before.shipped
    return Merged(
        types=tuple(each for name, each in sorted(types.items()) if name in offered),
        offers=tuple(offer for _, offer in sorted(rows.items())),
        new=len(rows.keys() - before.offers.keys()),
        vanished=len(before.offers.keys() - rows.keys()),
        changed=sum(
            key in before.offers and _figures(before.offers[key]) != _figures(row) for key, row in rows.items()
        ),
    )


def _figures(offer: Offer) -> tuple[int, float | None, bool]:
    return offer.usd_micros_per_hour, offer.interruptions_per_hour, offer.available
