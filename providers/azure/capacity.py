"""Capacity at Azure: spot placement scores of Compute, eviction bands of Resource Graph.

No installed SDK carries either (azure-mgmt-compute 39 lacks the scores, Resource Graph has a package of its own), so both
are asked by REST over azure-core's pipeline.
"""

import re
import time
import weakref
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from azure.core import PipelineClient
from azure.core.exceptions import AzureError, ClientAuthenticationError, ServiceResponseTimeoutError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, UserAgentPolicy
from azure.core.rest import HttpRequest
from azure.identity import DefaultAzureCredential

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, NotLearned, hazard_of_share, probability_of
from gpuplan.catalog.model.offer import Implausible
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.azure.mapping_tables import is_sovereign, region_name
from gpuplan.providers.capacity.contract import CapacityCall, CapacityResult, parts, split_places
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.error_redaction import redacted_text
from gpuplan.providers.rate_limit import RateLimit

ENDPOINT = "https://management.azure.com"
SCOPE = "https://management.azure.com/.default"
SOURCE = "Azure spot placement score"
SCORES_VERSION, GRAPH_VERSION = "2025-06-05", "2022-10-01"
#: Limits of one query: https://learn.microsoft.com/en-us/azure/virtual-machine-scale-sets/spot-placement-score
MOST_REGIONS, MOST_SIZES = 8, 5
#: Azure publishes no rate for placement scores; Resource Graph allows 15 queries in 5 seconds:
#: https://learn.microsoft.com/en-us/azure/governance/resource-graph/concepts/guidance-for-throttled-requests
SCORES_PER_SECOND, SCORES_BURST = 1, 4
GRAPH_PER_SECOND, GRAPH_BURST = 2, 5
MOST_PAGES = 20
FIRST_ERROR_STATUS = 400
#: Answers in place of a score, which say that there is none.
WITHOUT_SCORE = {
    "datanotfoundorstale": "Azure has no recent data for it",
    "restrictedskunotavailable": "this subscription may not rent the size there",
}
#: Share evicted within an hour, by Resource Graph's band; the middle, and an open band as if it were as wide as the others.
#: https://learn.microsoft.com/en-us/azure/virtual-machines/spot-vms#pricing-and-eviction-history
EVICTED_SHARE = {"0-5": 0.025, "5-10": 0.075, "10-15": 0.125, "15-20": 0.175, "20+": 0.225}
_SIZE = re.compile(r"\w+")


def capacity_source(sources: Sources) -> "AzureCapacity":
    """Azure with the credentials that azure-identity finds. Raises `ProviderFailure` without a subscription."""
    subscription = sources.azure_subscription_id
    if not subscription:
        raise ProviderFailure("no subscription given (AZURE_SUBSCRIPTION_ID)")
    policies: list[Any] = [UserAgentPolicy("gpuplan")]
    if not sources.anonymous:
        credential = DefaultAzureCredential(process_timeout=3, connection_timeout=2, read_timeout=3, retry_total=0)
        policies.append(BearerTokenCredentialPolicy(credential, SCOPE))
    client: Any = PipelineClient((sources.azure_arm_endpoint or ENDPOINT).rstrip("/"), policies=policies)
    return AzureCapacity(client, subscription, paced=sources.paced)


class AzureCapacity:
    """Questions on behalf of one subscription."""

    name = "azure"
    parallel = 4

    def __init__(self, client: Any, subscription: str, *, paced: bool) -> None:
        """`client` is a pipeline client of azure-core, which authenticates."""
        self._client, self._subscription = client, subscription
        weakref.finalize(self, client.close)
        self._scores_rate = RateLimit(SCORES_PER_SECOND if paced else None, burst=SCORES_BURST)
        self._graph_rate = RateLimit(GRAPH_PER_SECOND if paced else None, burst=GRAPH_BURST)

    def capacity(
        self, machines: Sequence[str], nodes: int, kind: str, places: Sequence[str]
    ) -> list[CapacityCall | NotLearned]:
        """One call per five sizes and eight regions: scores, then eviction bands."""
        if kind != "spot":
            reason = f"Azure publishes nothing about getting {kind} machines; accepted: spot"
            return [NotLearned(provider=self.name, what="price_kind", reason=reason)]
        asked, refused = split_places(self.name, places, _reason_not)
        sizes = [name for name in dict.fromkeys(machines) if _SIZE.fullmatch(name)]
        strange = [
            NotLearned(provider=self.name, instance_type=name, reason="no size of Azure has such a name")
            for name in machines
            if name not in sizes
        ]
        calls = [
            CapacityCall(machines=group, regions=regions, ask=partial(self._ask, group, regions, nodes))
            for group in parts(sizes, MOST_SIZES)
            for regions in parts(asked, MOST_REGIONS)
        ]
        return [*refused, *strange, *calls]

    def _ask(
        self, sizes: tuple[str, ...], regions: tuple[str, ...], nodes: int, asked_at: datetime, seconds: float
    ) -> list[CapacityResult]:
        deadline = time.monotonic() + seconds
        scores = self._scores(sizes, regions, nodes, seconds)
        missing: list[CapacityResult] = []
        bands: Mapping[tuple[str, str], str] = {}
        try:
            bands = self._eviction_bands(sizes, regions, deadline)
        except ProviderFailure as failure:
            missing = [
                NotLearned(
                    provider=self.name, region=region, instance_type=size, what="interruptions", reason=str(failure)
                )
                for region in regions
                for size in sizes
            ]
        results = [
            _result(
                scores.get((size.lower(), region)),
                bands.get((size.lower(), region), ""),
                size=size,
                region=region,
                nodes=nodes,
                asked_at=asked_at,
            )
            for region in regions
            for size in sizes
        ]
        return [*results, *missing]

    def _scores(
        self, sizes: tuple[str, ...], regions: tuple[str, ...], nodes: int, seconds: float
    ) -> dict[tuple[str, str], Mapping[str, Any]]:
        """The row of each (size, region), both in lower case. Raises `ProviderFailure`."""
        if not self._scores_rate.within(seconds):
            raise ProviderFailure("not asked: the rate of questions is limited")
        path = (
            f"/subscriptions/{quote(self._subscription, safe='')}"
            f"/providers/Microsoft.Compute/locations/{regions[0]}/placementScores/spot/generate"
        )
        body = {
            "desiredLocations": list(regions),
            "desiredSizes": [{"sku": size} for size in sizes],
            "desiredCount": nodes,
            "availabilityZones": False,
        }
        answer = self._post(path, SCORES_VERSION, body, seconds)
        rows = answer.get("placementScores")
        if not isinstance(rows, list):
            raise ProviderFailure(f"{SOURCE}: answered without a list of scores; check the endpoint")
        return {
            (str(row.get("sku") or "").lower(), region_name(row.get("region"))): row
            for row in rows
            if isinstance(row, dict)
        }

    def _eviction_bands(
        self, sizes: tuple[str, ...], regions: tuple[str, ...], deadline: float
    ) -> dict[tuple[str, str], str]:
        """The band of each (size, region), both in lower case, from all pages. Raises `ProviderFailure`."""
        query = (
            "SpotResources | where type =~ 'microsoft.compute/skuspotevictionrate/location'"
            f" | where sku.name in~ ({_quoted(sizes)}) and location in~ ({_quoted(regions)})"
            " | project size = tostring(sku.name), location, band = tostring(properties.evictionRate)"
        )
        bands: dict[tuple[str, str], str] = {}
        options: dict[str, Any] = {"resultFormat": "objectArray"}
        for _ in range(MOST_PAGES):
            left = deadline - time.monotonic()
            if left <= 0 or not self._graph_rate.within(left):
                raise ProviderFailure("Resource Graph: no time left for eviction bands")
            body = {"subscriptions": [self._subscription], "query": query, "options": options}
            page = self._post("/providers/Microsoft.ResourceGraph/resources", GRAPH_VERSION, body, left)
            rows = page.get("data")
            if not isinstance(rows, list):
                raise ProviderFailure("Resource Graph: answered without a list in data")
            for row in rows:
                if isinstance(row, dict):
                    key = str(row.get("size") or "").lower(), region_name(row.get("location"))
                    bands[key] = str(row.get("band") or "")
            token = page.get("$skipToken")
            if not token:
                return bands
            options = options | {"$skipToken": token}
        raise ProviderFailure(f"Resource Graph: the answer has more than {MOST_PAGES} pages")

    def _post(self, path: str, version: str, body: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """The reply as a JSON object. Raises `ProviderFailure`."""
        request = HttpRequest("POST", self._client.format_url(path), params={"api-version": version}, json=body)
        left = max(0.05, seconds)
        try:
            reply = self._client.send_request(request, connection_timeout=left, read_timeout=left)
            document = reply.json() if reply.content else None
        except ServiceResponseTimeoutError as error:
            raise ProviderFailure(f"no answer within {seconds:.1f} s") from error
        except ClientAuthenticationError as error:
            raise ProviderFailure(f"credentials refused or missing: {redacted_text(error)}") from error
        except (AzureError, ValueError) as error:
            raise ProviderFailure(redacted_text(error)) from error
        if reply.status_code >= FIRST_ERROR_STATUS:
            raise ProviderFailure(_refusal(reply.status_code, document))
        if not isinstance(document, dict):
            raise ProviderFailure("the answer is no JSON object; check the endpoint and any proxy")
        return document


def _result(
    row: Mapping[str, Any] | None, band: str, *, size: str, region: str, nodes: int, asked_at: datetime
) -> CapacityResult:
    def without(reason: str) -> NotLearned:
        return NotLearned(provider="azure", region=region, instance_type=size, reason=reason)

    if row is None:
        return without("Azure's answer leaves it out")
    published = str(row.get("score") or "")
    if reason := WITHOUT_SCORE.get(published.lower()):
        return without(f"{reason} ({published})")
    quota = row.get("isQuotaAvailable")
    share = EVICTED_SHARE.get(band)
    try:
        return CapacityAnswer(
            provider="azure",
            region=region,
            zone="",
            instance_type=size,
            nodes=nodes,
            price_kind="spot",
            probability=probability_of("azure", "spot", published),
            published=published,
            asked_at=asked_at,
            source=SOURCE,
            scored_types=(size,),
            interruptions_per_hour=None if share is None else hazard_of_share(share, 1.0),
            interruptions_published=f"{band} % per hour" if band else "",
            quota_available=quota if isinstance(quota, bool) else None,
            modelled=("probability",) if share is None else ("probability", "interruptions_per_hour"),
        )
    except Implausible as problem:
        return without(str(problem))


def _reason_not(region: str) -> str:
    """Why a region cannot be asked about, empty if it can."""
    if is_sovereign(region):
        return "a separate cloud of Azure, which these credentials cannot ask"
    return "" if region_name(region) == region and region.isalnum() else "no region of Azure has such a name"


def _quoted(names: Sequence[str]) -> str:
    """Names of letters, digits and underscores as Kusto strings; the callers let no other pass."""
    return ", ".join(f"'{name}'" for name in names)


def _refusal(status: int, document: object) -> str:
    """Code and message of either error format (Resource Manager wraps it in `error`, Compute does not)."""
    outer: dict[str, Any] = document if isinstance(document, dict) else {}
    inner = outer.get("error")
    error = inner if isinstance(inner, dict) else outer
    code, message = error.get("code"), error.get("message")
    return redacted_text(f"HTTP {status}, {code}: {message}" if code and message else f"HTTP {status}")
