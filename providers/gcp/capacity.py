"""Capacity at Google Cloud: advice on spot machines (obtainability, uptime) and the daily history of preemptions.

Compute Engine's `advice` methods are asked over HTTPS with Google's credentials. The client library has them too
(`AdviceClient` of google-cloud-compute), but importing it takes longer than all clouds together may take to answer, and
Google serves spot advice on the beta path, while the library asks v1. The tests check both directions of the wire format
with the library's own message types.
"""

import math
import re
import time
import weakref
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import httpx

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, NotLearned, hazard_of_share
from gpuplan.catalog.model.offer import Implausible
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.capacity.contract import CapacityCall, CapacityResult
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.error_redaction import redacted_text
from gpuplan.providers.gcp.clients import ADVICE_SCOPE, Account, account, checked_endpoint, token_headers
from gpuplan.providers.rate_limit import RateLimit

ENDPOINT = "https://compute.googleapis.com"
SOURCE = "Compute Engine advice.capacity"
HISTORY = "preemptionHistory"
#: The days that the history has: https://docs.cloud.google.com/compute/docs/instances/view-spot-preemption-price
MOST_DAYS = 31
#: Far below the 1,500 requests a minute of a project: https://docs.cloud.google.com/compute/api-quota
PER_SECOND, BURST = 15, 30
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")
_N1 = re.compile(r"(?P<machine>n1-[\w-]+)\+(?P<count>\d+)x(?P<gpu>[\w-]+)")
NO_TPUS = "Google's capacity advice does not cover TPUs"
NO_HISTORY = "Google publishes no preemption history of N1 machines with attached GPUs"


def capacity_source(sources: Sources) -> "GcpCapacity":
    """Google Cloud with Application Default Credentials. Raises `ProviderFailure` without them or without a project."""
    try:
        gcp_account = account(sources, scope=ADVICE_SCOPE)
    except ProviderFailure as failure:
        # What follows is about prices.
        raise ProviderFailure(str(failure).removeprefix("gcp: ").partition(". Until then")[0]) from failure
    if not gcp_account.for_compute:
        raise ProviderFailure("capacity advice needs GPUPLAN_GCP_PROJECT and credentials; an API key is not enough")
    return GcpCapacity(gcp_account, sources)


class GcpCapacity:
    """Questions on behalf of one project."""

    name = "gcp"
    parallel = 8

    def __init__(self, gcp_account: Account, sources: Sources) -> None:
        """Raises `ProviderFailure` for an endpoint that may not be used."""
        base = checked_endpoint(sources.gcp_compute_endpoint, sources) or ENDPOINT
        self._base = f"{base}/compute/beta/projects/{gcp_account.project}/regions"
        self._account, self._anonymous = gcp_account, sources.anonymous
        self._rate = RateLimit(PER_SECOND if sources.paced else None, burst=BURST)
        self._client = httpx.Client()
        weakref.finalize(self, self._client.close)

    def capacity(
        self, machines: Sequence[str], nodes: int, kind: str, places: Sequence[str]
    ) -> list[CapacityCall | NotLearned]:
        """One call per machine and region: advice, then history."""
        if kind != "spot":
            reason = f"Google publishes nothing about getting {kind} machines to every project; accepted: spot"
            return [NotLearned(provider=self.name, what="price_kind", reason=reason)]
        results: list[CapacityCall | NotLearned] = []
        for name in machines:
            if name.startswith("tpu-"):
                results.append(NotLearned(provider=self.name, instance_type=name, reason=NO_TPUS))
                continue
            results += [
                CapacityCall(machines=(name,), regions=(region,), ask=partial(self._advice, name, region, nodes))
                for region in dict.fromkeys(places)
            ]
        return results

    def _advice(self, name: str, region: str, nodes: int, asked_at: datetime, seconds: float) -> list[CapacityResult]:
        deadline = time.monotonic() + seconds
        answer = self._post(f"{region}/advice/capacity", advice_request(name, nodes), seconds)
        missing: list[CapacityResult] = []
        lost: tuple[float, str] | None = None
        try:
            if _N1.fullmatch(name):
                raise ProviderFailure(NO_HISTORY)
            history = self._post(
                f"{region}/advice/capacityHistory", history_request(name), max(0.05, deadline - time.monotonic())
            )
            lost = hazard_of_history(history)
        except (ProviderFailure, Implausible) as problem:
            missing.append(
                NotLearned(
                    provider=self.name, region=region, instance_type=name, what="interruptions", reason=str(problem)
                )
            )
        try:
            return [_answer(answer, name=name, region=region, nodes=nodes, asked_at=asked_at, lost=lost), *missing]
        except Implausible as problem:
            return [NotLearned(provider=self.name, region=region, instance_type=name, reason=str(problem))]

    def _post(self, path: str, body: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """The reply as a JSON object. Raises `ProviderFailure`."""
        if not self._rate.within(seconds):
            raise ProviderFailure("not asked: the rate of questions is limited")
        url = f"{self._base}/{path}"
        what = path.partition("/")[2].replace("/", ".")
        try:
            reply = self._client.post(
                url, json=body, headers=token_headers(self._account, url), timeout=max(0.05, seconds)
            )
            document = reply.json() if "json" in reply.headers.get("content-type", "") else None
        except httpx.TimeoutException as error:
            raise ProviderFailure(f"{what}: no answer within {seconds:.1f} s") from error
        except (httpx.HTTPError, ValueError) as error:
            raise ProviderFailure(f"{what}: {redacted_text(error)}") from error
        if reply.is_error:
            raise ProviderFailure(f"{what}: {_refusal(reply.status_code, document)}")
        if not isinstance(document, dict):
            raise ProviderFailure(f"{what}: the answer is no JSON object; check the endpoint and any proxy")
        return document


def advice_request(name: str, nodes: int) -> dict[str, Any]:
    """The body of advice.capacity: `nodes` spot machines of one type in one zone of the region."""
    selection: dict[str, Any] = {"machineTypes": [name]}
    if attached := _N1.fullmatch(name):
        gpu = {"acceleratorType": f"nvidia-tesla-{attached['gpu'].lower()}", "acceleratorCount": int(attached["count"])}
        selection = {"machineTypes": [attached["machine"]], "guestAccelerators": [gpu]}
    return {
        "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE"},
        "instanceFlexibilityPolicy": {"instanceSelections": {"machine": selection}},
        "instanceProperties": {"scheduling": {"provisioningModel": "SPOT"}},
        "size": nodes,
    }


def history_request(name: str) -> dict[str, Any]:
    """The body of advice.capacityHistory: preemptions of one type in the region."""
    properties = {"machineType": name, "scheduling": {"provisioningModel": "SPOT"}}
    return {"instanceProperties": properties, "types": ["PREEMPTION"]}


def hazard_of_history(history: Mapping[str, Any]) -> tuple[float, str]:
    """Interruptions per hour, and the published share, of a history of preemptions.

    Google publishes, per day, the share of the stopped spot machines that it had preempted. That is no hourly hazard. It is
    read as if each machine were lost within the day with the mean of these shares: -ln(1 - share) / 24. Raises
    `Implausible` for no record, a share outside 0..1, or a mean of 1.
    """
    rows = history.get(HISTORY)
    rates = [row.get("preemptionRate", 0.0) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    if not 0 < len(rates) <= MOST_DAYS:
        raise Implausible(f"a history of {len(rates)} days; accepted: 1 to {MOST_DAYS}")
    strange = [rate for rate in rates if not _is_share(rate)]
    if strange:
        raise Implausible(f"a preemption rate of {strange[0]!r} is outside 0..1")
    share = math.fsum(rates) / len(rates)
    return hazard_of_share(share, 24.0), f"{share:.3f} of stops per day, mean of {len(rates)} days"


def _answer(
    answer: Mapping[str, Any],
    *,
    name: str,
    region: str,
    nodes: int,
    asked_at: datetime,
    lost: tuple[float, str] | None,
) -> CapacityAnswer:
    """Raises `Implausible`."""
    recommendations = answer.get("recommendations")
    first = recommendations[0] if isinstance(recommendations, list) and recommendations else None
    scores = first.get("scores") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(scores, dict):
        raise Implausible("the advice has no recommendation")
    obtainability = scores.get("obtainability", 0.0)  # a default value is left out on the wire
    if not _is_share(obtainability):
        raise Implausible(f"an obtainability of {obtainability!r} is outside 0..1")
    return CapacityAnswer(
        provider="gcp",
        region=region,
        zone=_zone(first, name, region),
        instance_type=name,
        nodes=nodes,
        price_kind="spot",
        probability=float(obtainability),
        published=f"{obtainability:g}",
        asked_at=asked_at,
        source=SOURCE,
        scored_types=(name,),
        interruptions_per_hour=lost[0] if lost else None,
        interruptions_published=lost[1] if lost else "",
        uptime_hours=_uptime_hours(scores.get("estimatedUptime")),
        modelled=("interruptions_per_hour",) if lost else (),
    )


def _zone(recommendation: Mapping[str, Any], name: str, region: str) -> str:
    """The zone that the advice chose, empty if it names none or several. Raises `Implausible` for another machine."""
    shards = recommendation.get("shards")
    rows = [row for row in shards if isinstance(row, dict)] if isinstance(shards, list) else []
    machines = {str(row.get("machineType") or name).rpartition("/")[2] for row in rows}
    wanted = attached["machine"] if (attached := _N1.fullmatch(name)) else name
    if machines - {wanted, name}:
        raise Implausible(f"the advice is for {min(machines - {wanted, name})[:60]}, which was not asked")
    zones = {str(row.get("zone") or "").rpartition("/")[2] for row in rows}
    zone = zones.pop() if len(zones) == 1 else ""
    if zone and not zone.startswith(f"{region}-"):
        raise Implausible(f"the advice is for {zone[:60]}, which is not in {region}")
    return zone


def _uptime_hours(text: object) -> float | None:
    """`600s` as hours, None if not stated. Raises `Implausible`."""
    if text is None:
        return None
    match = _SECONDS.fullmatch(str(text))
    if match is None:
        raise Implausible(f"an estimated uptime of {str(text)[:40]!r} is no duration such as 600s")
    return float(match[1]) / 3600


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _refusal(status: int, document: object) -> str:
    error = document.get("error") if isinstance(document, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return redacted_text(f"HTTP {status}, {message}" if message else f"HTTP {status}")
