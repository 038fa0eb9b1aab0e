"""The rate at which spot nodes are taken away, put on every interruptible offer of the build."""

from collections.abc import Iterable
from dataclasses import replace

from catalog.build.fact_tables import Row
from catalog.interruptions import DEFAULT_INTERRUPTIONS_PER_HOUR, interruptions_per_hour
from catalog.offer import Offer
from catalog.price_kinds import price_kinds


def with_interruptions(offers: Iterable[Offer], bands: Iterable[Row]) -> list[Offer]:
    """The offers with a rate on every interruptible one: by its AWS band, else the traces' and marked as modelled."""
    rates = {
        (row["region"], row["instance_type"]): interruptions_per_hour(row["interruption_frequency"]) for row in bands
    }
    kinds = price_kinds()
    return [_with_rate(offer, rates) if kinds[offer.price_kind].interruptible else offer for offer in offers]


def _with_rate(offer: Offer, rates: dict[tuple[str, str], float]) -> Offer:
    """Only AWS names regions and types as the band table does, so the pair alone is the key."""
    rate = rates.get((offer.region, offer.instance_type))
    if rate is not None:
        return replace(offer, interruptions_per_hour=rate)
    return replace(
        offer,
        interruptions_per_hour=DEFAULT_INTERRUPTIONS_PER_HOUR,
        modelled=(*offer.modelled, "interruption_rate"),
    )
