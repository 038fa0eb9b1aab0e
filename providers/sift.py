"""What of a provider's rows can be taken at all: known machines, known ways to pay, one row per key."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from catalog.accelerators import accelerators
from catalog.offer import InstanceType, Offer
from catalog.price_kinds import price_kinds
from providers.gather import Gathered

Key = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A row that was read and not taken; `key` where it came as far as an offer, whose old row then stays."""

    region: str
    what: str
    reason: str
    key: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """The rows of one provider that may be taken, by name and key, and those that may not.

    `unknown_accelerators` are those of machines that were set aside because nobody has described them yet.
    """

    types: Mapping[str, InstanceType]
    offers: Mapping[Key, Offer]
    aside: tuple[Aside, ...] = ()
    unknown_accelerators: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def sift(gathered: Gathered, known: Mapping[str, InstanceType]) -> Sifted:
    """The usable rows of everything that a provider gave; `known` are its machines of the snapshot before, by name."""
    types, notes = _types(gathered)
    strange = {name: each for name, each in types.items() if each.accelerator not in accelerators()}
    types = {name: _as_known(each, known.get(name)) for name, each in types.items() if name not in strange}
    read = [(region, row) for region, rows in sorted(gathered.rows.items()) for row in rows.offers]
    aside = [
        Aside(region=region, what=each.what, reason=each.reason)
        for region, rows in sorted(gathered.rows.items())
        for each in rows.quarantined
    ]
    machines = {**known, **types}
    for region, row in read:
        if why := _unusable(gathered, row, machines, strange):
            aside.append(_set_aside(region, row, why))
    refused = {each.key for each in aside}
    offers, twice = _one_per_key([(region, row) for region, row in read if row.key not in refused])
    return Sifted(
        types=types,
        offers=offers,
        aside=(*aside, *twice),
        unknown_accelerators=tuple(sorted({each.accelerator for each in strange.values()})),
        notes=notes,
    )


def without(sifted: Sifted, aside: Collection[Aside]) -> Sifted:
    """The same without offers that a later check sets aside."""
    refused = {each.key for each in aside}
    left = {key: offer for key, offer in sifted.offers.items() if key not in refused}
    return replace(sifted, offers=left, aside=(*sifted.aside, *aside))


def set_aside(offer: Offer, reason: str) -> Aside:
    """An offer that came and is not taken."""
    return _set_aside(offer.region, offer, reason)


def _set_aside(region: str, row: Offer, reason: str) -> Aside:
    what = "/".join(part for part in row.key[2:] if part)
    return Aside(region=region, what=what, reason=reason, key=row.key)


def _types(gathered: Gathered) -> tuple[dict[str, InstanceType], tuple[str, ...]]:
    """One machine per name: what most regions say of it, the first of them by name where they are even."""
    variants: defaultdict[str, list[InstanceType]] = defaultdict(list)
    for _, rows in sorted(gathered.rows.items()):
        for each in rows.instance_types:
            if each.provider == gathered.provider:
                variants[each.name].append(each)
    chosen: dict[str, InstanceType] = {}
    differing = []
    for name, found in sorted(variants.items()):
        votes = Counter(_figures(each) for each in found)
        most = max(votes.values())
        # The first in the order of regions that has as many votes as any.
        chosen[name] = next(each for each in found if votes[_figures(each)] == most)
        differing += [name] if len(votes) > 1 else []
    return chosen, (f"regions describe {', '.join(differing)} differently; most of them count",) if differing else ()


def _figures(each: InstanceType) -> InstanceType:
    return replace(each, source="", as_of="")


def _as_known(each: InstanceType, before: InstanceType | None) -> InstanceType:
    """The row from before where nothing but its source or date is new, so that nights do not rewrite it."""
    return before if before is not None and _figures(before) == _figures(each) else each


def _unusable(
    gathered: Gathered, row: Offer, machines: Mapping[str, InstanceType], strange: Mapping[str, InstanceType]
) -> str:
    """Why a row cannot be taken, empty if it can."""
    if row.provider != gathered.provider:
        return f"it says that it is of provider {row.provider!r}"
    if row.price_kind not in price_kinds():
        return f"price kind {row.price_kind!r} is unknown"
    if row.instance_type in strange:
        return f"nobody has described its accelerator {strange[row.instance_type].accelerator!r} yet"
    return "" if row.instance_type in machines else "nothing is known of its machine"


def _one_per_key(read: Iterable[tuple[str, Offer]]) -> tuple[dict[Key, Offer], list[Aside]]:
    """Rows that came twice: once if they are the same, not at all if they differ, since nobody knows which is true."""
    by_key: defaultdict[Key, list[tuple[str, Offer]]] = defaultdict(list)
    for region, row in read:
        by_key[row.key].append((region, row))
    offers: dict[Key, Offer] = {}
    twice: list[Aside] = []
    for key, rows in by_key.items():
        first = rows[0][1]
        if all(row == first for _, row in rows[1:]):
            offers[key] = first
        else:
            prices = sorted({row.usd_micros_per_hour for _, row in rows})
            said = " and ".join(f"{micros / 1e6:g}" for micros in prices)
            reason = f"came {len(rows)} times with different contents ({said} USD/h)"
            twice += [_set_aside(region, row, reason) for region, row in rows]
    return offers, twice
