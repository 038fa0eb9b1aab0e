"""Convert SKUs of the Cloud Billing Catalog to exact unit prices per hour of a component.

A SKU applies in its `serviceRegions`, even if its description names another place. Of several SKUs for the same component, region
and kind, the one that took effect last counts. If they took effect together and differ, the dearer one counts and the other
is quarantined.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from math import floor

from gpuplan.providers.contract import Quarantined
from gpuplan.providers.gcp.mapping_tables import known_components
from gpuplan.providers.gcp.sku_descriptions import (
    LOCAL_SSD,
    Category,
    PricingExpression,
    PricingInfo,
    Sku,
    SkuPage,
    component,
    price_kind,
)

NANOS = 10**9
#: Hours of a month in Google's prices per GiB-month.
HOURS_PER_MONTH = 730
GIB_PER_GB = Fraction(10**9, 2**30)
#: Factors from a price per unit to one per hour of a device, a core or a GiB.
PER_HOUR = {
    "h": Fraction(1),
    "GiBy.h": Fraction(1),
    "GBy.h": 1 / GIB_PER_GB,
    "GiBy.mo": Fraction(1, HOURS_PER_MONTH),
    "GBy.mo": 1 / GIB_PER_GB / HOURS_PER_MONTH,
}
#: Clock tolerance: a price that takes effect within this many seconds is used if no other is in force.
CLOCKS_DIFFER_SECONDS = 36 * 3600
#: Region of a SKU that is sold everywhere at one price.
EVERYWHERE = "global"
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")
#: Families of SKUs that are not part of a machine, most of the catalogue.
_OTHER_FAMILIES = frozenset(("Network", "License", "Utility"))


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """Nano-dollars per hour of one unit, in force since `since` (seconds of the epoch, 0 if not stated)."""

    nanos_per_hour: Fraction
    since: float
    sku: str


@dataclass(frozen=True, slots=True)
class PricedSku:
    """One SKU as used: a component in some regions and a kind; `problem` says why it has no price."""

    name: str
    component: str
    kind: str
    regions: tuple[str, ...]
    price: UnitPrice | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AsideSku:
    """A quarantined SKU: its component, its regions, and the reason."""

    component: str
    regions: tuple[str, ...]
    row: Quarantined


@dataclass(slots=True)
class Prices:
    """Unit prices by (component, region, kind), and quarantined SKUs of any component.

    `unusable` gives per component the reason why its SKU has no price.
    """

    unit_prices: dict[tuple[str, str, str], UnitPrice] = field(default_factory=dict)
    quarantined: list[AsideSku] = field(default_factory=list)
    unusable: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def add(self, skus: Iterable[PricedSku]) -> None:
        """Add the usable ones of `skus`."""
        for sku in skus:
            if sku.price is None:
                row = Quarantined(what=sku.name, reason=sku.problem)
                self.quarantined.append(AsideSku(sku.component, sku.regions, row))
                self.unusable.update({(sku.component, region, sku.kind): sku.problem for region in sku.regions})
                continue
            for region in sku.regions:
                self._keep((sku.component, region, sku.kind), sku.price, sku.name)

    def find(self, spellings: Sequence[str], region: str, kind: str) -> Fraction | None:
        """Nano-dollars per unit-hour of the first spelling with a price in the region."""
        for spelling in spellings:
            for place in (region, EVERYWHERE):
                price = self.unit_prices.get((spelling, place, kind))
                if price is not None:
                    return price.nanos_per_hour
        return None

    def why_unusable(self, spellings: Sequence[str], region: str, kind: str) -> str | None:
        """Why the existing SKU gives no price, None if there is no SKU."""
        keys = [(spelling, place, kind) for spelling in spellings for place in (region, EVERYWHERE)]
        return next((self.unusable[key] for key in keys if key in self.unusable), None)

    def regions_of(self, spellings: Sequence[str]) -> set[str]:
        """Regions in which any of the spellings has a price of any kind."""
        return {region for name, region, _ in self.unit_prices if name in spellings and region != EVERYWHERE}

    def _keep(self, key: tuple[str, str, str], price: UnitPrice, name: str) -> None:
        earlier = self.unit_prices.setdefault(key, price)
        if earlier is price or price.since < earlier.since:
            return
        differs = price.nanos_per_hour != earlier.nanos_per_hour
        if price.since == earlier.since and differs:
            dearer, other = sorted(
                (price, earlier), key=lambda component_price: component_price.nanos_per_hour, reverse=True
            )
            self.unit_prices[key] = dearer
            reason = f"SKU {dearer.sku} names another price for the same component and place; the dearer one is used"
            row = Quarantined(what=f"{name} in {key[1]} ({other.sku})", reason=reason)
            self.quarantined.append(AsideSku(key[0], (key[1],), row))
        elif differs or price.since > earlier.since:
            self.unit_prices[key] = price


def read_skus(page: SkuPage, read_at: datetime) -> list[PricedSku]:
    """The SKUs of one page that price a part of some machine at `read_at`.

    Omits SKUs of other products (networks, images, licences, dedicated hosts).
    """
    made = (_read(sku, read_at.timestamp()) for sku in page.skus)
    return [sku for sku in made if sku is not None]


def _read(sku: Sku, now: float) -> PricedSku | None:
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


def _matters(name: str, category: Category) -> bool:
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


def _regions(sku: Sku) -> tuple[str, ...]:
    """Regions by name; the taxonomy expands a multi-region."""
    named = tuple(region for region in sku.service_regions if _REGION.fullmatch(region))
    if named:
        return named
    spelt_out = tuple(region for region in sku.geo_taxonomy.regions if _REGION.fullmatch(region))
    if spelt_out:
        return spelt_out
    return (EVERYWHERE,) if EVERYWHERE in sku.service_regions or not sku.service_regions else ()


def _price(sku: Sku, name: str, now: float) -> tuple[UnitPrice | None, str]:
    """The current price, or None with the reason."""
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


def _since(info: PricingInfo) -> float:
    return float(floor(info.effective_time.timestamp())) if info.effective_time else 0.0


def _paid_rate(expression: PricingExpression) -> tuple[int, str]:
    """Nano-dollars of the first tier above zero: a free tier comes before it."""
    rate, currency = 0, ""
    for tier in sorted(expression.tiered_rates, key=lambda tier: tier.start_usage_amount):
        rate = tier.unit_price.units * NANOS + tier.unit_price.nanos
        currency = tier.unit_price.currency_code
        if rate > 0:
            break
    return rate, currency
