"""Validate a provider's rows: known machines, known price kinds, one row per key."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.providers.refresh.parallel_fetch import Gathered

Key = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A rejected row; `key` if it got as far as an offer, whose old row then stays."""

    region: str
    what: str
    reason: str
    key: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedRows:
    """The accepted rows of one provider, by name and key, and the rejected ones.

    `unknown_accelerators` are those of machines that were rejected because their accelerator is unknown.
    """

    types: Mapping[str, InstanceType]
    offers: Mapping[Key, Offer]
    aside: tuple[Aside, ...] = ()
    unknown_accelerators: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def validate_rows(gathered: Gathered, known: Mapping[str, InstanceType]) -> ValidatedRows:
    """The usable rows of a provider; `known` are its machines of the previous snapshot, by name."""
    types, notes = _types(gathered)
    strange = {
        name: instance_type for name, instance_type in types.items() if instance_type.accelerator not in accelerators()
    }
    types = {
        name: _as_known(instance_type, known.get(name)) for name, instance_type in types.items() if name not in strange
    }
    read = [(region, row) for region, rows in sorted(gathered.rows.items()) for row in rows.offers]
    aside = [
        Aside(region=region, what=row.what, reason=row.reason)
        for region, rows in sorted(gathered.rows.items())
        for row in rows.quarantined
    ]
    machines = {**known, **types}
    for region, row in read:
        if why := _unusable(gathered, row, machines, strange):
            aside.append(_set_aside(region, row, why))
    refused = {row.key for row in aside}
    offers, twice = _one_per_key([(region, row) for region, row in read if row.key not in refused])
    return ValidatedRows(
        types=types,
        offers=offers,
        aside=(*aside, *twice),
        unknown_accelerators=tuple(sorted({instance_type.accelerator for instance_type in strange.values()})),
        notes=notes,
    )


def without(sifted: ValidatedRows, aside: Collection[Aside]) -> ValidatedRows:
    """The same without offers that a later check rejects."""
    refused = {aside.key for aside in aside}
    left = {key: offer for key, offer in sifted.offers.items() if key not in refused}
    return replace(sifted, offers=left, aside=(*sifted.aside, *aside))


def set_aside(offer: Offer, reason: str) -> Aside:
    """An offer that was read and rejected."""
    return _set_aside(offer.region, offer, reason)


def _set_aside(region: str, row: Offer, reason: str) -> Aside:
    what = "/".join(part for part in row.key[2:] if part)
    return Aside(region=region, what=what, reason=reason, key=row.key)


def _types(gathered: Gathered) -> tuple[dict[str, InstanceType], tuple[str, ...]]:
    """One machine per name: the majority of regions decides, on a tie the first region by name."""
    variants: defaultdict[str, list[InstanceType]] = defaultdict(list)
    for _, rows in sorted(gathered.rows.items()):
        for instance_type in rows.instance_types:
            if instance_type.provider == gathered.provider:
                variants[instance_type.name].append(instance_type)
    chosen: dict[str, InstanceType] = {}
    differing = []
    for name, candidates in sorted(variants.items()):
        votes = Counter(_figures(instance_type) for instance_type in candidates)
        most = max(votes.values())
        # On a tie, the first in the order of regions.
        chosen[name] = next(instance_type for instance_type in candidates if votes[_figures(instance_type)] == most)
        differing += [name] if len(votes) > 1 else []
    return chosen, (f"regions describe {', '.join(differing)} differently; most of them count",) if differing else ()


def _figures(instance_type: InstanceType) -> InstanceType:
    return replace(instance_type, source="", as_of="")


def _as_known(instance_type: InstanceType, before: InstanceType | None) -> InstanceType:
    """The old row if only its source or date changed, so that refreshes do not rewrite it."""
    return before if before is not None and _figures(before) == _figures(instance_type) else instance_type


def _unusable(
    gathered: Gathered, row: Offer, machines: Mapping[str, InstanceType], strange: Mapping[str, InstanceType]
) -> str:
    """Why a row is unusable, empty if it is usable."""
    if row.provider != gathered.provider:
        return f"it says that it is of provider {row.provider!r}"
    if row.price_kind not in price_kinds():
        return f"price kind {row.price_kind!r} is unknown"
    if row.instance_type in strange:
        return f"its accelerator {strange[row.instance_type].accelerator!r} is unknown"
    return "" if row.instance_type in machines else "nothing is known of its machine"


def _one_per_key(read: Iterable[tuple[str, Offer]]) -> tuple[dict[Key, Offer], list[Aside]]:
    """Duplicate rows: merged if equal, all rejected if they differ, since it is unknown which is true."""
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
            listed_prices = " and ".join(f"{micros / 1e6:g}" for micros in prices)
            reason = f"came {len(rows)} times with different contents ({listed_prices} USD/h)"
            twice += [_set_aside(region, row, reason) for region, row in rows]
    return offers, twice
