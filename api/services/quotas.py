"""The quotas of the user's accounts, read from the clouds as the settings file states them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime

from gpuplan.api.schemas.quota import MOST_QUOTAS
from gpuplan.api.services.service_context import Document, ServiceContext
from gpuplan.catalog.model.capacity_answers import NotLearned
from gpuplan.catalog.model.quota_facts import QuotasRead
from gpuplan.catalog.model.regions import regions as known_regions
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.planner.model.wire import wire

#: Regions read concurrently.
AT_ONCE = 4


class QuotaService:
    """Reads quotas; stores nothing, so that a plan's quotas are those of its settings."""

    def __init__(self, context: ServiceContext) -> None:
        """Read with the credentials of `context`'s environment."""
        self._context = context

    def read(self, regions: Sequence[str], *, now: datetime | None = None) -> Document:
        """`{"outcome": "read", "quotas": [...], "not_learned": [...], "meta": {"read_at": ...}}` for regions of AWS.

        `quotas` is as the settings file states it. Raises `UnusableInput` for other regions, or if there are more quotas
        than a settings file may have, and `ProviderFailure` if none was read.
        """
        from gpuplan.providers.aws.quotas import quota_source

        names = tuple(dict.fromkeys(regions))
        for number, name in enumerate(names):
            row = known_regions().get(("aws", name))
            if row is None or row.parent_region or row.partition != "commercial":
                message = f"{name[:60]!r} is not accepted; write a region of AWS, as us-east-1"
                raise UnusableInput.at("region", number, message=message)
        if not names:
            raise UnusableInput.at("region", message="is missing; name a region of AWS, as us-east-1")
        source = quota_source(self._context.environment.sources())

        def of_region(region: str) -> QuotasRead:
            try:
                return source.read(region)
            except ProviderFailure as failure:
                missing = NotLearned(provider="aws", region=region, reason=str(failure), what="quota")
                return QuotasRead(not_learned=(missing,))

        read_at = now or datetime.now(UTC)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(of_region, names))
        quotas = [asdict(quota) for answer in answers for quota in answer.quotas]
        missing = [row for answer in answers for row in answer.not_learned]
        if not quotas:
            raise ProviderFailure("; ".join(f"aws {row.region}: {row.reason}" for row in missing[:3]))
        if len(quotas) > MOST_QUOTAS:
            message = f"{len(names)} regions have {len(quotas)} quotas; name fewer: settings take {MOST_QUOTAS} at most"
            raise UnusableInput.at("region", message=message)
        return {
            "outcome": "read",
            "quotas": quotas,
            "not_learned": [wire(row) for row in missing],
            "meta": {"read_at": wire(read_at)},
        }
