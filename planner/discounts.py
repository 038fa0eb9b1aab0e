"""Prices that the user has negotiated: which discount holds for which offer, and the snapshot at those prices.

A discount names what it holds for by up to five properties; what it leaves out it does not ask. Of several that hold
for one offer the most specific wins: first the one that names the machine more closely (instance type before family
before accelerator before none), then the one that states more of the rest (provider, region, price kind). Two that
are equally specific and hold for the same offer contradict each other and are refused: nobody knows which contract
counts. Prices are changed before anything is compared, so a plan is proven over the negotiated prices.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import accelerator_family
from catalog.columns import Columns
from catalog.errors import Fault, UnusableInput
from catalog.money import usd_text
from catalog.offer import InstanceType, Offer
from catalog.quantities import shown
from planner.settings import Discount

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

#: No discount leaves less than this: a price of zero would mean that it is unknown.
_LEAST_USD = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Discounted(Sequence[Offer]):
    """The rows of a snapshot with negotiated prices in place of those of the list; made when they are asked for."""

    rows: Sequence[Offer]
    discounts: tuple[Discount, ...]
    which: Ints

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Offer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Offer]: ...

    def __getitem__(self, index: int | slice) -> Offer | Sequence[Offer]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = int(self.which[index])
        return self.rows[index] if number < 0 else negotiated(self.rows[index], self.discounts[number])


def negotiated(offer: Offer, discount: Discount) -> Offer:
    """The offer at its negotiated price, whole micro-dollars; its source says so and names the list price."""
    listed = f"list {usd_text(offer.usd_micros_per_hour)} USD per hour: {offer.source}"
    micros = round(max(_LEAST_USD, _price(discount, offer.usd_micros_per_hour / 1e6)) * 1e6)
    return replace(offer, usd_micros_per_hour=micros, source=f"{in_words(discount)}; {listed}")


def in_words(discount: Discount) -> str:
    """`12 % negotiated discount`, or `negotiated price`."""
    return f"{discount.percent:g} % negotiated discount" if discount.percent is not None else "negotiated price"


def _price(discount: Discount, usd_per_hour: float) -> float:
    if discount.usd_per_hour is not None:
        return discount.usd_per_hour
    return usd_per_hour * (1.0 - (discount.percent or 0.0) / 100.0)


@lru_cache(maxsize=4)
def discounted(columns: Columns, discounts: tuple[Discount, ...]) -> Columns:
    """The snapshot at negotiated prices; the same object where there are none.

    Raises `UnusableInput` for a discount that names what the snapshot does not know, and for two equally specific
    ones that hold for the same offer.
    """
    if not discounts:
        return columns
    faults = [fault for i, each in enumerate(discounts) for fault in _unknown(i, each, columns)]
    if faults:
        raise UnusableInput(*faults)
    which = _winners(columns, discounts)
    usd = columns.usd_per_hour.copy()
    for number, discount in enumerate(discounts):
        mine = np.flatnonzero(which == number)
        raw = np.full(len(mine), discount.usd_per_hour) if discount.percent is None else usd[mine]
        share = 1.0 - (discount.percent or 0.0) / 100.0
        # Rounded as the rows are, so that arrays and rows agree to the micro-dollar.
        usd[mine] = np.rint(np.maximum(_LEAST_USD, raw * share) * 1e6) / 1e6
    return replace(columns, usd_per_hour=usd, offers=_Discounted(columns.offers, discounts, which))


def _winners(columns: Columns, discounts: tuple[Discount, ...]) -> Ints:
    """Per offer the number of the discount that holds, -1 where none does."""
    which = np.full(len(columns), -1, np.int64)
    best = np.full(len(columns), -1, np.int64)
    for number, discount in enumerate(discounts):
        rank = _rank(discount)
        holds = _holds(columns, discount)
        tied = holds & (best == rank)
        if tied.any() and len(open_ := np.flatnonzero(tied & ~_settled(columns, discounts, rank))):
            at = int(open_[0])
            raise UnusableInput(_tie(number, int(which[at]), columns.offer(at)))
        wins = holds & (rank > best)
        which[wins], best[wins] = number, rank
    return which


def _settled(columns: Columns, discounts: tuple[Discount, ...], rank: int) -> Flags:
    """Offers for which some discount of a higher rank holds, whatever those of `rank` say."""
    settled = np.zeros(len(columns), np.bool_)
    for discount in discounts:
        if _rank(discount) > rank:
            settled |= _holds(columns, discount)
    return settled


def _rank(discount: Discount) -> int:
    machine = 3 if discount.instance_type else 2 if discount.family else 1 if discount.accelerator else 0
    return 4 * machine + sum(bool(part) for part in (discount.provider, discount.region, discount.price_kind))


def _tie(number: int, other: int, offer: Offer) -> Fault:
    what = f"{offer.provider} {offer.region} {offer.instance_type} {offer.price_kind}"
    message = f"and discounts[{other}] both hold for {what} and are equally specific; state more in one of them"
    return Fault(("settings", "discounts", number), message)


def _holds(columns: Columns, discount: Discount) -> Flags:
    """Which offers a discount holds for."""
    devices = frozenset(accelerator_family(discount.accelerator) if discount.accelerator else ())
    by_type = np.array([_is_meant(discount, devices, each) for each in columns.instance_types], np.bool_)
    by_region = np.array(
        [
            (not discount.provider or provider == discount.provider)
            and (not discount.region or fnmatchcase(region.lower(), discount.region.lower()))
            for provider, region in columns.regions
        ],
        np.bool_,
    )
    by_kind = np.array([not discount.price_kind or kind == discount.price_kind for kind in columns.kinds], np.bool_)
    holds: Flags = by_type[columns.type_index] & by_region[columns.region_index] & by_kind[columns.kind_index]
    return holds


def _is_meant(discount: Discount, devices: frozenset[str], each: InstanceType) -> bool:
    if discount.instance_type and each.name.lower() != discount.instance_type.lower():
        return False
    if discount.family and not is_of_family(each.name, discount.family):
        return False
    return not devices or each.accelerator in devices


def is_of_family(name: str, family: str) -> bool:
    """Whether an instance type is of a family: `p5` of p5.48xlarge, `a3-highgpu` of a3-highgpu-8g, or by a glob."""
    name, family = name.lower(), family.lower()
    if any(char in family for char in "*?["):
        return fnmatchcase(name, family)
    rest = name.removeprefix(family)
    return name.startswith(family) and (not rest or not rest[0].isalnum())


def _unknown(number: int, each: Discount, columns: Columns) -> list[Fault]:
    """What a discount names that the snapshot does not know."""
    types = [a for a in columns.instance_types if not each.provider or a.provider == each.provider]
    places = {region for provider, region in columns.regions if not each.provider or provider == each.provider}
    path, faults = ("settings", "discounts", number), []
    providers = {provider for provider, _ in columns.regions}
    if each.provider and each.provider not in providers:
        return [Fault((*path, "provider"), _nearest(each.provider, providers))]
    names = {a.name for a in types}
    if each.instance_type and each.instance_type.lower() not in {name.lower() for name in names}:
        faults.append(Fault((*path, "instance_type"), _nearest(each.instance_type, names)))
    if each.family and not any(is_of_family(name, each.family) for name in names):
        faults.append(Fault((*path, "family"), _nearest(each.family, names)))
    if each.region and not any(fnmatchcase(region.lower(), each.region.lower()) for region in places):
        faults.append(Fault((*path, "region"), _nearest(each.region, places)))
    return faults


def _nearest(value: str, known: set[str]) -> str:
    near = difflib.get_close_matches(value, sorted(known), n=3, cutoff=0.4) or sorted(known)[:3]
    return f"{shown(value)} is not in the snapshot; nearest: {', '.join(near)}"
