"""The AWS price files as prices by place, each file read once, whoever asks for it first."""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from providers.aws.file_addresses import (
    OFFERS,
    SAVINGS_PLANS,
    candidates,
    file_index,
    known_regions,
    parent_of,
)
from providers.aws.file_lines import read_patiently
from providers.aws.file_products import documents_of_csv, documents_of_json
from providers.aws.once import Once
from providers.aws.price_rows import PriceRow, plain_attributes, region_of, rows_of_product
from providers.aws.savings_plan_files import PlanRates, rates_of_csv, rates_of_json
from providers.contract import Quarantined
from providers.said import shown_url
from providers.sources import Sources
from providers.web import NotThere


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What one file says, by region or Local Zone; doubts about a product in no known place stand under ""."""

    rows: Mapping[str, list[PriceRow]] = field(default_factory=dict)
    doubts: Mapping[str, list[Quarantined]] = field(default_factory=dict)


class PriceFiles:
    """The files below one address. All methods may be called by any number of threads."""

    def __init__(self, sources: Sources, *, instance_types: frozenset[str]) -> None:
        """`instance_types` are those whose savings plan rates are wanted: only prices say what accelerators a type has."""
        self._sources = sources
        self._instance_types = instance_types
        self._indexes: Once[str, Mapping[str, str]] = Once()
        self._priced: Once[str, Priced] = Once()
        self._rates: Once[str, PlanRates] = Once()

    def places(self) -> list[str]:
        """Every region that has a file, and every Local Zone that has one of its own.

        The prices of other Local Zones stand in the file of their region. Without an index these are the
        regions of gpuplan's own table. Raises `ProviderFailure` if the files cannot be reached.
        """
        index = self._index(OFFERS)
        return known_regions() if index is None else list(index)

    def priced(self, place: str) -> Priced:
        """What the file that holds the prices of a place says, of all places in it. Raises `ProviderFailure`."""
        indexed = (self._index(OFFERS) or {}).get(place, "")
        current = [f"{OFFERS}/{code}/index" for code in (place, parent_of(place)) if code]
        addresses = candidates(self._sources, indexed, *current) + candidates(self._sources, f"{OFFERS}/index")
        for url, is_csv in addresses:
            with suppress(NotThere):
                return self._priced.get(url, partial(_read, url, is_csv=is_csv))
        raise NotThere(f"{place}: no price file below {shown_url(self._sources.aws_price_files_url)} (HTTP 404)")

    def plan_rates(self, place: str) -> PlanRates:
        """The savings plan rates of the file that holds a place's. Raises `NotThere` if there is none, `ProviderFailure`."""
        index = self._index(SAVINGS_PLANS) or {}
        path = index.get(place) or index.get(parent_of(place)) or ""
        for url, is_csv in candidates(self._sources, path):
            with suppress(NotThere):
                return self._rates.get(url, partial(self._read_rates, url, is_csv=is_csv))
        raise NotThere(f"{place}: there is no savings plan file")

    def _read_rates(self, url: str, *, is_csv: bool) -> PlanRates:
        read = rates_of_csv if is_csv else rates_of_json
        return read_patiently(url, lambda answer: read(answer, self._instance_types))

    def _index(self, folder: str) -> Mapping[str, str] | None:
        """The index of a folder; None if it has none."""
        try:
            return self._indexes.get(folder, lambda: file_index(self._sources, folder))
        except NotThere:
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
