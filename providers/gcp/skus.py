"""SKUs of the Cloud Billing Catalog to unit prices: what one unit of a component costs an hour, exactly.

A SKU is priced where `serviceRegions` says, whatever place its description names. Of several SKUs for
the same component, region and kind the one that took effect last holds; if they took effect together and
differ, the dearer one is taken and the other is set aside by name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from providers.contract import Quarantined
from providers.gcp.tables import known_components
from providers.gcp.words import LOCAL_SSD, component, price_kind

NANOS = 10**9
#: A month of Google's prices per GiB-month.
HOURS_PER_MONTH = 730
GIB_PER_GB = Fraction(10**9, 2**30)
#: What a price per such a unit is multiplied by to be one per hour of a device, a core or a GiB.
PER_HOUR = {
    "h": Fraction(1),
    "GiBy.h": Fraction(1),
    "GBy.h": 1 / GIB_PER_GB,
    "GiBy.mo": Fraction(1, HOURS_PER_MONTH),
    "GBy.mo": 1 / GIB_PER_GB / HOURS_PER_MONTH,
}
#: Clocks differ: a price that takes effect within so many seconds stands in where no other is in force.
CLOCKS_DIFFER_SECONDS = 36 * 3600
#: Region of a SKU that is sold everywhere at one price.
EVERYWHERE = "global"
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")
#: Families of SKUs that are no part of a machine, most of the catalogue.
_OTHER_FAMILIES = frozenset(("Network", "License", "Utility"))


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """Nano-dollars per hour of one unit, in force since `since` (seconds of the epoch, 0 if unsaid)."""

    nanos_per_hour: Fraction
    since: float
    sku: str


@dataclass(frozen=True, slots=True)
class PricedSku:
    """One SKU as it is used: a component in some regions and a kind; without a price, `problem` says why."""

    name: str
    component: str
    kind: str
    regions: tuple[str, ...]
    price: UnitPrice | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AsideSku:
    """A SKU that was set aside: the component that it prices, the regions where it holds, and why."""

    component: str
    regions: tuple[str, ...]
    row: Quarantined


@dataclass(slots=True)
class Prices:
    """Unit prices by (component, region, kind), and the SKUs that were set aside, of whatever component.

    `unusable` says of a component why the SKU that is there for it has no price.
    """

    found: dict[tuple[str, str, str], UnitPrice] = field(default_factory=dict)
    quarantined: list[AsideSku] = field(default_factory=list)
    unusable: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def add(self, skus: Iterable[PricedSku]) -> None:
        """Keep what holds of `skus`."""
        for sku in skus:
            if sku.price is None:
                row = Quarantined(what=sku.name, reason=sku.problem)
                self.quarantined.append(AsideSku(sku.component, sku.regions, row))
                self.unusable.update({(sku.component, region, sku.kind): sku.problem for region in sku.regions})
                continue
            for region in sku.regions:
                self._keep((sku.component, region, sku.kind), sku.price, sku.name)

    def find(self, spellings: Sequence[str], region: str, kind: str) -> Fraction | None:
        """Nano-dollars per unit-hour of the first spelling that is priced there."""
        for spelling in spellings:
            for place in (region, EVERYWHERE):
                price = self.found.get((spelling, place, kind))
                if price is not None:
                    return price.nanos_per_hour
        return None

    def why_unusable(self, spellings: Sequence[str], region: str, kind: str) -> str | None:
        """Why the SKU that is there gives no price, None if there is none."""
        keys = [(spelling, place, kind) for spelling in spellings for place in (region, EVERYWHERE)]
        return next((self.unusable[key] for key in keys if key in self.unusable), None)

    def regions_of(self, spellings: Sequence[str]) -> set[str]:
        """Where any of the spellings is priced in any kind."""
        return {region for name, region, _ in self.found if name in spellings and region != EVERYWHERE}

    def _keep(self, key: tuple[str, str, str], price: UnitPrice, name: str) -> None:
        held = self.found.setdefault(key, price)
        if held is price or price.since < held.since:
            return
        differs = price.nanos_per_hour != held.nanos_per_hour
        if price.since == held.since and differs:
            dearer, other = sorted((price, held), key=lambda each: each.nanos_per_hour, reverse=True)
            self.found[key] = dearer
            reason = f"SKU {dearer.sku} names another price for the same component and place; the dearer one is used"
            row = Quarantined(what=f"{name} in {key[1]} ({other.sku})", reason=reason)
            self.quarantined.append(AsideSku(key[0], (key[1],), row))
        elif differs or price.since > held.since:
            self.found[key] = price


def read_skus(page: Any, read_at: datetime) -> list[PricedSku]:
    """The SKUs of one `ListSkusResponse` that price a part of some machine at `read_at`.

    SKUs of other things (networks, images, licences, dedicated hosts) are not in it.
    """
    made = (_read(sku, read_at.timestamp()) for sku in type(page).pb(page).skus)
    return [sku for sku in made if sku is not None]


def _read(sku: Any, now: float) -> PricedSku | None:
    category = sku.category
    if category.resource_family in _OTHER_FAMILIES:
        return None
    description = sku.description
    kind = price_kind(description, category.usage_type)
    if kind is None:
        return None
    name = component(description)
    if not _matters(name, category):
        return None
    regions = _regions(sku)
    price, problem = _price(sku, name, now)
    if price is not None and not regions:
        price, problem = None, "names no region where it holds"
    if price is None and name not in known_components():
        return None
    what = f"{description} ({sku.sku_id})"
    return PricedSku(name=what, component=name, kind=kind, regions=regions, price=price, problem=problem)


def _matters(name: str, category: Any) -> bool:
    if category.resource_family == "Storage":
        return name == LOCAL_SSD
    words = name.split()
    return (
        category.resource_group in ("GPU", "TPU")
        or "core" in words
        or "ram" in words
        or "tpu" in words
        or "slice" in words
        or name in known_components()
    )


def _regions(sku: Any) -> tuple[str, ...]:
    """Regions by name; a multi-region is spelt out by the taxonomy."""
    named = tuple(region for region in sku.service_regions if _REGION.fullmatch(region))
    if named:
        return named
    spelt_out = tuple(region for region in sku.geo_taxonomy.regions if _REGION.fullmatch(region))
    if spelt_out:
        return spelt_out
    return (EVERYWHERE,) if EVERYWHERE in sku.service_regions or not sku.service_regions else ()


def _price(sku: Any, name: str, now: float) -> tuple[UnitPrice | None, str]:
    """The price in force, or None and why there is none."""
    infos = sorted(sku.pricing_info, key=_since)
    if not infos:
        return None, "holds no price"
    in_force = [info for info in infos if _since(info) <= now]
    if not in_force and _since(infos[0]) <= now + CLOCKS_DIFFER_SECONDS:
        in_force = infos[:1]
    if not in_force:
        return None, f"holds from {datetime.fromtimestamp(_since(infos[0]), UTC):%Y-%m-%d} on, not yet"
    expression = in_force[-1].pricing_expression
    factor = PER_HOUR.get(expression.usage_unit)
    if factor is None or _is_by_size(name) != ("By" in expression.usage_unit):
        return None, f"is priced per {expression.usage_unit or 'unnamed unit'!r}, which is no unit of {name}"
    nanos, currency = _paid_rate(expression)
    if currency not in ("USD", ""):
        return None, f"is priced in {currency}, not USD"
    if nanos <= 0:
        return None, "a price of zero means unknown"
    return UnitPrice(nanos * factor, _since(in_force[-1]), sku.sku_id), ""


def _is_by_size(name: str) -> bool:
    return name == LOCAL_SSD or "ram" in name.split()


def _since(info: Any) -> float:
    return float(info.effective_time.seconds) if info.HasField("effective_time") else 0.0


def _paid_rate(expression: Any) -> tuple[int, str]:
    """Nano-dollars of the first tier that costs something: a free allowance comes before it."""
    rate, currency = 0, ""
    for tier in sorted(expression.tiered_rates, key=lambda each: each.start_usage_amount):
        rate = tier.unit_price.units * NANOS + tier.unit_price.nanos
        currency = tier.unit_price.currency_code
        if rate > 0:
            break
    return rate, currency
