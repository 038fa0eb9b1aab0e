"""Set the interruption rate of every interruptible offer of the build."""

from collections.abc import Iterable
from dataclasses import replace

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR, interruptions_per_hour
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from tools.catalogue_build.fact_tables import Row


def with_interruptions(offers: Iterable[Offer], bands: Iterable[Row]) -> list[Offer]:
    """The offers with a rate on every interruptible one: from its AWS band, else from the traces and marked as modelled."""
    rates = {(row["region"], row["instance_type"]): interruptions_per_hour(row["interruption_band"]) for row in bands}
    kinds = price_kinds()
    return [_with_rate(offer, rates) if kinds[offer.price_kind].interruptible else offer for offer in offers]


def _with_rate(offer: Offer, rates: dict[tuple[str, str], float]) -> Offer:
    """Only AWS uses the region and type names of the band table, so the pair is a sufficient key."""
    rate = rates.get((offer.region, offer.instance_type))
    if rate is not None:
        return replace(offer, interruptions_per_hour=rate)
    return replace(
        offer,
        interruptions_per_hour=DEFAULT_INTERRUPTIONS_PER_HOUR,
        modelled=(*offer.modelled, "interruption_rate"),
    )
