"""Negotiated prices: which discount applies to which offer, and the snapshot at those prices.

A discount states up to five properties of the offers it applies to; an omitted property matches every offer. If several
apply to one offer, the most specific one wins: first the one that names the machine more precisely (instance type before
family before accelerator before none), then the one that states more of provider, region and price kind. Two equally
specific discounts for the same offer contradict each other and are refused, because either contract could be the valid
one. Prices change before offers are compared, so a plan is proven over the negotiated prices.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerator_family
from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.model.offer import InstanceType, Offer, PriceEstimate
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, LazyOffers
from gpuplan.planner.model.settings import Discount

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

#: Least price after a discount: a price of zero would mean that it is unknown.
_LEAST_USD = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Discounted(LazyOffers):
    """The rows of a snapshot at negotiated prices, created on access."""

    rows: Sequence[Offer]
    discounts: tuple[Discount, ...]
    which: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def offer_at(self, index: int) -> Offer:
        number = int(self.which[index])
        return self.rows[index] if number < 0 else negotiated(self.rows[index], self.discounts[number])


def negotiated(offer: Offer, discount: Discount) -> Offer:
    """The offer at its negotiated price in whole micro-dollars; its source names the discount and the list price."""
    listed = f"list {usd_text(offer.usd_micros_per_hour)} USD per hour: {offer.source}"
    micros = round(max(_LEAST_USD, _price(discount, offer.usd_micros_per_hour / 1e6)) * 1e6)
    return replace(
        offer,
        usd_micros_per_hour=micros,
        source=f"{in_words(discount)}; {listed}",
        price_estimate=None if offer.price_estimate is None else _at_discount(offer.price_estimate, discount),
    )


def _at_discount(estimate: PriceEstimate, discount: Discount) -> PriceEstimate | None:
    """The band of a price less a percentage; a negotiated price in dollars is fixed and has none."""
    if discount.percent is None:
        return None
    prices = {
        name: round(max(_LEAST_USD, _price(discount, micros / 1e6)) * 1e6)
        for name in ("observed", "low", "high", "most")
        if (micros := getattr(estimate, f"{name}_usd_micros_per_hour")) is not None
    }
    return replace(estimate, **{f"{name}_usd_micros_per_hour": micros for name, micros in prices.items()})


def in_words(discount: Discount) -> str:
    """`12 % negotiated discount`, or `negotiated price`."""
    return f"{discount.percent:g} % negotiated discount" if discount.percent is not None else "negotiated price"


def _price(discount: Discount, usd_per_hour: float) -> float:
    if discount.usd_per_hour is not None:
        return discount.usd_per_hour
    return usd_per_hour * (1.0 - (discount.percent or 0.0) / 100.0)


@lru_cache(maxsize=4)
def discounted(columns: Columns, discounts: tuple[Discount, ...]) -> Columns:
    """The snapshot at negotiated prices; the same object without discounts.

    Raises `UnusableInput` for a discount on something that is not in the snapshot, and for two equally specific
    discounts for the same offer.
    """
    if not discounts:
        return columns
    faults = [fault for i, discount in enumerate(discounts) for fault in _unknown(i, discount, columns)]
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
    """The index of the discount that applies to each offer, -1 without any."""
    which = np.full(len(columns), -1, np.int64)
    best = np.full(len(columns), -1, np.int64)
    for number, discount in enumerate(discounts):
        rank = _rank(discount)
        applies = _applies_to(columns, discount)
        tied = applies & (best == rank)
        if tied.any() and len(open_ := np.flatnonzero(tied & ~_settled(columns, discounts, rank))):
            at = int(open_[0])
            raise UnusableInput(_tie(number, int(which[at]), columns.offer(at)))
        wins = applies & (rank > best)
        which[wins], best[wins] = number, rank
    return which


def _settled(columns: Columns, discounts: tuple[Discount, ...], rank: int) -> Flags:
    """Offers to which a discount of a higher rank than `rank` applies."""
    settled = np.zeros(len(columns), np.bool_)
    for discount in discounts:
        if _rank(discount) > rank:
            settled |= _applies_to(columns, discount)
    return settled


def _rank(discount: Discount) -> int:
    machine = 3 if discount.instance_type else 2 if discount.family else 1 if discount.accelerator else 0
    return 4 * machine + sum(bool(part) for part in (discount.provider, discount.region, discount.price_kind))


def _tie(number: int, other: int, offer: Offer) -> Fault:
    what = f"{offer.provider} {offer.region} {offer.instance_type} {offer.price_kind}"
    message = f"and discounts[{other}] both hold for {what} and are equally specific; state more in one of them"
    return Fault(("settings", "discounts", number), message)


def _applies_to(columns: Columns, discount: Discount) -> Flags:
    """The offers to which a discount applies."""
    devices = frozenset(accelerator_family(discount.accelerator) if discount.accelerator else ())
    by_type = np.array(
        [_matches_type(discount, devices, instance_type) for instance_type in columns.instance_types], np.bool_
    )
    by_region = np.array(
        [
            (not discount.provider or provider == discount.provider)
            and (not discount.region or fnmatchcase(region.lower(), discount.region.lower()))
            for provider, region in columns.regions
        ],
        np.bool_,
    )
    by_kind = np.array([not discount.price_kind or kind == discount.price_kind for kind in columns.kinds], np.bool_)
    applies: Flags = by_type[columns.type_index] & by_region[columns.region_index] & by_kind[columns.kind_index]
    return applies


def _matches_type(discount: Discount, devices: frozenset[str], instance_type: InstanceType) -> bool:
    if discount.instance_type and instance_type.name.lower() != discount.instance_type.lower():
        return False
    if discount.family and not is_of_family(instance_type.name, discount.family):
        return False
    return not devices or instance_type.accelerator in devices


def is_of_family(name: str, family: str) -> bool:
    """Whether an instance type belongs to a family: p5.48xlarge to `p5`, a3-highgpu-8g to `a3-highgpu`, or by a glob."""
    name, family = name.lower(), family.lower()
    if any(char in family for char in "*?["):
        return fnmatchcase(name, family)
    rest = name.removeprefix(family)
    return name.startswith(family) and (not rest or not rest[0].isalnum())


def _unknown(number: int, discount: Discount, columns: Columns) -> list[Fault]:
    """Faults for the properties of a discount that match nothing in the snapshot."""
    types = [a for a in columns.instance_types if not discount.provider or a.provider == discount.provider]
    places = {region for provider, region in columns.regions if not discount.provider or provider == discount.provider}
    path, faults = ("settings", "discounts", number), []
    providers = {provider for provider, _ in columns.regions}
    if discount.provider and discount.provider not in providers:
        return [Fault((*path, "provider"), _nearest(discount.provider, providers))]
    names = {a.name for a in types}
    if discount.instance_type and discount.instance_type.lower() not in {name.lower() for name in names}:
        faults.append(Fault((*path, "instance_type"), _nearest(discount.instance_type, names)))
    if discount.family and not any(is_of_family(name, discount.family) for name in names):
        faults.append(Fault((*path, "family"), _nearest(discount.family, names)))
    if discount.region and not any(fnmatchcase(region.lower(), discount.region.lower()) for region in places):
        faults.append(Fault((*path, "region"), _nearest(discount.region, places)))
    return faults


def _nearest(value: str, known: set[str]) -> str:
    near = difflib.get_close_matches(value, sorted(known), n=3, cutoff=0.4) or sorted(known)[:3]
    return f"{shown(value)} is not in the snapshot; nearest: {', '.join(near)}"
