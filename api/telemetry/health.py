"""Whether the service can answer, and on what: broken is told from stale, and both from stopping.

Broken (the store cannot be read, or is not this release's) means that other processes should be asked. Stale (prices
older than they should be) is told, yet plans go on: they say themselves how old their prices are.
"""

import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from api.app import Gpuplan
from api.telemetry.store_figures import StoreFigures
from catalog.errors import StoreFailure
from catalog.figures import Activity, ProviderPrices
from catalog.migrate import HEAD, revision_of, suits

Document = dict[str, Any]

#: Probes come every few seconds, from everybody who has heard of the service.
KEPT_SECONDS = 1.0
#: A provider most of whose prices the last refreshes could not confirm is stale, whatever the rest says.
MOST_UNCONFIRMED = 0.5
_WORST = ("ok", "stale", "broken")


class Health:
    """What `/readyz` says; looked up at most once a second, by one thread at a time."""

    def __init__(self, gpuplan: Gpuplan, figures: StoreFigures, *, stale_after_hours: float) -> None:
        """Of the store behind `gpuplan`; prices count as old after so many hours."""
        self._gpuplan, self._figures, self._limit = gpuplan, figures, stale_after_hours
        self._looking = threading.Lock()
        self._said: Document = {}
        self._until = 0.0
        self.stopping = False

    def stop(self) -> None:
        """The service was told to stop: nobody should ask it from now on."""
        self.stopping = True

    def report(self) -> Document:
        """`{"status": "ready" | "degraded" | "broken" | "stopping", "why": [...], "checks": {...}, ...}`."""
        if self.stopping:
            return {"status": "stopping", "why": ["the service was told to stop; ask another process"], "checks": {}}
        with self._looking:
            if time.monotonic() >= self._until:
                self._said = self._look()
                self._until = time.monotonic() + KEPT_SECONDS
            return self._said

    def _look(self) -> Document:
        try:
            revision, fits = self._gpuplan.store.read(_tables)
        except StoreFailure as error:
            return _said({"database": _check("broken", str(error))})
        checks = {"database": _check("ok")}
        if not fits:
            why = f"the database is at revision {revision}, this gpuplan needs {HEAD}: run `gpuplan db upgrade`"
            return _said(checks | {"migrations": _check("broken", why, revision=revision)})
        checks["migrations"] = _check("ok", revision=revision)
        try:
            ready = self._gpuplan.readiness()
            prices, activity = self._figures.prices(), self._figures.activity()
            checks["snapshot"] = _check("ok", id=ready["snapshot_id"], offers=ready["offers"])
            checks["prices"] = self._prices(prices, self._figures.refreshed())
            checks["refreshes"] = _refreshes(activity)
            checks["queue"] = _queue(self._figures)
        except StoreFailure as error:
            return _said(checks | {"database": _check("broken", str(error))})
        return {key: value for key, value in ready.items() if key != "status"} | _said(checks)

    def _prices(self, prices: tuple[ProviderPrices, ...], refreshed: Mapping[str, str]) -> Document:
        now = datetime.now(UTC)
        ages = {each.provider: round((now - each.newest_at).total_seconds() / 3600, 2) for each in prices}
        old = [f"{name} {ages[name]:.0f} hours" for name in sorted(refreshed) if ages[name] > self._limit]
        # What a whole refresh leaves stale can never be confirmed by the credentials at hand; the report counts it.
        unconfirmed = [
            f"{each.provider} {each.stale} of {each.offers}"
            for each in prices
            if each.stale > MOST_UNCONFIRMED * each.offers and refreshed.get(each.provider, "whole") != "whole"
        ]
        why = []
        if old:
            why.append(f"prices are older than {self._limit:g} hours: {', '.join(old)}; run `gpuplan refresh`")
        if unconfirmed:
            why.append(f"prices that the last refresh could not confirm: {', '.join(unconfirmed)}; see its report")
        providers = {
            each.provider: {"newest_age_hours": ages[each.provider], "offers": each.offers, "stale": each.stale}
            for each in prices
        }
        left_out = sorted(ages.keys() - refreshed.keys())
        return _check("stale" if why else "ok", *why, limit_hours=self._limit, providers=providers, left_out=left_out)


def _tables(connection: sa.Connection) -> tuple[str | None, bool]:
    """The revision of the tables, and whether this release works on them: while releases change, they may be newer."""
    revision = revision_of(connection)
    return revision, revision == HEAD or suits(connection, revision)


def _refreshes(activity: Activity) -> Document:
    """One night that left something out is told by the age of its prices; two in a row are a fault."""
    count = activity.refreshes_not_whole
    why = f"the last {count} refreshes failed or left something out; `/v1/refreshes` says what"
    return _check("stale", why, not_whole_in_a_row=count) if count > 1 else _check("ok", not_whole_in_a_row=count)


def _queue(figures: StoreFigures) -> Document:
    """Without PostgreSQL there is none: runs are threads of this process. Where work waits, somebody should live to do it."""
    depth = figures.queue()
    if depth is None:
        return _check("ok", kind="threads")
    workers = figures.workers()
    waiting = sum(each.get("todo", 0) for each in depth.values())
    said = {"kind": "postgresql", "workers": workers, "jobs": depth}
    if waiting and not workers:
        return _check("stale", f"{waiting} tasks wait and no worker lives: start `gpuplan worker`", **said)
    return _check("ok", **said)


def _check(status: str, *why: str, **more: object) -> Document:
    return {"status": status} | ({"why": list(why)} if why else {}) | more


def _said(checks: dict[str, Document]) -> Document:
    worst = max((each["status"] for each in checks.values()), key=_WORST.index)
    status = {"ok": "ready", "stale": "degraded", "broken": "broken"}[worst]
    return {"status": status, "why": [why for each in checks.values() for why in each.get("why", ())], "checks": checks}
