"""Join the prices and sizes of one region into contract rows: pure."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR
from gpuplan.catalog.model.offer import Implausible, InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.regions import regions
from gpuplan.providers.azure.hardware import NoTraining, Unknown, differs, hardware_of
from gpuplan.providers.azure.mapping_tables import folded, is_sovereign
from gpuplan.providers.azure.retail import KINDS, Price, Prices
from gpuplan.providers.azure.skus import Sku, Skus
from gpuplan.providers.contract import Quarantined, Rows

SOURCE = "https://prices.azure.com/api/retail/prices"


@dataclass(slots=True, kw_only=True)
class _Joined:
    machines: dict[str, InstanceType] = field(default_factory=dict)
    offers: list[Offer] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    undescribed: bool = False
    closed: Counter[str] = field(default_factory=Counter)
    no_spot: set[str] = field(default_factory=set)


def rows_of(prices: Prices, *, region: str, skus: Skus | None, skus_failed: bool, read_at: datetime) -> Rows:
    """The rows of one region; `skus` is None without a subscription, or if it did not answer.

    If it did not answer, sizes that only it could describe are quarantined and no kind counts as whole, so that rows of
    earlier refreshes stay.
    """
    joined = _Joined(quarantined=list(prices.quarantined), notes=list(prices.notes))
    by_size: dict[str, list[Price]] = {}
    for price in prices.prices:
        by_size.setdefault(folded(price.size), []).append(price)
    sovereign = is_sovereign(region) and ("azure", region) not in regions()
    for _, same in sorted(by_size.items()):
        _join(same, joined, region=region, skus=skus, read_at=read_at, offered=not sovereign)
    _tell(joined, region, sovereign=sovereign)
    return Rows(
        instance_types=tuple(joined.machines[name] for name in sorted(joined.machines)),
        offers=tuple(sorted(joined.offers, key=lambda offer: offer.key)),
        quarantined=tuple(joined.quarantined),
        whole_kinds=frozenset() if skus_failed and joined.undescribed else KINDS,
        notes=tuple(joined.notes),
    )


def _join(
    same: list[Price], joined: _Joined, *, region: str, skus: Skus | None, read_at: datetime, offered: bool
) -> None:
    """Add the machine of one size and its prices, or the reason for its absence."""
    size = same[0].size
    sku = skus.at(region, size) if skus else None
    anywhere = sku or (skus.anywhere(size) if skus else None)
    machine = hardware_of(size, anywhere, read_on=read_at.date())
    if isinstance(machine, NoTraining):
        return
    if isinstance(machine, Unknown):
        joined.undescribed = True
        joined.quarantined.append(Quarantined(what=f"{region}/{size} ({len(same)} prices)", reason=f"{machine.reason}"))
        joined.notes.append(f"{size}: {machine.reason}; its prices are left out")
        return
    if anywhere is not None and (difference := differs(machine, anywhere)):
        joined.notes.append(difference)
    for price in same:
        _offer(price, machine, joined, region=region, sku=sku, read_at=read_at, offered=offered)


def _offer(
    price: Price,
    machine: InstanceType,
    joined: _Joined,
    *,
    region: str,
    sku: Sku | None,
    read_at: datetime,
    offered: bool,
) -> None:
    interruptible = price_kinds()[price.kind].interruptible
    if interruptible and sku is not None and not sku.spot:
        joined.no_spot.add(machine.name)
        return
    try:
        offer = Offer(
            provider="azure",
            region=region,
            instance_type=machine.name,
            price_kind=price.kind,
            usd_micros_per_hour=price.usd_micros_per_hour,
            observed_at=read_at,
            interruptions_per_hour=DEFAULT_INTERRUPTIONS_PER_HOUR if interruptible else None,
            modelled=("interruption_rate",) if interruptible else (),
            available=offered and not (sku and sku.closed),
            source=SOURCE,
        )
    except Implausible as problem:
        joined.quarantined.append(Quarantined(what=f"{region}/{machine.name}/{price.kind}", reason=str(problem)))
        return
    joined.machines[machine.name] = machine
    joined.offers.append(offer)
    if sku and sku.closed:
        joined.closed[sku.closed] += 1


def _tell(joined: _Joined, region: str, *, sovereign: bool) -> None:
    """Notes with counts of missing rows that a reader might expect."""
    for reason, count in sorted(joined.closed.items()):
        joined.notes.append(f"{region}: {count} prices of sizes that this subscription may not use there ({reason})")
    if joined.no_spot:
        names = ", ".join(sorted(joined.no_spot)[:3])
        joined.notes.append(
            f"{region}: Spot prices of {len(joined.no_spot)} sizes that have no Spot left out ({names})"
        )
    if sovereign and joined.offers:
        joined.notes.append(f"{region}: a region of a cloud of its own; its offers stand as not available")
    elif joined.offers and ("azure", region) not in regions():
        joined.notes.append(f"{region}: a new region, whose location gpuplan does not know yet")
