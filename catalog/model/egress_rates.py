"""The cost of moving data out of a region: free, the inter-region rate, or internet egress in tiers.

Clouds charge only the origin. Tiers are monthly and assumed unused at the start. A GB is 10^9 bytes; tier bounds that GCP
states in TiB are converted.
"""

import math
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.provider_names import NEOCLOUD, is_own_rates, provider_names
from gpuplan.catalog.model.regions import CHINA, GEOGRAPHIES, is_place_unknown, nearest_with, regions

WORLDWIDE = "internet:worldwide"
INTER_REGION = "inter_region"


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRate:
    """Tiers of (upper bound in GB, USD per GB) in order; `assumptions` are sentences for the user."""

    tiers: tuple[tuple[float, float], ...]
    source: str = ""
    as_of: str = ""
    assumptions: tuple[str, ...] = ()

    def egress_usd(self, gb: float) -> float:
        """Dollars for moving `gb` once. Raises `ValueError` if `gb` is negative or not finite."""
        if not 0 <= gb < math.inf:
            raise ValueError(f"{gb} GB is not an amount of data")
        usd, start = 0.0, 0.0
        for end, usd_per_gb in self.tiers:
            usd += max(0.0, min(gb, end) - start) * usd_per_gb
            start = end
        return usd


FREE = EgressRate(tiers=((math.inf, 0.0),))


#: Enough for every pair of regions; bounds the cache when callers pass arbitrary names.
@lru_cache(maxsize=65_536)
def egress_tiers(
    origin_provider: str, origin_region: str, destination_provider: str, destination_region: str
) -> EgressRate:
    """The rate for data at the origin that is needed at the destination.

    Free within a known region and from an origin without charges (owned machines, or data available everywhere); the inter-region
    rate within a provider; otherwise the origin's internet egress. A list of own rates states none: the dearest rate of a
    neocloud is taken.
    """
    same_place = (origin_provider, origin_region) == (destination_provider, destination_region)
    if same_place and not is_place_unknown(origin_region):
        return FREE
    if origin_provider not in _providers():
        return _dearest_neocloud(origin_provider) if is_own_rates(origin_provider) else FREE
    if origin_provider == destination_provider:
        return _inter_region(origin_provider)
    if is_place_unknown(destination_region):
        return _to_an_unknown_place(origin_provider, origin_region, destination_provider)
    return _internet(origin_provider, origin_region, _destination(destination_provider, destination_region))


@cache
def _dearest_neocloud(provider: str) -> EgressRate:
    rates = {
        key[0]: rate
        for key, rate in _rates().items()
        if key[2] == WORLDWIDE and provider_names()[key[0]].kind == NEOCLOUD and not rate.assumptions
    }
    dearest = max(rates, key=lambda name: rates[name].tiers[0][1])
    note = f"no price of egress from {provider} is known: that of {dearest} is taken, the dearest of a neocloud"
    return replace(rates[dearest], assumptions=(note,))


@cache
def _inter_region(provider: str) -> EgressRate:
    """One published rate applies to all pairs of regions of a provider."""
    home, rate = next((key[1], rate) for key, rate in _rates().items() if (key[0], key[2]) == (provider, INTER_REGION))
    usd = rate.tiers[0][1]
    basis = "its rate of internet egress" if is_place_unknown(home) else f"the rate of {home}"
    everywhere = f"{usd:.2f} USD per GB everywhere, {basis}: a simplification"
    assumption = f"data between regions of {provider} is taken at {everywhere}"
    return replace(rate, assumptions=(*rate.assumptions, assumption))


@lru_cache(maxsize=4096)
def _internet(provider: str, region: str, destination: str) -> EgressRate:
    nearest = _nearest_with_a_rate(provider, region)
    rate = _rates().get((provider, nearest, destination)) or _rates()[provider, nearest, WORLDWIDE]
    notes = list(rate.assumptions)
    if len(rate.tiers) > 1:
        notes.append("the month's cheaper tiers of internet egress are taken as unused by other traffic")
    if nearest != region:
        notes.append(f"internet egress from {provider}:{region} is taken at the price of {nearest}")
    return replace(rate, assumptions=tuple(notes))


def _to_an_unknown_place(provider: str, region: str, destination_provider: str) -> EgressRate:
    """The origin's dearest internet rate outside mainland China, where no provider without stated places sells."""
    zones = {f"internet:{name}" for name in GEOGRAPHIES} - {f"internet:{CHINA}"}
    rates = [_internet(provider, region, zone) for zone in sorted(zones)]
    dearest = max(rates, key=lambda rate: rate.tiers[0][1])
    note = f"the place of {destination_provider} is unknown: data from {provider} is taken at its dearest internet rate"
    return replace(dearest, assumptions=(*dearest.assumptions, note))


@lru_cache(maxsize=4096)
def _nearest_with_a_rate(provider: str, region: str) -> str:
    """The provider's nearest region with a published rate; a fixed region if the location is unknown."""
    available = frozenset(name for owner, name, _ in _rates() if owner == provider)
    return nearest_with(provider, region, available) or min(available)


def _destination(provider: str, region: str) -> str:
    """The internet destination zone of a region; worldwide if the region is unknown."""
    place = regions().get((provider, region))
    return f"internet:{place.geography}" if place else WORLDWIDE


@cache
def _providers() -> frozenset[str]:
    return frozenset(provider for provider, _, _ in _rates())


@cache
def _rates() -> dict[tuple[str, str, str], EgressRate]:
    """Rates by (provider, region, destination)."""
    tiers: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in data_table("egress.csv"):
        tiers.setdefault((row["provider"], row["region"], row["destination"]), []).append(row)
    return {key: _rate(rows) for key, rows in tiers.items()}


def _rate(rows: list[dict[str, str]]) -> EgressRate:
    steps = sorted((float(row["up_to_gb"] or math.inf), float(row["usd_per_gb"])) for row in rows)
    return EgressRate(
        tiers=tuple(steps),
        source=rows[0]["source"],
        as_of=min(row["as_of"] for row in rows),
        assumptions=tuple(dict.fromkeys(row["note"] for row in rows if row["note"])),
    )
