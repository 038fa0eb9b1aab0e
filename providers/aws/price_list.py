"""The Price List API: on-demand and reserved prices of every region, one query per instance type.

One query per type over all regions gives a hundred small answers; queries by region would be a thousand, at five calls a
second.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from gpuplan.providers.aws.api_calls import PRICING_REGION, CallFailed, Calls
from gpuplan.providers.aws.price_rows import (
    RESERVED_KINDS,
    WAVELENGTH_ZONE,
    PriceRow,
    plain_attributes,
    region_of,
    rows_of_product,
)
from gpuplan.providers.contract import Quarantined
from gpuplan.providers.error_redaction import redacted_text

SOURCE = "AWS Price List API"
KINDS = frozenset({"on_demand", *RESERVED_KINDS.values()})
#: With fewer filters, one type has several products (Windows, dedicated, reserved capacity, capacity blocks at no price).
#: The parser skips these too, for servers that support fewer filters.
PLAIN = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "licenseModel": "No License required",
}
AT_ONCE = 8
PAGE = 100
#: Failed types after which the rest is not requested: each has been tried five times already.
MOST_FAILURES = 5


@dataclass(slots=True, kw_only=True)
class Prices:
    """The prices of all regions. `whole` if every requested type was answered.

    `doubts` are by region; those about products in no known place are under "".
    """

    rows: set[PriceRow] = field(default_factory=set)
    doubts: defaultdict[str, set[Quarantined]] = field(default_factory=lambda: defaultdict(set))
    wavelength: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether every type has been answered."""
        return not self.failures

    def of(self, region: str) -> list[PriceRow]:
        """The rows of one region, in the order of type and kind."""
        rows = [row for row in self.rows if row.region == region]
        return sorted(rows, key=lambda row: (row.instance_type, row.price_kind, row.usd_micros_per_hour))


class PriceListReader:
    """Requests types as they become known, each once."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._lock = threading.Lock()
        self._answered: set[str] = set()
        self._failed: dict[str, str] = {}
        self._for_all = ""
        self._prices = Prices()

    def read(self, types: Iterable[str]) -> None:
        """Return when each type is answered or given up."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="aws-prices") as pool:
            for done in [pool.submit(self._read_one, name) for name in sorted(set(types))]:
                done.result()

    def prices(self) -> Prices:
        """Everything that was read, with one line for what was not."""
        with self._lock:
            if self._failed:
                names, reasons = sorted(self._failed), sorted(set(self._failed.values()))
                shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
                asked = len(names) + len(self._answered)
                unchanged_note = (
                    f"on-demand and reserved prices of {len(names)} of {asked} types ({shown}) stay as they were"
                )
                self._prices.failures = [f"{reasons[0]}; {unchanged_note}"]
            elif self._answered and not self._prices.rows:
                nothing = f"pricing get_products: no price of any of {len(self._answered)} types"
                self._prices.failures = [f"{nothing}; on-demand and reserved prices stay as they were"]
            return self._prices

    def _read_one(self, name: str) -> None:
        with self._lock:
            if name in self._answered:
                return
            if self._for_all or len(self._failed) >= MOST_FAILURES:
                self._failed[name] = self._for_all or next(iter(self._failed.values()))
                return
        try:
            documents = self._calls.every(
                "pricing",
                PRICING_REGION,
                "get_products",
                "PriceList",
                ServiceCode="AmazonEC2",
                FormatVersion="aws_v1",
                MaxResults=PAGE,
                Filters=[
                    {"Type": "TERM_MATCH", "Field": key, "Value": value}
                    for key, value in {"instanceType": name, **PLAIN}.items()
                ],
            )
        except CallFailed as failure:
            with self._lock:
                self._failed[name] = str(failure)
                self._for_all = self._for_all or (str(failure) if failure.is_for_all else "")
            return
        self._take(name, documents)

    def _take(self, name: str, documents: list[Any]) -> None:
        """Store the rows. An answer with other types too comes from a server without filters: it is the complete list."""
        try:
            decoded = [_decoded(document) for document in documents]
        except ValueError as error:
            with self._lock:
                self._failed[name] = f"pricing get_products: the answer is not understood ({redacted_text(error)})"
            return
        for document in decoded:
            rows, doubts = rows_of_product(document)
            attributes = _attributes(document)
            with self._lock:
                self._prices.rows.update(rows)
                self._prices.doubts[region_of(attributes)].update(doubts)
                self._answered.update(row.instance_type for row in rows)
                self._prices.wavelength.update(_wavelength(attributes))
        with self._lock:
            self._answered.add(name)


def _decoded(text: Any) -> Mapping[str, Any]:
    """Decode the list: each element is a JSON document as text. Raises `ValueError` for anything else."""
    document = json.loads(text) if isinstance(text, str) else text
    product = document.get("product") if isinstance(document, Mapping) else document
    attributes = product.get("attributes") if isinstance(product, Mapping) else product
    if not isinstance(document, Mapping) or not isinstance(attributes, Mapping):
        raise ValueError(f"a product is {type(attributes).__name__}, an object is expected")
    return document


def _attributes(document: Mapping[str, Any]) -> dict[str, str]:
    return plain_attributes(document["product"]["attributes"])


def _wavelength(attributes: Mapping[str, str]) -> set[str]:
    code = attributes.get("regioncode", "")
    return {code} if WAVELENGTH_ZONE.search(code) else set()
