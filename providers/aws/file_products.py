"""Accelerated machines of one AmazonEC2 price file, CSV or JSON, as documents like those of GetProducts."""

from collections.abc import Mapping
from typing import Any

import httpx

from gpuplan.providers.aws.file_lines import Line, csv_lines
from gpuplan.providers.aws.price_rows import is_accelerated, is_plain_machine, plain_attributes, plain_name

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
