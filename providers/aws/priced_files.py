"""Prices by place from the AWS price files, each file read once on first use."""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from gpuplan.providers.aws.file_addresses import (
    OFFERS,
    SAVINGS_PLANS,
    candidates,
    file_index,
    known_regions,
    parent_of,
)
from gpuplan.providers.aws.file_lines import read_patiently
from gpuplan.providers.aws.file_products import documents_of_csv, documents_of_json
from gpuplan.providers.aws.price_rows import PriceRow, plain_attributes, region_of, rows_of_product
from gpuplan.providers.aws.savings_plan_files import PlanRates, rates_of_csv, rates_of_json
from gpuplan.providers.aws.single_flight import SingleFlight
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Quarantined
from gpuplan.providers.error_redaction import shown_url
from gpuplan.providers.feed_client import MissingResource


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """The contents of one file, by region or Local Zone; doubts about a product in no known place are under ""."""

    rows: Mapping[str, list[PriceRow]] = field(default_factory=dict)
    doubts: Mapping[str, list[Quarantined]] = field(default_factory=dict)


class PriceFiles:
    """The files below one address; thread-safe."""

    def __init__(self, sources: Sources, *, instance_types: frozenset[str]) -> None:
        """`instance_types` selects the savings plan rates: only price files state a type's accelerators."""
        self._sources = sources
        self._instance_types = instance_types
        self._indexes: SingleFlight[str, Mapping[str, str]] = SingleFlight()
        self._priced: SingleFlight[str, Priced] = SingleFlight()
        self._rates: SingleFlight[str, PlanRates] = SingleFlight()

    def places(self) -> list[str]:
        """Every region that has a file, and every Local Zone that has its own.

        The prices of other Local Zones are in the file of their region. Without an index these are the regions of gpuplan's
        table. Raises `ProviderFailure` if the files cannot be reached.
        """
        index = self._index(OFFERS)
        return known_regions() if index is None else list(index)

    def priced(self, place: str) -> Priced:
        """The contents, for all its places, of the file with the prices of this place. Raises `ProviderFailure`."""
        indexed = (self._index(OFFERS) or {}).get(place, "")
        current = [f"{OFFERS}/{code}/index" for code in (place, parent_of(place)) if code]
        addresses = candidates(self._sources, indexed, *current) + candidates(self._sources, f"{OFFERS}/index")
        for url, is_csv in addresses:
            with suppress(MissingResource):
                return self._priced.get(url, partial(_read, url, is_csv=is_csv))
        raise MissingResource(f"{place}: no price file below {shown_url(self._sources.aws_price_files_url)} (HTTP 404)")

    def plan_rates(self, place: str) -> PlanRates:
        """The savings plan rates from the file of a place. Raises `MissingResource` if there is none, `ProviderFailure`."""
        index = self._index(SAVINGS_PLANS) or {}
        path = index.get(place) or index.get(parent_of(place)) or ""
        for url, is_csv in candidates(self._sources, path):
            with suppress(MissingResource):
                return self._rates.get(url, partial(self._read_rates, url, is_csv=is_csv))
        raise MissingResource(f"{place}: there is no savings plan file")

    def _read_rates(self, url: str, *, is_csv: bool) -> PlanRates:
        read = rates_of_csv if is_csv else rates_of_json
        return read_patiently(url, lambda answer: read(answer, self._instance_types))

    def _index(self, folder: str) -> Mapping[str, str] | None:
        """The index of a folder; None if it has none."""
        try:
            return self._indexes.get(folder, lambda: file_index(self._sources, folder))
        except MissingResource:
            return None


def _read(url: str, *, is_csv: bool) -> Priced:
    """The prices of one file, read as a stream."""
    rows: dict[str, list[PriceRow]] = defaultdict(list)
    doubts: dict[str, list[Quarantined]] = defaultdict(list)
    for document in read_patiently(url, documents_of_csv if is_csv else documents_of_json):
        place = region_of(plain_attributes(document["product"]["attributes"]))
        good, doubtful = rows_of_product(document)
        rows[place] += good
        doubts[place] += doubtful
    return Priced(rows=dict(rows), doubts=dict(doubts))
