"""Prometheus metrics of the store: ages of prices, refreshes, runs, messages, connections, disk space.

Looked up at most every few seconds and never on the event loop; an unreadable store is a metric too.
"""

import shutil
import threading
import time
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gpuplan.api.observability.refresh_metrics import OUTCOMES
from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.database import sqlite_file
from gpuplan.catalog.store.store import Store
from gpuplan.catalog.store.store_counts import Activity, ProviderPrices, activity, database_bytes, provider_prices

CACHE_SECONDS = 5.0

#: The number of jobs per queue and status.
QueueDepth = dict[str, dict[str, int]]


class StoreFigures(Collector):
    """Figures of the store of a `Services`, cached for a few seconds; thread-safe."""

    def __init__(self, gpuplan: Services) -> None:
        """Nothing is looked up yet."""
        self._gpuplan = gpuplan
        self._looking = threading.Lock()
        self._prices: tuple[str, tuple[ProviderPrices, ...]] = "", ()
        self._kept: list[Metric] = []
        self._until = 0.0

    def prices(self) -> tuple[ProviderPrices, ...]:
        """The current snapshot's prices by provider, counted once per snapshot. Raises `StoreFailure`."""
        store = self._gpuplan.store
        current = store.current_snapshot_id()
        known, prices = self._prices
        if known != current:
            prices = store.read(lambda connection: provider_prices(connection, current))
            self._prices = current, prices
        return prices

    def refreshed(self) -> dict[str, str]:
        """The outcome of the last refresh by provider; "" for a provider that it did not query although an earlier
        refresh did.

        A provider that no refresh has ever read and the last one did not query is excluded by choice (`gpuplan refresh
        --provider aws,azure`): its prices are those included in gpuplan. Before the first refresh there is none. Raises
        `StoreFailure`.
        """
        store, prices = self._gpuplan.store, self.prices()
        last = store.last_refresh()
        if last is None:
            return {price.provider: "" for price in prices}
        read_at = store.refresh_times()
        asked = last.report.get("asked", [price.provider for price in prices])
        outcomes = {row["provider"]: row["outcome"] for row in last.report.get("providers", ())}
        return {
            price.provider: outcomes.get(price.provider, "")
            for price in prices
            if price.provider in asked or price.newest_at in read_at
        }

    def activity(self) -> Activity:
        """Current activity of the store. Raises `StoreFailure`."""
        return self._gpuplan.store.read(activity)

    def queue(self) -> QueueDepth | None:
        """The number of jobs per queue and status; None if runs are threads of the service. Raises `StoreFailure`."""
        store = self._gpuplan.store
        if sqlite_file(store.url) is not None:
            return None
        from gpuplan.api.jobs.queue.task_queue import queue_depth

        return queue_depth(store)

    def workers(self) -> int:
        """The number of queue workers with a recent heartbeat. Raises `StoreFailure`."""
        from gpuplan.api.jobs.queue.task_queue import Queue

        return Queue(self._gpuplan.store).workers()

    def collect(self) -> Iterator[Metric]:
        """All metrics, or only that the store is down."""
        with self._looking:
            if time.monotonic() >= self._until:
                self._kept = self._look()
                self._until = time.monotonic() + CACHE_SECONDS
            cached = self._kept
        yield from cached

    def _look(self) -> list[Metric]:
        try:
            store = self._gpuplan.store
            metrics = [*_prices(self.prices(), self.refreshed()), *_activity(self.activity()), *self._work()]
            metrics += [
                _gauge("gpuplan_store_up", "1 if the store can be read", 1),
                *_room(store),
                *_connections(store),
            ]
        except StoreFailure:
            return [_gauge("gpuplan_store_up", "1 if the store can be read", 0)]
        return metrics

    def _work(self) -> Iterator[Metric]:
        depth = self.queue()
        if depth is None:
            return
        jobs = _gauge("gpuplan_queue_jobs", "Jobs in the queue", labels=("queue", "status"))
        for queue, counts in depth.items():
            for status, count in counts.items():
                jobs.add_metric((queue, status), count)
        yield jobs
        yield _gauge("gpuplan_queue_workers", "Workers of the queue that live", self.workers())


def _gauge(name: str, text: str, value: float | None = None, labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value, labels=labels or None)


def _prices(prices: tuple[ProviderPrices, ...], refreshed: Collection[str]) -> Iterator[Metric]:
    """Ages only of providers that are `refreshed`: a provider that is excluded by choice must not raise alerts."""
    now = datetime.now(UTC)
    age = _gauge("gpuplan_price_age_seconds", "How old prices are now", labels=("provider", "row"))
    offers = _gauge("gpuplan_offers", "Prices in the snapshot", labels=("provider",))
    stale = _gauge("gpuplan_offers_stale", "Prices that a refresh could not confirm", labels=("provider",))
    for price in prices:
        if price.provider in refreshed:
            age.add_metric((price.provider, "newest"), max(0.0, (now - price.newest_at).total_seconds()))
            age.add_metric((price.provider, "oldest"), max(0.0, (now - price.oldest_at).total_seconds()))
        offers.add_metric((price.provider,), price.offers)
        stale.add_metric((price.provider,), price.stale)
    yield from (age, offers, stale)


def _activity(now: Activity) -> Iterator[Metric]:
    if now.last_whole_at is not None:
        text = "When a refresh last left nothing out"
        yield _gauge("gpuplan_refresh_last_success_timestamp_seconds", text, now.last_whole_at.timestamp())
    text = "How many of the last refreshes left something out, counted back to the last that did not"
    yield _gauge("gpuplan_refreshes_not_whole", text, now.refreshes_not_whole)
    if now.refreshes:
        last = now.refreshes[0]
        seconds = (last.finished_at - last.started_at).total_seconds()
        yield _gauge("gpuplan_refresh_duration_seconds", "How long the last refresh took", seconds)
        name = "gpuplan_refresh_finished_timestamp_seconds"
        yield _gauge(name, "When the last refresh ended", last.finished_at.timestamp())
        outcome = _gauge("gpuplan_refresh_outcome", "1 for the outcome of the last refresh", labels=("outcome",))
        for outcome_name in OUTCOMES:
            outcome.add_metric((outcome_name,), outcome_name == last.outcome)
        yield outcome
    runs = _gauge("gpuplan_runs", "Runs in the store", labels=("kind", "status"))
    for (kind, status), count in now.runs.items():
        runs.add_metric((kind, status), count)
    yield runs
    notifications = _gauge("gpuplan_notifications", "Messages of watches in the store", labels=("status",))
    notifications.add_metric(("waiting",), now.notifications_waiting)
    notifications.add_metric(("given_up",), now.notifications_given_up)
    yield notifications


def _connections(store: Store) -> Iterator[Metric]:
    pool = store.engine.pool
    if not isinstance(pool, sa.QueuePool):
        return
    most = "Connections of this process that are kept open"
    yield _gauge("gpuplan_database_pool_size", most, pool.size())
    used = "Connections of this process in use"
    yield _gauge("gpuplan_database_connections_in_use", used, pool.checkedout())


def _room(store: Store) -> Iterator[Metric]:
    size = store.read(lambda connection: database_bytes(connection, store.url))
    yield _gauge("gpuplan_database_bytes", "Size of the database", size)
    path = sqlite_file(store.url)
    if path is not None:
        free = "Free room where the database is"
        yield _gauge("gpuplan_disk_free_bytes", free, shutil.disk_usage(Path(path).parent).free)
