"""What services share: the environment, the store, the user's settings and machines, opened on first use."""

import threading
import time
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.schemas.channel import ChannelDocument
from gpuplan.api.schemas.settings_file import Environment, planner_settings, settings_file
from gpuplan.api.services.current_prices import CurrentColumns, plan_again, prepare_markets
from gpuplan.api.services.owned_machines import owned_machines
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.catalog.store.database import database_url
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store import Store
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.model.shared import Meta
from gpuplan.planner.performance.past_runs import PastRun

if TYPE_CHECKING:
    from gpuplan.providers.cloud_registry import MakeCloud

Document = JsonObject


class ServiceContext:
    """The store and what the environment names. Opens the store on first use; safe to share between threads."""

    def __init__(self, environment: Environment, *, clouds: "Mapping[str, MakeCloud] | None" = None) -> None:
        """Read nothing yet. `clouds` replaces the installed clouds."""
        self._environment = environment
        self._clouds = clouds
        self._opening = threading.Lock()
        self._store: Store | None = None
        self._columns_with_owned: Columns | None = None
        self._current = CurrentColumns(self.columns, self._prepare)
        self._read_runs: tuple[tuple[str, ...], tuple[PastRun, ...]] = (), ()
        #: The job document that was planned last. New prices are prepared for the same kind of job.
        self.last_job: Document | None = None

    @property
    def environment(self) -> Environment:
        """Where the store, the owned machines and the settings are."""
        return self._environment

    @property
    def clouds(self) -> "Mapping[str, MakeCloud]":
        """What a refresh reads, by name: the clouds, and the lists of own rates of the settings file."""
        if self._clouds is not None:
            return self._clouds
        from gpuplan.api.services.own_rates import own_rates
        from gpuplan.providers.cloud_registry import installed_clouds

        return installed_clouds() | own_rates(self._environment)

    @property
    def store(self) -> Store:
        """The store, opened and holding at least the embedded snapshot."""
        with self._opening:
            if self._store is None:
                store = Store.open(self._environment.database_url)
                store.ensure_embedded()
                self._store = store
            return self._store

    @cached_property
    def has_queue(self) -> bool:
        """Whether a queue on PostgreSQL distributes long work. Without one, this process runs it in threads."""
        return database_url(self._environment.database_url).get_backend_name() == "postgresql"

    @cached_property
    def settings(self) -> PlannerSettings:
        """The planner's settings, from the settings file if there is one."""
        return planner_settings(self._environment.settings)

    @cached_property
    def channels(self) -> tuple[ChannelDocument, ...]:
        """The channels of the settings file, to which watches send messages."""
        return settings_file(self._environment.settings).channels

    @cached_property
    def owned(self) -> tuple[OwnedMachine, ...]:
        """The owned machines of the inventory file with their calibration; none without an inventory."""
        return owned_machines(self._environment)

    def columns(self, snapshot_id: str | None = None) -> Columns:
        """The columns of a snapshot. The default is the current one; a service waits until that is prepared."""
        if snapshot_id is not None:
            return self.store.columns(snapshot_id)
        return self._current.of(self.store.current_snapshot_id())

    def columns_with_owned(self, snapshot_id: str | None = None) -> Columns:
        """The columns of a snapshot, with the owned machines as further offers."""
        columns = self.columns(snapshot_id)
        if not self.owned:
            return columns
        cached = self._columns_with_owned
        if cached is None or cached.snapshot_id != columns.snapshot_id:
            from gpuplan.providers.owned.owned_machines import offers_of

            types = [*columns.instance_types, *(machine.instance_type for machine in self.owned)]
            offers = [*columns.offers, *offers_of(self.owned)]
            cached = columns_of(columns.snapshot_id, columns.observed_at, types, offers)
            self._columns_with_owned = cached
        return cached

    def prepare_current(self) -> None:
        """Prepare the current snapshot now. Each later snapshot is then prepared when a question first needs it."""
        self._current.prepare(self.store.current_snapshot_id())

    @property
    def prepares_prices(self) -> bool:
        """Whether `prepare_current` was called, so that new prices are prepared."""
        return self._current.started

    def _prepare(self, columns: Columns) -> None:
        prepare_markets(columns, self.settings)
        if self.last_job is not None:
            plan_again(self.last_job, columns, owned=self.owned, settings=self.settings, past_runs=self.past_runs())

    def columns_and_past_runs(self, snapshot_id: str | None = None) -> tuple[Columns, tuple[PastRun, ...]]:
        """`columns` and `past_runs`; for the current snapshot one query reads both."""
        if snapshot_id is not None or self.settings.learning == "off":
            return self.columns(snapshot_id), self.past_runs()
        current, ids = self.store.at_hand()
        return self._current.of(current), self._runs_of(ids)

    def past_runs(self, *, besides: str | None = None) -> tuple[PastRun, ...]:
        """The reported runs that correct estimates; none if learning is off or no store exists yet.

        Leaves out reports on a live run of the plan `besides`.
        """
        url = self._environment.database_url
        if self.settings.learning == "off" or (self._store is None and not Store.is_there(url)):
            return ()
        if besides is not None:
            from gpuplan.planner.performance.run_comparison import past_runs

            return past_runs(
                [actual for actual in self.store.actuals() if not (actual.running and actual.plan_id == besides)]
            )
        return self._runs_of(self.store.actual_ids())

    def _runs_of(self, ids: tuple[str, ...]) -> tuple[PastRun, ...]:
        """The runs with these report ids, read again only when the ids changed."""
        cached_ids, runs = self._read_runs
        if ids != cached_ids:
            from gpuplan.planner.performance.run_comparison import past_runs

            runs = past_runs(self.store.actuals())
            self._read_runs = ids, runs
        return runs


class ContextService:
    """A service over the store and the settings of `context`."""

    def __init__(self, context: ServiceContext) -> None:
        """Read nothing yet."""
        self._context = context


def an_id(text: str, what: str) -> str:
    """Return `text` if it can be an id. Raises `NotStored` for control characters, which PostgreSQL refuses in text."""
    if not text.isprintable():
        raise NotStored.at(what, message=f"no id has control characters; accepted: the id of a stored {what}")
    return text


def answer_meta(columns: Columns, now: datetime, began: float, *, oldest_price: datetime | None = None) -> Meta:
    """The part of an answer that depends on the clock: creation time, duration and age of the prices."""
    return Meta(
        created_at=now,
        milliseconds=round((time.perf_counter() - began) * 1e3, 3),
        price_age_days=None if oldest_price is None else days_between(now, oldest_price),
        snapshot_age_days=days_between(now, columns.observed_at),
        version=gpuplan_version(),
    )


def days_between(now: datetime, then: datetime) -> float:
    """Days from `then` to `now`, to the hundredth."""
    return round((now - then).total_seconds() / 86_400, 2)
