"""Page through the Retail Prices API: one region per walk, with rate limiting.

Few regions exceed a page, and a walk of one page cannot lose rows to prices that change under `$skip`. A server without
filter support is asked once for everything, and all regions are taken from that answer.
"""

import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import httpx

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.azure.mapping_tables import is_accelerated, region_name
from gpuplan.providers.azure.retail import SERVICE, Row, is_machine
from gpuplan.providers.error_redaction import shown_url
from gpuplan.providers.feed_client import Refused, get_json
from gpuplan.providers.rate_limit import RateLimit

PATH = "/api/retail/prices"
#: The first version with savings plans; its filter values are case-sensitive.
API_VERSION = "2023-01-01-preview"
#: No limit is published; this is a conservative rate.
CALLS_PER_SECOND = 10
#: Ten times the whole list; a longer walk is a loop.
MOST_PAGES = 2_000
CALLS_LEFT = "x-ms-ratelimit-remaining-retailPrices-requests"
_MACHINES = f"serviceName eq '{SERVICE}'"
_ACCELERATED = f"{_MACHINES} and contains(armSkuName,'Standard_N')"
_PAY_AS_YOU_GO = f"{_ACCELERATED} and priceType eq 'Consumption'"


class Allowance:
    """Delays all callers while the server reports no remaining calls, up to a total wait per refresh."""

    seconds_without_calls = 15.0
    most_seconds = 120.0

    def __init__(
        self, *, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._sleep, self._now = sleep, now
        self._lock = Lock()
        self._until = now()
        self._granted = 0.0

    def heed(self, headers: httpx.Headers) -> None:
        """Record an answer's rate-limit headers."""
        if headers.get(CALLS_LEFT, "").strip() != "0":
            return
        asked = headers.get("retry-after", "")
        wanted = float(asked) if asked.isdecimal() else self.seconds_without_calls
        with self._lock:
            extra_seconds = max(0.0, self._now() + wanted - self._until)
            extra_seconds = min(extra_seconds, wanted, self.most_seconds - self._granted)
            self._granted += extra_seconds
            self._until = max(self._until, self._now()) + extra_seconds

    def wait(self) -> None:
        """Return when the next call is allowed."""
        with self._lock:
            seconds = self._until - self._now()
            if seconds > 0:
                self._sleep(seconds)


class RetailPages:
    """All rows of the list that may be prices of accelerated machines, by region; thread-safe."""

    def __init__(
        self, client: httpx.Client, endpoint: str, *, paced: bool = True, allowance: Allowance | None = None
    ) -> None:
        self._client = client
        self._base = httpx.URL(endpoint.rstrip("/").removesuffix(PATH))
        self._shown = shown_url(f"{self._base}{PATH}")
        self._pace = RateLimit(CALLS_PER_SECOND if paced else None)
        self._allowance = allowance or (Allowance() if paced else None)
        self._first = Lock()
        self._spelled: dict[str, set[str]] = {}
        self._everything: dict[str, list[Row]] | None = None
        self._filters_by_region = False
        self.broken_off = ""

    def regions(self) -> frozenset[str]:
        """Every region with a pay-as-you-go price for an accelerated machine.

        A list that breaks off gives the regions read so far and sets `broken_off`, because each region is read by a
        separate walk. Raises `ProviderFailure` if the list does not answer or has no region.
        """
        rows: list[Row] = []
        ignored = False
        try:
            for page in self._pages(_PAY_AS_YOU_GO):
                ignored = ignored or any(_is_not_consumption(row) for row in page)
                rows.extend(row for row in page if is_machine(row))
        except ProviderFailure as failure:
            if ignored or not (rows or isinstance(failure, Refused)):
                raise
            self.broken_off = str(failure) if rows else ""
        if not rows:
            rows = [row for page in self._pages(_MACHINES) for row in page if is_machine(row)]
            ignored = True
        if not rows:
            raise ProviderFailure(f"{self._shown}: the price list came back empty; earlier prices stay")
        for row in rows:
            self._spelled.setdefault(region_name(row.get("armRegionName")), set()).add(str(row.get("armRegionName")))
        if ignored:
            self._everything = _by_region(rows)
        return frozenset(self._spelled)

    def rows(self, region: str) -> list[Row]:
        """The rows of one region. Raises `ProviderFailure` if they are incomplete."""
        with self._first:
            if self._everything is None and not self._filters_by_region:
                rows = self._walk(region)
                if all(region_name(row.get("armRegionName")) == region for row in rows):
                    self._filters_by_region = bool(rows)
                    return rows
                self._everything = _by_region(rows)
        if self._everything is not None:
            return self._everything.get(region, [])
        return self._walk(region)

    def _walk(self, region: str) -> list[Row]:
        """The rows of one region, requested in every spelling that the list uses for it."""
        rows: list[Row] = []
        for spelled in sorted(self._spelled.get(region, {region})):
            for page in self._pages(f"{_ACCELERATED} and armRegionName eq '{spelled}'"):
                rows.extend(row for row in page if is_machine(row))
        if region in self._spelled and not rows:
            raise ProviderFailure(f"{region}: has prices in the list of all regions, but its own came back empty")
        return rows

    def _pages(self, filters: str) -> Iterator[list[Row]]:
        """The rows of each page until there is no next link, or an empty page."""
        query = {"api-version": API_VERSION, "currencyCode": "'USD'", "$filter": filters}
        url = self._base.copy_with(path=self._base.path.rstrip("/") + PATH, params=query)
        seen = {url}
        while len(seen) <= MOST_PAGES:
            self._pace.wait()
            if self._allowance is not None:
                self._allowance.wait()
            document, headers = get_json(self._client, str(url))
            if self._allowance is not None:
                self._allowance.heed(headers)
            items = document.get("Items") if isinstance(document, dict) else None
            if not isinstance(items, list):
                raise ProviderFailure(f"{self._shown}: answered without Items; check the endpoint")
            yield [item for item in items if isinstance(item, dict)]
            link = document.get("NextPageLink")
            if not link or not items:
                return
            url = self._at_endpoint(url, link)
            if url in seen:
                raise ProviderFailure(f"{self._shown}: its pages lead back to one another; the list is not whole")
            seen.add(url)
        raise ProviderFailure(f"{self._shown}: more than {MOST_PAGES} pages for one question; the list is not whole")

    def _at_endpoint(self, current: httpx.URL, link: Any) -> httpx.URL:
        """The link at the configured endpoint: links name the public host, which a proxy may replace."""
        try:
            following = current.join(str(link))
        except httpx.InvalidURL as error:
            raise ProviderFailure(f"{self._shown}: NextPageLink is no address; the list is not whole") from error
        prefix = self._base.path.rstrip("/")
        path = following.path if following.path.startswith(f"{prefix}/") else prefix + following.path
        return self._base.copy_with(path=path, query=following.query)


def _is_not_consumption(row: Row) -> bool:
    """Whether the pay-as-you-go filter should have removed this row."""
    return row.get("type") not in ("Consumption", None) and is_accelerated(row.get("armSkuName"))


def _by_region(rows: list[Row]) -> dict[str, list[Row]]:
    everything: dict[str, list[Row]] = {}
    for row in rows:
        everything.setdefault(region_name(row.get("armRegionName")), []).append(row)
    return everything
