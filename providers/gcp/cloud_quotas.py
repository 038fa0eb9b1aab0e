"""Quotas of Google's newer GPUs, which the quotas of Compute Engine's regions do not carry: the Cloud Quotas API over HTTPS.

`quotaInfos.get` (permission `cloudquotas.quotas.get`) states one quota with a value for each set of dimensions, so one for
a region and GPU family stands beside one for the region, and the default beside both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.catalog.model.capacity_answers import NotLearned
from gpuplan.catalog.model.quota_facts import QuotaFact, quota_codes, quota_fact
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.feed_client import MissingResource, get_json, web_client
from gpuplan.providers.gcp.clients import Account, checked_endpoint, token_headers

ENDPOINT = "https://cloudquotas.googleapis.com"
READER = "Cloud Quotas"
NEEDS = "it needs the API cloudquotas.googleapis.com enabled and the permission cloudquotas.quotas.get"
#: How the ids of this API end. A code with a second word names the GPU family, which is a dimension of its quota.
PER_REGION = "-per-project-region"


def newer_codes() -> list[str]:
    """The codes of quotas that only this API states."""
    return [code for code in quota_codes("gcp") if code.partition(" ")[0].endswith(PER_REGION)]


def newer_quotas(region: str, gcp_account: Account, sources: Sources) -> list[QuotaFact | NotLearned]:
    """The quotas on newer GPUs in a region; one reason where the API cannot be asked."""
    base = checked_endpoint(sources.gcp_quotas_endpoint, sources) or ENDPOINT
    address = f"{base}/v1/projects/{gcp_account.project}/locations/global/services/compute.googleapis.com/quotaInfos"
    parts: list[QuotaFact | NotLearned] = []
    stated: dict[str, Mapping[str, Any]] = {}
    with web_client() as client:
        for code in newer_codes():
            quota_id, _, family = code.partition(" ")
            url = f"{address}/{quota_id}"
            try:
                if quota_id not in stated:
                    client.headers.update(token_headers(gcp_account, url))
                    stated[quota_id] = _object(get_json(client, url)[0])
                value = value_in(stated[quota_id].get("dimensionsInfos"), region=region, family=family)
            except MissingResource:
                stated[quota_id] = {}
                value = None
            except ProviderFailure as failure:
                reason = f"{READER}, {quota_id}: {failure}; {NEEDS}"
                return [*parts, NotLearned(provider="gcp", region=region, reason=reason, what="quota")]
            # A project without a quota on spot machines of a model runs them under the ordinary one.
            if value is not None or family:
                parts.append(quota_fact("gcp", region, code, value, reader=READER))
    return parts


def value_in(infos: Any, *, region: str, family: str) -> int | str | None:
    """The value for a region and GPU family: that of the most specific dimensions that apply; None without one.

    A value that is no whole number is given back as it is, so that it is named.
    """
    rows = [row for row in infos if isinstance(row, dict)] if isinstance(infos, Sequence) else []
    fitting = [row for row in rows if _applies(row, region=region, family=family)]
    if not fitting:
        return None
    best = max(fitting, key=lambda row: ("gpu_family" in row["dimensions"], "region" in row["dimensions"]))
    # Whole numbers of 64 bits are strings in Google's JSON.
    value = best["details"].get("value")
    return int(value) if isinstance(value, str) and value.removeprefix("-").isdecimal() else value


def _applies(row: dict[str, Any], *, region: str, family: str) -> bool:
    dimensions = row.setdefault("dimensions", {})
    places = row.get("applicableLocations", [])
    if not isinstance(dimensions, dict) or not isinstance(places, list) or not isinstance(row.get("details"), dict):
        raise ProviderFailure(
            "the answer does not have the form that the API documents; check the endpoint and any proxy"
        )
    known = {"region": region, "gpu_family": family}
    return (not places or region in places) and all(known.get(name) == value for name, value in dimensions.items())


def _object(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise ProviderFailure("the answer is no JSON object; check the endpoint and any proxy")
    return document
