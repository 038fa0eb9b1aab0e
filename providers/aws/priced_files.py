"""Prices by place from the AWS price files, each file read once on first use.

Accelerated machines of one AmazonEC2 price file, CSV or JSON, as documents like those of GetProducts.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from gpuplan.providers.aws.file_addresses import (
    OFFERS,
    SAVINGS_PLANS,
    candidates,
    file_index,
    known_regions,
    parent_of,
)
from gpuplan.providers.aws.file_lines import Line, csv_lines, read_patiently
from gpuplan.providers.aws.price_rows import (
    PriceRow,
    is_accelerated,
    is_plain_machine,
    plain_attributes,
    plain_name,
    region_of,
    rows_of_product,
)
from gpuplan.providers.aws.savings_plan_files import PlanRates, rates_of_csv, rates_of_json
from gpuplan.providers.aws.single_flight import SingleFlight
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Quarantined
from gpuplan.providers.error_redaction import shown_url
from gpuplan.providers.feed_client import MissingResource

#: Text that every line of a plain machine contains, by column: filters lines before parsing.
NEEDLES = {"usagetype": "BoxUsage", "operatingsystem": "Linux", "tenancy": "Shared"}
TERM_TYPES = {"ondemand": "OnDemand", "reserved": "Reserved"}
#: Columns that describe a line's price rather than the product.
TERM_COLUMNS = {
    "leasecontractlength": "LeaseContractLength",
    "offeringclass": "OfferingClass",
    "purchaseoption": "PurchaseOption",
}
CHUNK_BYTES = 1 << 16
type Document = dict[str, Any]


def documents_of_csv(response: httpx.Response) -> list[Document]:
    """One document per accelerated machine, with prices collected from its lines in any order."""
    documents: dict[str, Document] = {}
    for number, line in enumerate(csv_lines(response, NEEDLES)):
        if is_plain_machine(line, line.get("productfamily", "")) and is_accelerated(line):
            _add(documents, line, number)
    return list(documents.values())


def _add(documents: dict[str, Document], line: Line, number: int) -> None:
    sku = line.get("sku", "")
    term_type = TERM_TYPES.get(plain_name(line.get("termtype", "")), line.get("termtype", "unknown"))
    about = {name: line[column] for column, name in TERM_COLUMNS.items() if column in line}
    code = line.get("offertermcode") or "/".join(about.values()) or term_type
    if sku not in documents:
        product = {"sku": sku, "productFamily": line.get("productfamily", ""), "attributes": line}
        documents[sku] = {"product": product, "terms": {}}
    term = (
        documents[sku]["terms"]
        .setdefault(term_type, {})
        .setdefault(f"{sku}.{code}", {"offerTermCode": code, "termAttributes": about, "priceDimensions": {}})
    )
    price = {line.get("currency", "USD"): line.get("priceperunit")}
    term["priceDimensions"][line.get("ratecode") or str(number)] = {
        "unit": line.get("unit", ""),
        "pricePerUnit": price,
    }


def documents_of_json(response: httpx.Response) -> list[Document]:
    """One document per accelerated machine, read as a stream: AWS writes the products before the terms."""
    import ijson  # type: ignore[import-untyped]

    joined = _Joined()
    gathered = {prefix: ijson.sendable_list() for prefix in ("products", "terms.OnDemand", "terms.Reserved")}
    readers = [(prefix, pairs, ijson.kvitems_coro(pairs, prefix)) for prefix, pairs in gathered.items()]
    try:
        for chunk in response.iter_bytes(CHUNK_BYTES):
            joined.next_chunk()
            for prefix, pairs, reader in readers:
                reader.send(chunk)
                joined.take(prefix, pairs)
        for prefix, pairs, reader in readers:
            reader.close()
            joined.take(prefix, pairs)
    except ijson.JSONError as error:
        raise httpx.RemoteProtocolError(f"the file is not whole JSON ({error})") from error
    return joined.whole()


class _Joined:
    """Joins products and their terms by SKU during reading; terms before their product wait for it."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self._early: list[tuple[str, str, Any]] = []
        self._products_come = self._products_came = False

    def next_chunk(self) -> None:
        """Start a chunk: its items follow all earlier ones; the order within a chunk is unknown."""
        self._products_came = self._products_come

    def take(self, prefix: str, pairs: list[tuple[str, Any]]) -> None:
        """Move the items read so far into their documents."""
        for sku, value in pairs:
            if prefix == "products":
                self._products_come = True
                if isinstance(value, Mapping) and _is_wanted(value):
                    self._documents[sku] = {"product": value, "terms": {}}
            elif sku in self._documents:
                self._documents[sku]["terms"][prefix.rpartition(".")[2]] = value
            elif not self._products_came:
                self._early.append((prefix, sku, value))
        pairs.clear()

    def whole(self) -> list[Document]:
        """The documents with all of their terms."""
        early, self._early = self._early, []
        for prefix, sku, value in early:
            self.take(prefix, [(sku, value)])
        return list(self._documents.values())


def _is_wanted(product: Mapping[str, Any]) -> bool:
    attributes = product.get("attributes")
    if not isinstance(attributes, Mapping):
        return False
    plain = plain_attributes(attributes)
    return is_plain_machine(plain, str(product.get("productFamily") or "")) and is_accelerated(plain)


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
