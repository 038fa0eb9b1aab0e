"""What every question needs: the environment, the store, the user's assumptions and machines, opened on first use."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from api.documents.channel import ChannelDocument
from api.own_machines import owned_machines
from api.questions.current import CurrentColumns
from api.settings import Environment, planner_settings, settings_file
from api.version import gpuplan_version
from catalog.columns import Columns
from catalog.database import database_url
from catalog.errors import UnusableInput
from catalog.owned import OwnedMachine
from catalog.snapshot_list import NotStored
from catalog.store import Store
from planner.past_runs import PastRun
from planner.settings import PlannerSettings

if TYPE_CHECKING:
    from api.planning_processes.pool import PlanningProcesses
    from providers.clouds import MakeCloud

Document = dict[str, Any]


class Opened:
    """The store and what the environment names. Opens the store on first use; safe to share between threads."""

    def __init__(self, environment: Environment, *, clouds: "Mapping[str, MakeCloud] | None" = None) -> None:
        """With what the environment names; nothing is read yet. `clouds` are those that there are, unless given."""
        self._environment = environment
        self._clouds = clouds
        self._opening = threading.Lock()
        self._store: Store | None = None
        self._with_owned: Columns | None = None
        self._current = CurrentColumns(self.columns, self.arrange)
        self._read_runs: tuple[tuple[str, ...], tuple[PastRun, ...]] = (), ()
        self._processes: PlanningProcesses | None = None

    @property
    def environment(self) -> Environment:
        """Where store, own machines and settings are: what another process needs to answer the same."""
        return self._environment

    def plan_in(self, processes: "PlanningProcesses") -> None:
        """From now on questions are worked out in these processes, which whoever made them ends."""
        self._processes = processes

    def worked_out[**Given, Answer](
        self, method: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """What `method`, one of this object's own that writes nothing, gives: here, or in a planning process."""
        if self._processes is None:
            return method(*args, **kwargs)
        answer: Answer = self._processes.work_out(method.__name__, args, kwargs)
        return answer

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
        """Whether long work is handed out by a queue, which PostgreSQL carries; else this process does it in threads."""
        return database_url(self._environment.database_url).get_backend_name() == "postgresql"

    @cached_property
    def settings(self) -> PlannerSettings:
        """The planner's assumptions, from the settings file if there is one."""
        return planner_settings(self._environment.settings)

    @cached_property
    def channels(self) -> tuple[ChannelDocument, ...]:
        """Where watches may send their messages, from the settings file."""
        return settings_file(self._environment.settings).channels

    @cached_property
    def owned(self) -> tuple[OwnedMachine, ...]:
        """The user's own machines, from the inventory file if there is one, with what was measured on them."""
        return owned_machines(self._environment)

    def columns(self, snapshot_id: str | None = None) -> Columns:
        """The columns of a snapshot; by default of the current one, for which a service waits until it is prepared."""
        if snapshot_id is not None:
            return self.store.columns(snapshot_id)
        return self._current.of(self.store.current_snapshot_id())

    def prepare_current(self) -> None:
        """Make the current snapshot ready for questions now; from then on later ones are prepared when they are found."""
        self._current.prepare(self.store.current_snapshot_id())

    def arrange(self, columns: Columns) -> None:
        """Have the planner make of a snapshot what its first question would wait for, at the user's own prices."""
        from planner.candidates.market import held_markets, rented
        from planner.discounts import discounted

        columns = discounted(columns, self.settings.discounts)
        held_markets(columns, self.settings.held)
        # Prices that no plan can rest on are still a catalogue; who asks for a plan is told.
        with suppress(UnusableInput):
            rented(columns)

    def at_hand(self, snapshot_id: str | None = None) -> tuple[Columns, tuple[PastRun, ...]]:
        """`columns` and `past_runs`; of the current snapshot in one read of the store."""
        if snapshot_id is not None or self.settings.learning == "off":
            return self.columns(snapshot_id), self.past_runs()
        current, ids = self.store.at_hand()
        return self._current.of(current), self._runs_of(ids)

    def past_runs(self, *, besides: str | None = None) -> tuple[PastRun, ...]:
        """What the user's own runs say of estimates; nothing if learning is off, or there is no store yet.

        Reports on a run of the plan `besides` that is still going on are left out.
        """
        url = self._environment.database_url
        if self.settings.learning == "off" or (self._store is None and not Store.is_there(url)):
            return ()
        if besides is not None:
            from planner.actuals import past_runs

            return past_runs([each for each in self.store.actuals() if not (each.running and each.plan_id == besides)])
        return self._runs_of(self.store.actual_ids())

    def _runs_of(self, ids: tuple[str, ...]) -> tuple[PastRun, ...]:
        """What the reports with these ids say, read again only where they changed."""
        known, runs = self._read_runs
        if ids != known:
            from planner.actuals import past_runs

            runs = past_runs(self.store.actuals())
            self._read_runs = ids, runs
        return runs


def an_id(text: str, what: str) -> str:
    """The text, if it can be an id: PostgreSQL takes no NUL in text, and no id of ours has anything of the kind."""
    if not text.isprintable():
        raise NotStored.at(what, message=f"no id has control characters; accepted: the id of a stored {what}")
    return text


def body_of(answer: Document) -> Document:
    """The plan, or the infeasible part, of an answer."""
    body: Document = answer.get("plan") or answer.get("infeasible") or {}
    return body


def meta(outcome: Document, columns: Columns, now: datetime, began: float) -> Document:
    """What changes by the clock: when, how long it took, and how old prices were at that time."""
    observed = [
        phase["price_observed_at"] for phase in body_of(outcome).get("phases", ()) if phase.get("price_observed_at")
    ]
    oldest = min((datetime.fromisoformat(text) for text in observed), default=None)
    return {
        "created_at": now.isoformat(),
        "milliseconds": round((time.perf_counter() - began) * 1e3, 3),
        "price_age_days": days_between(now, oldest) if oldest else None,
        "snapshot_age_days": days_between(now, columns.observed_at),
        "version": gpuplan_version(),
    }


def days_between(now: datetime, then: datetime) -> float:
    """Days from `then` to `now`, to the hundredth."""
    return round((now - then).total_seconds() / 86_400, 2)
