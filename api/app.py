"""The composition root: one object that holds store, inventory and assumptions, and that every door calls.

The command line and HTTP parse, call a method here and render; neither knows where prices come from.
Whatever changes by the clock (when, how long it took, how old the prices are) sits under `meta`, apart
from the part of an answer that is the same for the same job, start, snapshot, settings and version.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from api.catalogue import OfferFilter, accelerator_rows, matching, offer_rows
from api.documents.channel import ChannelDocument
from api.own_machines import owned_machines
from api.settings import Environment, planner_settings, settings_file
from api.version import gpuplan_version
from catalog.columns import Columns, columns_of
from catalog.errors import StoreFailure
from catalog.owned import OwnedMachine
from catalog.snapshot_list import NotStored, StoredSnapshot
from catalog.store import Store
from planner.past_runs import PastRun
from planner.settings import PlannerSettings

if TYPE_CHECKING:
    from api.history import DiffPage, HistoryFilter, PricePage
    from planner.portfolio.search import Progress as SearchProgress
    from providers.clouds import MakeCloud
    from providers.gather import Progress

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPage:
    """Part of the matching offers: `rows`, how many match in `total`, and where the next page starts, if any."""

    snapshot_id: str
    rows: Iterator[Document]
    total: int
    next_index: int | None


class Gpuplan:
    """Everything gpuplan can be asked. Opens the store on first use; safe to share between threads.

    Methods take and give JSON objects. They raise `UnusableInput` for what the user can mend and
    `StoreFailure` where the database cannot be read or written.
    """

    def __init__(self, environment: Environment, *, clouds: "Mapping[str, MakeCloud] | None" = None) -> None:
        """With what the environment names; nothing is read yet. `clouds` are those that there are, unless given."""
        self._environment = environment
        self._clouds = clouds
        self._opening = threading.Lock()
        self._store: Store | None = None
        self._with_owned: Columns | None = None
        self._read_runs: tuple[tuple[str, ...], tuple[PastRun, ...]] = (), ()

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

    def warm_up(self) -> None:
        """Read settings, inventory and store now, and load the planner.

        So a service refuses to start on a broken one, and its first request waits for nothing.
        """
        for module in ("api.documents.estimate_request", "planner.document", "planner.estimate.single", "planner.plan"):
            import_module(module)
        _ = self.owned
        from planner.candidates.market import held_markets
        from planner.discounts import discounted

        held_markets(discounted(self.columns(), self.settings.discounts), self.settings.held)

    def columns(self, snapshot_id: str | None = None) -> Columns:
        """The columns of a snapshot, the current one by default."""
        return self.store.columns(self.store.current_snapshot_id() if snapshot_id is None else snapshot_id)

    def plan(
        self,
        document: Document,
        *,
        frontier: bool = False,
        snapshot: str | None = None,
        now: datetime | None = None,
        save: bool = True,
    ) -> Document:
        """The cheapest plan for a job document, or why there is none; saved under its id unless `save` is off.

        The answer is `{"outcome": "planned", "plan": ..., "meta": ...}` or `{"outcome": "infeasible", ...}`.
        """
        from api.documents.job import canonical, parse_job

        began = time.perf_counter()
        now = now or datetime.now(UTC)
        job = parse_job(document, now=now)
        # Only now: a job that cannot be read is refused without waiting for the planner's libraries.
        from planner.answer import Planned
        from planner.document import document as as_document
        from planner.plan import plan

        columns = self.columns(snapshot)
        outcome = plan(
            job, columns, owned=self.owned, settings=self.settings, past_runs=self.past_runs(), frontier=frontier
        )
        echoed = canonical(job)
        answer: Document = as_document(outcome, echoed, version=gpuplan_version())
        solver = outcome.proof.certificate.milliseconds if isinstance(outcome, Planned) else None
        answer |= {"meta": _meta(answer, columns, now, began) | {"solver_milliseconds": solver}}
        if save:
            self.save_plan(answer, now)
        return answer

    def portfolio(
        self,
        document: Document,
        *,
        time_limit_s: float | None = 60.0,
        iterations: int | None = None,
        seed: int = 0,
        snapshot: str | None = None,
        now: datetime | None = None,
        report: "Callable[[SearchProgress], None] | None" = None,
    ) -> Document:
        """The best plan found for many jobs together, with its proven gap: `{"portfolio": ..., "meta": ...}`.

        `report` is told each step of the search. With `iterations` and no time limit the answer rests on the seed.
        """
        from api.portfolio import plan_document

        now = now or datetime.now(UTC)
        from planner.portfolio.answer import Limits

        limits = Limits(time_limit_s=time_limit_s, iterations=iterations, seed=seed)
        quotas = settings_file(self._environment.settings).quotas
        return plan_document(self, document, quotas, snapshot=snapshot, now=now, report=report, limits=limits)

    def buy(self, document: Document, *, snapshot: str | None = None, now: datetime | None = None) -> Document:
        """What to own, commit to and rent for a forecast of jobs: `{"outcome": "decided", "decision": ..., "meta": ...}`."""
        from api.documents.forecast import parse_forecast

        began = time.perf_counter()
        now = now or datetime.now(UTC)
        forecast = replace(parse_forecast(document, now=now), past_runs=self.past_runs())
        from planner.buying.decide import decide
        from planner.buying.document import document as as_document

        columns = self.columns(snapshot)
        found = decide(forecast, columns, self.settings)
        answer: Document = as_document(found, self.settings, version=gpuplan_version())
        return answer | {"meta": _meta(answer, columns, now, began)}

    def save_plan(self, answer: Document, now: datetime) -> None:
        """Save an answer of `plan` under its id."""
        body = _body(answer)
        self.store.save_plan(body["id"], body["snapshot_id"], body["job"], answer, now)

    def saved_plan(self, plan_id: str) -> Document:
        """The answer saved under `plan_id`, as it was given. Raises `UnusableInput` if there is none."""
        return self.store.plan(_an_id(plan_id, "plan")).outcome

    def report_actuals(self, plan_id: str, document: Document, *, now: datetime | None = None) -> Document:
        """Keep what a run of a plan measured, and show it against the plan; the same report twice is one."""
        saved = self.store.plan(_an_id(plan_id, "plan"))
        from api.actuals import report

        return report(self.store, saved, document, now or datetime.now(UTC))

    def actuals(self, plan_id: str | None = None) -> Document:
        """What runs of a plan, or of all plans, measured, against the prediction, and what they teach."""
        if plan_id is not None:
            self.saved_plan(plan_id)
        from api.actuals import listed

        return listed(self.store, plan_id, learning=self.settings.learning == "on")

    def forget_actuals(self, actual_id: str | None = None) -> Document:
        """Forget one report, or all of them; estimates are then as if it had never been given."""
        if actual_id is None:
            return {"forgotten": self.store.forget_actuals()}
        self.store.forget_actual(_an_id(actual_id, "actual"))
        return {"forgotten": 1}

    def add_watch(self, document: Document, *, now: datetime | None = None) -> Document:
        """Watch a job from now on: it is planned on each new snapshot, and channels are told what changed."""
        from api.watches.keeping import add

        return add(self, document, now or datetime.now(UTC))

    def watches(self) -> Document:
        """Every watched job, the oldest first."""
        from api.watches.keeping import listed

        return listed(self)

    def watch(self, watch_id: str) -> Document:
        """One watched job and all that was told of it. Raises `NotStored` if there is none."""
        from api.watches.keeping import one

        return one(self, _an_id(watch_id, "watch"))

    def forget_watch(self, watch_id: str) -> Document:
        """Watch a job no longer; what was not sent yet is not sent. Raises `NotStored` if there is none."""
        self.store.watching.forget(_an_id(watch_id, "watch"))
        return {"forgotten": 1}

    def refresh(
        self, document: Document, *, began: Callable[[Document], None] | None = None, progress: "Progress | None" = None
    ) -> Document:
        """Pull live prices into a new snapshot, plan watched jobs on it, and say what came of it.

        `began` is told the refresh's id once it runs, `progress` each region. Raises `RefreshRunning` if another is
        running on the same store.
        """
        from api.documents.refresh import parse_refresh
        from api.refresh import Watching, nobody, run_refresh
        from api.refresh_report import stored, with_watches
        from providers.clouds import installed_clouds
        from providers.gather import no_progress

        wanted = parse_refresh(document)
        _ = self.channels  # a settings file that cannot be read is said before anything is asked
        answer = run_refresh(
            self.store,
            wanted,
            installed_clouds() if self._clouds is None else self._clouds,
            self._environment.sources(),
            retain=self.retain,
            watching=Watching(began=began or nobody, progress=progress or no_progress),
        )
        try:
            answer = with_watches(answer, self.check_watches())
            self.store.rewrite_report(answer["id"], stored(answer))
        except StoreFailure as error:
            what = "watches were not checked" if answer["watches"] is None else "the report does not keep its watches"
            answer = with_watches(answer, answer["watches"], f"{what}: {error}")
        return answer

    def refreshes(self) -> Document:
        """What the last refreshes did, the newest first, in short."""
        from api.refresh_report import in_short

        return {"refreshes": [in_short(each.report) for each in self.store.refreshes()]}

    def refresh_report(self, refresh_id: str) -> Document:
        """What one refresh did. Raises `NotStored` if there is none."""
        return self.store.refresh(_an_id(refresh_id, "refresh")).report

    def check_watches(self, *, now: datetime | None = None) -> Document:
        """Plan every watched job on the current snapshot, and send what is to be told."""
        from api.watches.check import check_watches

        return check_watches(self, self.store.current_snapshot_id(), now or datetime.now(UTC))

    def try_channel(self, name: str) -> Document:
        """Send a test message to a channel. Raises `ProviderFailure` if nobody takes it."""
        from api.watches.keeping import try_out

        return try_out(self, name, datetime.now(UTC))

    def past_runs(self) -> tuple[PastRun, ...]:
        """What the user's own runs say of estimates; nothing if learning is off, or there is no store yet."""
        url = self._environment.database_url
        if self.settings.learning == "off" or (self._store is None and not Store.is_there(url)):
            return ()
        ids = self.store.actual_ids()
        known, runs = self._read_runs
        if ids != known:
            from planner.actuals import past_runs

            runs = past_runs(self.store.actuals())
            self._read_runs = ids, runs
        return runs

    def estimate(self, document: Document, *, now: datetime | None = None) -> Document:
        """Time and memory of a job on one given configuration: no prices, and of the store the user's own runs alone."""
        from api.documents.estimate_request import parse_estimate_request

        job, on = parse_estimate_request(document, now=now or datetime.now(UTC))
        from planner.estimate.learned import learned_from
        from planner.estimate.single import On, estimate_on
        from planner.workload import work_of

        work = work_of(job.workload, job.training)
        learned = learned_from(self.past_runs(), work.task)
        answer: Document = estimate_on(work, job.training, On(**on), goodput=self.settings.goodput, learned=learned)
        return answer

    def offers(
        self, wanted: OfferFilter, *, snapshot: str | None = None, start: int = 0, limit: int | None = None
    ) -> OfferPage:
        """The offers that match, own machines among them, from the `start`-th on."""
        columns = self.columns_with_owned(snapshot)
        found = matching(columns, wanted)
        end = len(found) if limit is None else min(len(found), start + limit)
        return OfferPage(
            snapshot_id=columns.snapshot_id,
            rows=offer_rows(columns, found[start:end]),
            total=len(found),
            next_index=end if end < len(found) else None,
        )

    def columns_with_owned(self, snapshot: str | None) -> Columns:
        """The snapshot's columns, with the user's own machines as offers among them."""
        columns = self.columns(snapshot)
        if not self.owned:
            return columns
        kept = self._with_owned
        if kept is None or kept.snapshot_id != columns.snapshot_id:
            from providers.local import offers_of

            types = [*columns.instance_types, *(each.instance_type for each in self.owned)]
            offers = [*columns.offers, *offers_of(self.owned)]
            kept = self._with_owned = columns_of(columns.snapshot_id, columns.observed_at, types, offers)
        return kept

    def catalogue_version(self, snapshot: str | None) -> str:
        """What a listing of offers rests on: the snapshot, the user's own machines, and this release."""
        machines = hashlib.sha256(repr(self.owned).encode()).hexdigest()[:16] if self.owned else ""
        return f"{self.columns(snapshot).snapshot_id} {machines} {gpuplan_version()}"

    def presets(self) -> list[Document]:
        """The models known by name."""
        from planner.workload.presets import presets

        return [asdict(each) for each in presets().values()]

    def accelerators(self) -> list[Document]:
        """Every accelerator known, as rows."""
        return accelerator_rows()

    def snapshots(self) -> list[Document]:
        """The snapshots in the store, newest first, each with whether it is the current one."""
        current = self.store.current_snapshot_id()
        return [_snapshot_row(each, current) for each in self.store.snapshots()]

    def prices(
        self, wanted: "HistoryFilter", *, snapshot: str | None = None, start: int = 0, limit: int | None = None
    ) -> "PricePage":
        """Prices of one instance type over time, up to a snapshot (the current one by default)."""
        from api.history import price_page

        end = self.store.find_snapshot(self.store.current_snapshot_id() if snapshot is None else snapshot).id
        return price_page(self.store, wanted, snapshot_id=end, start=start, limit=limit)

    def history_version(self, snapshot: str | None) -> str:
        """What a history up to a snapshot rests on: that and all others there are, and this release."""
        end = self.store.current_snapshot_id() if snapshot is None else snapshot
        return f"{end} {' '.join(each.id for each in self.store.snapshots())} {gpuplan_version()}"

    def compared(
        self, before: str | None, after: str | None, *, field: str = "against"
    ) -> tuple[StoredSnapshot, StoredSnapshot]:
        """Two snapshots to compare: the current one and the one that it followed, where none is named."""
        from api.history import compared

        return compared(self.store, before, after, field=field)

    def diff(
        self,
        before: StoredSnapshot,
        after: StoredSnapshot,
        *,
        provider: str | None = None,
        start: int = 0,
        limit: int | None = None,
    ) -> "DiffPage":
        """What one snapshot changes against another, the largest moves of a price first."""
        from api.history import diff_page

        return diff_page(self.store, before, after, provider=provider, start=start, limit=limit)

    def retain(self, *, now: datetime | None = None) -> Document:
        """Forget what the settings file lets go, and count it; for the end of a refresh."""
        policy = settings_file(self._environment.settings).retention.policy()
        return asdict(self.store.retain(policy, now or datetime.now(UTC)))

    def readiness(self) -> Document:
        """Which snapshot is loaded and how old it is; raises `StoreFailure` when the store cannot be read."""
        self.store.ping()
        columns = self.columns()
        now = datetime.now(UTC)
        return {
            "status": "ready",
            "snapshot_id": columns.snapshot_id,
            "offers": len(columns),
            "observed_at": columns.observed_at.isoformat(),
            "age_days": _days(now, columns.observed_at),
            "last_refresh": self._last_refresh(now),
        }

    def _last_refresh(self, now: datetime) -> Document | None:
        """How the last refresh went and how long ago, None before the first."""
        last = self.store.last_refresh()
        if last is None:
            return None
        whole = self.store.last_whole_refresh_at()
        return {
            "id": last.id,
            "outcome": last.outcome,
            "finished_at": last.finished_at.isoformat(),
            "age_days": _days(now, last.finished_at),
            "last_whole_age_days": None if whole is None else _days(now, whole),
        }


def _an_id(text: str, what: str) -> str:
    """The text, if it can be an id: PostgreSQL takes no NUL in text, and no id of ours has anything of the kind."""
    if not text.isprintable():
        raise NotStored.at(what, message=f"no id has control characters; accepted: the id of a stored {what}")
    return text


def _body(answer: Document) -> Document:
    """The plan, or the infeasible part, of an answer."""
    body: Document = answer.get("plan") or answer.get("infeasible") or {}
    return body


def _meta(outcome: Document, columns: Columns, now: datetime, began: float) -> Document:
    """What changes by the clock: when, how long it took, and how old prices were at that time."""
    observed = [
        phase["price_observed_at"] for phase in _body(outcome).get("phases", ()) if phase.get("price_observed_at")
    ]
    oldest = min((datetime.fromisoformat(text) for text in observed), default=None)
    return {
        "created_at": now.isoformat(),
        "milliseconds": round((time.perf_counter() - began) * 1e3, 3),
        "price_age_days": _days(now, oldest) if oldest else None,
        "snapshot_age_days": _days(now, columns.observed_at),
        "version": gpuplan_version(),
    }


def _days(now: datetime, then: datetime) -> float:
    return round((now - then).total_seconds() / 86_400, 2)


def _snapshot_row(snapshot: StoredSnapshot, current: str) -> Document:
    """One snapshot as JSON."""
    return {
        "id": snapshot.id,
        "observed_at": snapshot.observed_at.isoformat(),
        "created_at": snapshot.created_at.isoformat(),
        "source": snapshot.source,
        "offers": snapshot.offer_count,
        "current": snapshot.id == current,
    }
