"""Quotas at Google Cloud: GPUs by model, spot apart, per region, and of all regions together.

`compute.regions.list` and `compute.projects.get` state them, which the role Compute Viewer allows, and Cloud Quotas those
of newer GPUs, which Compute Engine does not. A project that has no
quota for preemptible GPUs of a model runs them under the ordinary one
(https://docs.cloud.google.com/compute/resource-usage#preemptible_quotas).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpuplan.catalog.model.capacity_answers import NotLearned
from gpuplan.catalog.model.quota_facts import PREEMPTIBLE, QuotaFact, QuotasRead, quota_codes, quota_fact
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.gcp.api_calls import Patience, listed, single
from gpuplan.providers.gcp.clients import Account, account, compute_client
from gpuplan.providers.gcp.cloud_quotas import newer_codes, newer_quotas

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
