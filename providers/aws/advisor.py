"""The public Spot Instance Advisor feed: interruption bands and savings of spot machines.

One JSON file for all regions; `spot_advisor` holds, per region, operating system and type, `s`, the saving over on-demand
in percent, and `r`, the index of a band in `ranges`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuplan.catalog.model.interruption_rates import BAND_MIDDLE, band_up_to, interruptions_per_hour
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.aws.single_flight import SingleFlight
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.feed_client import get_json, web_client

OPERATING_SYSTEM = "Linux"
WHAT = "spot advisor"
type Place = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """By (region, instance type): interruptions per node-hour, and the saving over on-demand in percent."""

    interruptions_per_hour: Mapping[Place, float]
    savings_pct: Mapping[Place, int]


class SpotAdvisor:
    """The feed, read once on first use; thread-safe."""

    def __init__(self, sources: Sources) -> None:
        self._url = sources.aws_spot_advisor_url
        self._read: SingleFlight[str, Advice] = SingleFlight()

    def interruption_rates(self) -> Mapping[Place, float]:
        """Expected interruptions per node-hour by (region, instance type). Raises `ProviderFailure` if the feed is broken."""
        return self._advice().interruptions_per_hour

    def savings(self) -> Mapping[Place, int]:
        """Percent below on-demand by (region, instance type). Raises `ProviderFailure` if the feed is broken."""
        return self._advice().savings_pct

    def _advice(self) -> Advice:
        return self._read.get(self._url, self._fetch)

    def _fetch(self) -> Advice:
        with web_client() as client:
            document, _ = get_json(client, self._url)
        return read_advice(document)


def read_advice(document: Any) -> Advice:
    """The feed's rows for Linux; a row with an unreadable band or saving lacks that figure.

    Raises `ProviderFailure` if the document has no ranges or no row at all.
    """
    feed = document if isinstance(document, Mapping) else {}
    rates = _rates(feed.get("ranges"))
    by_region = feed.get("spot_advisor")
    if not rates or not isinstance(by_region, Mapping):
        raise ProviderFailure(f"{WHAT}: the feed has no `ranges` or no `spot_advisor`; its format may have changed")
    interruptions: dict[Place, float] = {}
    savings: dict[Place, int] = {}
    for place, row in _rows(by_region):
        position, saving = _number(row.get("r")), _number(row.get("s"))
        if position in rates:
            interruptions[place] = rates[position]
        if saving is not None and saving <= 100:
            savings[place] = round(saving)
    if not interruptions and not savings:
        raise ProviderFailure(f"{WHAT}: the feed has no row for {OPERATING_SYSTEM}; its format may have changed")
    return Advice(interruptions_per_hour=interruptions, savings_pct=savings)


def _rates(ranges: Any) -> dict[float | None, float]:
    """Interruptions per node-hour by index: a band is identified by its upper limit, else by its label."""
    rates: dict[float | None, float] = {}
    for position, entry in enumerate(ranges if isinstance(ranges, list) else []):
        if not isinstance(entry, Mapping):
            continue
        largest, label = _number(entry.get("max")), "".join(str(entry.get("label", "")).split())
        band = band_up_to(largest) if largest is not None else label
        stated = _number(entry.get("index"))
        if band in BAND_MIDDLE:
            rates[position if stated is None else stated] = interruptions_per_hour(band)
    return rates


def _rows(by_region: Mapping[str, Any]) -> list[tuple[Place, Mapping[str, Any]]]:
    """Every (region, type) with its row; skips rows of another shape."""
    rates = []
    for region, by_system in by_region.items():
        by_type = by_system.get(OPERATING_SYSTEM) if isinstance(by_system, Mapping) else None
        for name, row in by_type.items() if isinstance(by_type, Mapping) else ():
            if isinstance(row, Mapping):
                rates.append(((region, name), row))
    return rates


def _number(value: Any) -> float | None:
    """A finite, non-negative number, also given as text; None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number < math.inf else None
