"""Quotas at Google Cloud: GPUs by model, spot apart, per region, and of all regions together.

`compute.regions.list` and `compute.projects.get` state them, which the role Compute Viewer allows, and Cloud Quotas those
of newer GPUs, which Compute Engine does not. A project that has no
quota for preemptible GPUs of a model runs them under the ordinary one
(https://docs.cloud.google.com/compute/resource-usage#preemptible_quotas).

Quotas of Google's newer GPUs, which the quotas of Compute Engine's regions do not carry: the Cloud Quotas API over HTTPS.

`quotaInfos.get` (permission `cloudquotas.quotas.get`) states one quota with a value for each set of dimensions, so one for
a region and GPU family stands beside one for the region, and the default beside both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuplan.catalog.model.capacity_answers import (
    PREEMPTIBLE,
    NotLearned,
    QuotaFact,
    QuotasRead,
    quota_codes,
    quota_fact,
)
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.feed_client import MissingResource, get_json, web_client
from gpuplan.providers.gcp.api_calls import Patience, listed, single
from gpuplan.providers.gcp.clients import Account, account, checked_endpoint, compute_client, token_headers

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


PATIENCE = Patience(seconds=30.0, attempt_seconds=10.0)
ALL_REGIONS = "GPUS_ALL_REGIONS"


def quota_source(sources: Sources) -> "GcpQuotas":
    """The project that Application Default Credentials may read. Raises `ProviderFailure` without them or a project."""
    try:
        gcp_account = account(sources)
    except ProviderFailure as failure:
        # What follows is about prices.
        raise ProviderFailure(str(failure).removeprefix("gcp: ").partition(". Until then")[0]) from failure
    if not gcp_account.for_compute:
        raise ProviderFailure("quotas need GPUPLAN_GCP_PROJECT and credentials; an API key is not enough")
    return GcpQuotas(gcp_account, sources)


class GcpQuotas:
    """The quotas of one project; any number of threads may read them at the same time."""

    def __init__(self, gcp_account: Account, sources: Sources, *, patience: Patience = PATIENCE) -> None:
        """Sends nothing yet."""
        self._account, self._sources, self._patience = gcp_account, sources, patience
        self.account = str(gcp_account.project)

    def read(self, region: str) -> QuotasRead:
        """The quotas on GPUs in a region, and that of all regions. Raises `ProviderFailure`."""
        regions = self._regions(region)
        if region not in regions:
            raise ProviderFailure(f"compute.regions.list does not list {region}")
        parts = of_region(region, regions[region])
        parts = _spot_under_ordinary([*parts, *newer_quotas(region, self._account, self._sources)])
        try:
            whole = self._project().get(ALL_REGIONS)
            parts.append(quota_fact("gcp", "", ALL_REGIONS, whole, reader="compute.projects.get"))
        except ProviderFailure as failure:
            parts.append(NotLearned(provider="gcp", region=region, reason=f"{ALL_REGIONS}: {failure}", what="quota"))
        return QuotasRead.of(parts)

    def _regions(self, name: str) -> dict[str, dict[str, float]]:
        """The limit of each metric by region."""
        request = {"project": self._account.project, "filter": f"name = {name}"}
        with compute_client("Regions", self._account, self._sources) as client:
            rows = listed(
                "compute.regions.list", client.list, request, lambda page: page.items, patience=self._patience
            )
        return {row.name: _limits(row.quotas) for row in rows}

    def _project(self) -> dict[str, float]:
        """The limit of each metric of the project."""
        request = {"project": self._account.project}
        with compute_client("Projects", self._account, self._sources) as client:
            return _limits(single("compute.projects.get", client.get, request, patience=self._patience).quotas)


def of_region(region: str, limits: Mapping[str, float]) -> list[QuotaFact | NotLearned]:
    """The quotas of a region by Compute Engine, without those on spot that the project does not have."""
    parts: list[QuotaFact | NotLearned] = []
    newer = set(newer_codes())
    for code in quota_codes("gcp"):
        if code in newer or code == ALL_REGIONS or (code.startswith(PREEMPTIBLE) and not limits.get(code)):
            continue
        fact = quota_fact("gcp", region, code, limits.get(code), reader="compute.regions.list")
        parts.append(fact)
    return parts


def _spot_under_ordinary(parts: list[QuotaFact | NotLearned]) -> list[QuotaFact | NotLearned]:
    """Without quotas on spot of 0: machines of a family without another one run under the ordinary quota."""
    facts = [part for part in parts if isinstance(part, QuotaFact)]
    spot = {fact.family for fact in facts if fact.price_kind == "spot" and fact.accelerators}
    parts_in_force: list[QuotaFact | NotLearned] = []
    for part in parts:
        if isinstance(part, NotLearned) or part.family in spot:
            parts_in_force.append(part)
        elif part.price_kind != "spot":
            parts_in_force.append(replace(part, price_kind=""))
    return parts_in_force


def _limits(quotas: Iterable[Any]) -> dict[str, float]:
    return {str(quota.metric): float(quota.limit) for quota in quotas}
