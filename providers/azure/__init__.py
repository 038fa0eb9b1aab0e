"""Azure: the public price list, and a subscription's SKU list in addition to gpuplan's hardware table."""

import weakref
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock

import httpx

from gpuplan.catalog.model.regions import regions as known_regions
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.providers.azure.mapping_tables import region_name
from gpuplan.providers.azure.region_rows import rows_of
from gpuplan.providers.azure.retail import prices_of
from gpuplan.providers.azure.retail_pages import RetailPages
from gpuplan.providers.azure.skus import Skus
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider, Rows
from gpuplan.providers.feed_client import web_client

NO_SUBSCRIPTION = (
    "no subscription given (AZURE_SUBSCRIPTION_ID): hardware comes from gpuplan's own table, prices are live"
)


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """Azure through `sources`, every offer observed at `read_at`.

    Raises `UnusableInput` for an endpoint that is not a web address.
    """
    _check_address("GPUPLAN_AZURE_RETAIL_ENDPOINT", sources.azure_retail_endpoint)
    if sources.azure_arm_endpoint:
        _check_address("GPUPLAN_AZURE_ARM_ENDPOINT", sources.azure_arm_endpoint)
    return _Azure(sources, read_at)


class _Azure:
    name = "azure"
    #: The price list has no published limit; this low concurrency avoids throttling.
    parallel = 4

    def __init__(self, sources: Sources, read_at: datetime) -> None:
        self._sources, self._read_at = sources, read_at
        client = web_client()
        weakref.finalize(self, client.close)
        self._pages = RetailPages(client, sources.azure_retail_endpoint, paced=sources.paced)
        self._lock = Lock()
        self._regions: tuple[str, ...] = ()
        self._skus: Skus | None = None
        self._skus_failed = False
        self._failures: tuple[str, ...] = ()
        self._said: set[str] = set()

    def regions(self) -> Sequence[str]:
        with self._lock:
            if not self._regions:
                priced = self._pages.regions()
                if self._pages.broken_off:
                    self._failures += (f"{self._pages.broken_off}; regions that are new to Azure may be missing",)
                self._read_skus()
                known = {region for name, region in known_regions() if name == self.name}
                of_skus = self._skus.regions if self._skus else set()
                self._regions = tuple(sorted(known | priced | of_skus))
            return self._regions

    def fetch(self, region: str) -> Rows:
        place = region_name(region)
        if place not in self.regions():
            raise UnusableInput.at("region", message=f"azure has no region {region!r}; regions are named like eastus")
        prices = prices_of(self._pages.rows(place), region=place, read_at=self._read_at)
        rows = rows_of(prices, region=place, skus=self._skus, skus_failed=self._skus_failed, read_at=self._read_at)
        return self._with_what_concerns_all(rows)

    def _read_skus(self) -> None:
        if not self._sources.azure_subscription_id:
            return
        try:
            self._skus = self._listed_skus()
        except ProviderFailure as failure:
            self._skus_failed = True
            self._failures += (f"{failure}; hardware comes from gpuplan's own table, prices are live",)

    def _listed_skus(self) -> Skus:
        """The subscription's list. Raises `ProviderFailure`, also if the SDK is not installed."""
        try:
            from gpuplan.providers.azure.arm_client import read_skus
        except ModuleNotFoundError as error:
            raise ProviderFailure(f"the list of AZURE_SUBSCRIPTION_ID needs {needed_module(error)}") from error
        return read_skus(self._sources)

    def _with_what_concerns_all(self, rows: Rows) -> Rows:
        """The rows with account-wide notes, minus the notes that another region has reported already."""
        with self._lock:
            new = [line for line in dict.fromkeys((*rows.failures, *rows.notes)) if line not in self._said]
            self._said.update(new)
        return replace(
            rows,
            failures=tuple(line for line in rows.failures if line in new),
            notes=tuple(line for line in rows.notes if line in new),
            provider_failures=self._failures,
            provider_notes=() if self._sources.azure_subscription_id else (NO_SUBSCRIPTION,),
        )


def _check_address(name: str, url: str) -> None:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL("")
    if address.scheme not in ("http", "https") or not address.host:
        raise UnusableInput.at(name, message="is not an http or https address such as https://prices.azure.com")
