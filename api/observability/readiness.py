"""Readiness of the service, which distinguishes broken, stale and stopping.

Broken (the store cannot be read, or belongs to another release): requests should go to another process. Stale (prices
are older than they should be): reported, but plans continue and state the age of their prices.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

import sqlalchemy as sa

from gpuplan.api.observability.store_metrics import StoreFigures
from gpuplan.api.services.composition import Services
from gpuplan.api.services.snapshot_status import SnapshotStatus
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.schema_upgrade import HEAD, revision_of, suits
from gpuplan.catalog.store.store_counts import Activity, ProviderPrices
from gpuplan.planner.model.wire import wire

#: Probes come every few seconds, from every balancer that knows the service.
CACHE_SECONDS = 1.0
#: A provider is stale if the last refreshes could not confirm most of its prices.
MOST_UNCONFIRMED = 0.5
type Condition = Literal["ok", "stale", "broken"]
type Status = Literal["ready", "degraded", "broken", "stopping"]
_WORST: tuple[Condition, ...] = ("ok", "stale", "broken")
_STATUS: Mapping[Condition, Status] = {"ok": "ready", "stale": "degraded", "broken": "broken"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The condition of one part of the service, why it is not ok, and figures of it that are shown beside."""

    status: Condition
    why: tuple[str, ...] = ()
    details: Mapping[str, object] = field(default_factory=dict)

    def document(self) -> JsonObject:
        """The check as JSON."""
        return {"status": self.status} | ({"why": list(self.why)} if self.why else {}) | dict(self.details)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """Whether the service answers, why not or with what doubts, its parts, and the snapshot if it could be read."""

    status: Status
    why: tuple[str, ...]
    checks: Mapping[str, Check] = field(default_factory=dict)
    snapshot: SnapshotStatus | None = None

    def document(self) -> JsonObject:
        """The content of `/readyz`."""
        return (wire(self.snapshot) if self.snapshot is not None else {}) | {
            "status": self.status,
            "why": list(self.why),
            "checks": {name: check.document() for name, check in self.checks.items()},
        }


class Health:
    """The content of `/readyz`; looked up at most once a second, by one thread at a time."""

    def __init__(self, gpuplan: Services, figures: StoreFigures, *, stale_after_hours: float) -> None:
        """Of the store behind `gpuplan`; prices count as old after so many hours."""
        self._gpuplan, self._figures, self._limit = gpuplan, figures, stale_after_hours
        self._looking = threading.Lock()
        self._said: HealthReport | None = None
        self._until = 0.0
        self.stopping = False

    def stop(self) -> None:
        """The service is shutting down: report this from now on."""
        self.stopping = True

    def report(self) -> HealthReport:
        """The health as of at most a second ago."""
        if self.stopping:
            return HealthReport(status="stopping", why=("the service is shutting down; use another process",))
        with self._looking:
            if self._said is None or time.monotonic() >= self._until:
                self._said = self._look()
                self._until = time.monotonic() + CACHE_SECONDS
            return self._said

    def _look(self) -> HealthReport:
        try:
            revision, fits = self._gpuplan.store.read(_tables)
        except StoreFailure as error:
            return _summary({"database": _check("broken", str(error))})
        checks = {"database": _check("ok")}
        if not fits:
            why = f"the database is at revision {revision}, this gpuplan needs {HEAD}: run `gpuplan db upgrade`"
            return _summary(checks | {"migrations": _check("broken", why, revision=revision)})
        checks["migrations"] = _check("ok", revision=revision)
        try:
            ready = self._gpuplan.status.readiness()
            prices, activity = self._figures.prices(), self._figures.activity()
            checks["snapshot"] = _check("ok", id=ready.snapshot_id, offers=ready.offers)
            checks["prices"] = self._prices(prices, self._figures.refreshed())
            checks["refreshes"] = _refreshes(activity)
            checks["queue"] = _queue(self._figures)
        except StoreFailure as error:
            return _summary(checks | {"database": _check("broken", str(error))})
        return replace(_summary(checks), snapshot=ready)

    def _prices(self, prices: tuple[ProviderPrices, ...], refreshed: Mapping[str, str]) -> Check:
        now = datetime.now(UTC)
        ages = {price.provider: round((now - price.newest_at).total_seconds() / 3600, 2) for price in prices}
        old = [f"{name} {ages[name]:.0f} hours" for name in sorted(refreshed) if ages[name] > self._limit]
        # A complete refresh leaves some prices stale that these credentials cannot confirm; the report counts them.
        unconfirmed = [
            f"{price.provider} {price.stale} of {price.offers}"
            for price in prices
            if price.stale > MOST_UNCONFIRMED * price.offers and refreshed.get(price.provider, "whole") != "whole"
        ]
        why = []
        if old:
            why.append(f"prices are older than {self._limit:g} hours: {', '.join(old)}; run `gpuplan refresh`")
        if unconfirmed:
            why.append(f"prices that the last refresh could not confirm: {', '.join(unconfirmed)}; see its report")
        providers = {
            price.provider: {"newest_age_hours": ages[price.provider], "offers": price.offers, "stale": price.stale}
            for price in prices
        }
        left_out = sorted(ages.keys() - refreshed.keys())
        return _check("stale" if why else "ok", *why, limit_hours=self._limit, providers=providers, left_out=left_out)


def _tables(connection: sa.Connection) -> tuple[str | None, bool]:
    """The revision of the tables, and whether this release can use them: during an upgrade they may be newer."""
    revision = revision_of(connection)
    return revision, revision == HEAD or suits(connection, revision)


def _refreshes(activity: Activity) -> Check:
    """One incomplete night shows in the age of the prices; two in a row are a fault."""
    count = activity.refreshes_not_whole
    why = f"the last {count} refreshes failed or left something out; `/v1/refreshes` says what"
    return _check("stale", why, not_whole_in_a_row=count) if count > 1 else _check("ok", not_whole_in_a_row=count)


def _queue(figures: StoreFigures) -> Check:
    """Only PostgreSQL has a queue: otherwise runs are threads of this process. Waiting work needs a live worker."""
    depth = figures.queue()
    if depth is None:
        return _check("ok", kind="threads")
    workers = figures.workers()
    waiting = sum(statuses.get("todo", 0) for statuses in depth.values())
    details = {"kind": "postgresql", "workers": workers, "jobs": depth}
    if waiting and not workers:
        return _check("stale", f"{waiting} tasks wait and no worker is running: start `gpuplan worker`", **details)
    return _check("ok", **details)


def _check(status: Condition, *why: str, **details: object) -> Check:
    return Check(status=status, why=why, details=details)


def _summary(checks: Mapping[str, Check]) -> HealthReport:
    worst = max((check.status for check in checks.values()), key=_WORST.index)
    why = tuple(why for check in checks.values() for why in check.why)
    return HealthReport(status=_STATUS[worst], why=why, checks=checks)
