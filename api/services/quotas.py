"""The quotas of the user's accounts, read from the clouds as the settings file states them, and kept with their time."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Protocol

from gpuplan.api.schemas.quota import MOST_QUOTAS
from gpuplan.api.schemas.quota_answers import QuotasAnswer, QuotasMeta, ReusedReading, StatedQuota
from gpuplan.api.services.service_context import ContextService
from gpuplan.catalog.model.capacity_answers import NotLearned, QuotaFact, QuotasRead
from gpuplan.catalog.model.regions import Region
from gpuplan.catalog.model.regions import regions as known_regions
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.catalog.store.capacity_store import QuotaReading
from gpuplan.providers.cloud_endpoints import Sources

#: Regions read concurrently.
AT_ONCE = 4
#: How long a reading is reused. A quota changes when somebody asks for another, which takes hours to days.
REUSED_FOR = timedelta(hours=1)
#: Clouds whose quotas can be read: each has a module `quotas` with `quota_source(sources)`.
READABLE = ("aws", "gcp", "azure")
EXAMPLES = "a region of AWS, Google Cloud or Azure, as us-east-1, us-central1 or eastus"


class QuotaSource(Protocol):
    """The quotas of one account; `account` tells it from others and is no secret."""

    account: str

    def read(self, region: str) -> QuotasRead:
        """The quotas of a region. Raises `ProviderFailure`."""
        ...


class QuotaService(ContextService):
    """Reads quotas. A plan's quotas are those of its settings: the store only saves asking the clouds again."""

    def read(self, regions: Sequence[str], *, fresh: bool = False, now: datetime | None = None) -> QuotasAnswer:
        """The quotas of regions of three clouds, each as read within `REUSED_FOR`, or now; with `fresh` all are read now.

        Raises `UnusableInput` for other regions, or if there are more quotas than a settings file may have, and
        `ProviderFailure` if none was read.
        """
        places = _places(regions)
        sources = self._context.environment.sources()
        at = (now or datetime.now(UTC)).astimezone(UTC)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            readings = list(pool.map(lambda place: self._reading(*place, sources=sources, fresh=fresh, now=at), places))
        # A quota over all regions is in the answer of each.
        facts: dict[QuotaFact, datetime] = {}
        for reading in readings:
            for fact in reading.quotas.quotas:
                facts[fact] = min(reading.read_at, facts.get(fact, reading.read_at))
        missing = [row for reading in readings for row in reading.quotas.not_learned]
        if not facts:
            raise ProviderFailure("; ".join(f"{row.provider} {row.region}: {row.reason}" for row in missing[:3]))
        if len(facts) > MOST_QUOTAS:
            message = f"{len(places)} regions have {len(facts)} quotas; name fewer: settings take {MOST_QUOTAS} at most"
            raise UnusableInput.at("region", message=message)
        reused = tuple(
            ReusedReading(provider=reading.provider, region=reading.region, read_at=reading.read_at)
            for reading in readings
            if reading.read_at < at
        )
        return QuotasAnswer(
            outcome="read",
            quotas=tuple(_stated(fact, read_at) for fact, read_at in facts.items()),
            not_learned=tuple(missing),
            meta=QuotasMeta(read_at=min(reading.read_at for reading in readings), reused=reused),
        )

    def _reading(self, provider: str, region: str, *, sources: Sources, fresh: bool, now: datetime) -> QuotaReading:
        """The quotas of one region, of the store or of the cloud; a failure is what was not learned, and is not stored."""
        account = ""
        try:
            source: QuotaSource = import_module(f"gpuplan.providers.{provider}.quotas").quota_source(sources)
            account = source.account
            stored = None if fresh else self._context.store.capacity.quotas(account, provider, region)
            if stored is not None and now - REUSED_FOR <= stored.read_at <= now:
                return stored
            read = source.read(region)
        except ModuleNotFoundError as error:
            reason = f"needs {needed_module(error)}"
        except ProviderFailure as failure:
            reason = str(failure)
        else:
            reading = QuotaReading(account=account, provider=provider, region=region, read_at=now, quotas=read)
            if read.quotas:
                self._context.store.capacity.write_quotas(reading)
            return reading
        missing = NotLearned(provider=provider, region=region, reason=reason, what="quota")
        nothing = QuotasRead(not_learned=(missing,))
        return QuotaReading(account=account, provider=provider, region=region, read_at=now, quotas=nothing)


def _stated(fact: QuotaFact, read_at: datetime) -> StatedQuota:
    """A quota as the settings file states it."""
    return StatedQuota(
        provider=fact.provider,
        region=fact.region or None,
        family=fact.family,
        price_kind=fact.price_kind or None,
        code=fact.code,
        vcpus=fact.vcpus,
        accelerators=fact.accelerators,
        read_on=read_at.date().isoformat(),
    )


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
