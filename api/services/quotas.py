"""The quotas of the user's accounts, read from the clouds as the settings file states them."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from typing import Protocol

from gpuplan.api.schemas.quota import MOST_QUOTAS
from gpuplan.api.services.service_context import Document, ServiceContext
from gpuplan.catalog.model.capacity_answers import NotLearned
from gpuplan.catalog.model.quota_facts import QuotasRead
from gpuplan.catalog.model.regions import Region
from gpuplan.catalog.model.regions import regions as known_regions
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.planner.model.wire import wire

#: Regions read concurrently.
AT_ONCE = 4
#: Clouds whose quotas can be read: each has a module `quotas` with `quota_source(sources)`.
READABLE = ("aws", "gcp", "azure")
EXAMPLES = "a region of AWS, Google Cloud or Azure, as us-east-1, us-central1 or eastus"


class QuotaSource(Protocol):
    """The quotas of one account."""

    def read(self, region: str) -> QuotasRead:
        """The quotas of a region. Raises `ProviderFailure`."""
        ...


class QuotaService:
    """Reads quotas; stores nothing, so that a plan's quotas are those of its settings."""

    def __init__(self, context: ServiceContext) -> None:
        """Read with the credentials of `context`'s environment."""
        self._context = context

    def read(self, regions: Sequence[str], *, now: datetime | None = None) -> Document:
        """`{"outcome": "read", "quotas": [...], "not_learned": [...], "meta": {"read_at": ...}}` for regions of three clouds.

        `quotas` is as the settings file states it. Raises `UnusableInput` for other regions, or if there are more quotas
        than a settings file may have, and `ProviderFailure` if none was read.
        """
        places = _places(regions)
        sources = self._context.environment.sources()

        def of_place(place: tuple[str, str]) -> QuotasRead:
            provider, region = place
            try:
                source: QuotaSource = import_module(f"gpuplan.providers.{provider}.quotas").quota_source(sources)
                return source.read(region)
            except ModuleNotFoundError as error:
                reason = f"needs {needed_module(error)}"
            except ProviderFailure as failure:
                reason = str(failure)
            return QuotasRead(not_learned=(NotLearned(provider=provider, region=region, reason=reason, what="quota"),))

        read_at = now or datetime.now(UTC)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(of_place, places))
        # A quota over all regions is in the answer of each.
        facts = dict.fromkeys(quota for answer in answers for quota in answer.quotas)
        day = {"read_on": read_at.astimezone(UTC).date().isoformat()}
        quotas = [
            {name: value for name, value in asdict(fact).items() if value not in ("", None)} | day for fact in facts
        ]
        missing = [row for answer in answers for row in answer.not_learned]
        if not quotas:
            raise ProviderFailure("; ".join(f"{row.provider} {row.region}: {row.reason}" for row in missing[:3]))
        if len(quotas) > MOST_QUOTAS:
            message = (
                f"{len(places)} regions have {len(quotas)} quotas; name fewer: settings take {MOST_QUOTAS} at most"
            )
            raise UnusableInput.at("region", message=message)
        return {
            "outcome": "read",
            "quotas": quotas,
            "not_learned": [wire(row) for row in missing],
            "meta": {"read_at": wire(read_at)},
        }


def _places(regions: Sequence[str]) -> list[tuple[str, str]]:
    """Provider and region of each name, once. Raises `UnusableInput`."""
    if not regions:
        raise UnusableInput.at("region", message=f"is missing; name {EXAMPLES}")
    rows = known_regions()
    places: dict[tuple[str, str], None] = {}
    for number, name in enumerate(regions):
        provider = next((provider for provider in READABLE if _is_asked(rows, provider, name)), None)
        if provider is None:
            raise UnusableInput.at("region", number, message=f"{name[:60]!r} is not accepted; write {EXAMPLES}")
        places[provider, name] = None
    return list(places)


def _is_asked(rows: Mapping[tuple[str, str], Region], provider: str, name: str) -> bool:
    row = rows.get((provider, name))
    return row is not None and not row.parent_region and row.partition == "commercial"
