"""The columns of the current snapshot, switched only when a new snapshot is fully prepared.

Reading a snapshot and preparing it for the planner takes about a second. The question that first meets a new snapshot, and
all questions beside it, wait for that: a user who has seen a refresh end plans on its prices. Preparation runs in a
thread of its own, so that it outlives a question that is cut off. If it takes too long, questions meanwhile use the last
snapshot as a whole, never a mixture of both.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.runtime.time_limit import OutOfTime, at_most
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance.past_runs import PastRun

log = logging.getLogger("gpuplan.prices")

#: How long a question waits for new prices: several times what preparation takes on an idle core.
MOST_WAIT_SECONDS = 5.0
#: Nobody requested this plan, so new prices do not wait for it any longer.
MOST_PLANNING_SECONDS = 5.0


class CurrentColumns:
    """Columns by the id of the current snapshot; safe to share between threads.

    Before the first call of `prepare`, and after a failed preparation, a question loads its columns itself and gets the
    error of that, as in a process that answers one question.
    """

    def __init__(
        self,
        load: Callable[[str], Columns],
        arrange: Callable[[Columns], None],
        *,
        most_wait_seconds: float = MOST_WAIT_SECONDS,
    ) -> None:
        """`load` reads a snapshot; `arrange` fills the planner's caches for it."""
        self._load, self._arrange, self._most_wait_seconds = load, arrange, most_wait_seconds
        self._changing = threading.Condition()
        self._ready: Columns | None = None
        self._preparing: str | None = None
        self._failed: str | None = None

    @property
    def started(self) -> bool:
        """Whether a snapshot was prepared, so that later ones are prepared too."""
        return self._ready is not None

    def of(self, current: str) -> Columns:
        """The columns of this snapshot, prepared while the question waits; the last ones if that takes too long."""
        ready = self._ready
        if ready is not None and ready.snapshot_id == current:
            return ready
        if ready is None or self._failed == current:
            return self._load(current)
        with self._changing:
            begun, self._preparing = self._preparing == current, current
        if not begun:
            threading.Thread(target=self._beside, args=(current,), name="new prices", daemon=True).start()
        with self._changing:
            self._changing.wait_for(lambda: self._preparing != current, self._most_wait_seconds)
            now, failed = self._ready or ready, self._failed == current
        return self._load(current) if failed else now

    def prepare(self, current: str) -> None:
        """Prepare this snapshot in this thread; questions use it from then on."""
        with self._changing:
            self._preparing = current
        columns = self._load(current)
        self._arrange(columns)
        with self._changing:
            # A newer snapshot may have overtaken this one in the meantime.
            if self._preparing == current:
                self._ready, self._preparing, self._failed = columns, None, None
                self._changing.notify_all()

    def _beside(self, current: str) -> None:
        """`prepare` in its own thread. A failure goes to the log; the next question tries again and gets the error."""
        try:
            self.prepare(current)
        except (StoreFailure, UnusableInput) as error:
            log.warning("snapshot %s could not be prepared: %s", current, error)
        finally:
            with self._changing:
                if self._preparing == current:
                    self._preparing, self._failed = None, current
                    self._changing.notify_all()


def prepare_markets(columns: Columns, settings: PlannerSettings) -> None:
    """Fill the planner's caches for a snapshot at the prices that a plan for today is made at."""
    from gpuplan.planner.candidates.estimate_cache import prepare_rows
    from gpuplan.planner.candidates.markets import commitment_markets, rented
    from gpuplan.planner.cost.planned_prices import planned_prices

    columns = planned_prices(columns, settings, datetime.now(UTC))
    commitment_markets(columns, settings.held)
    # A snapshot without any price to plan on is still a catalogue. A request for a plan gets the error.
    with suppress(UnusableInput):
        prepare_rows(rented(columns).snapshot.shapes)


def plan_again(
    document: JsonObject,
    columns: Columns,
    *,
    owned: tuple[OwnedMachine, ...],
    settings: PlannerSettings,
    past_runs: tuple[PastRun, ...],
) -> None:
    """Plan the last job on new prices, so that the planner's caches hold the steps of this kind of job."""
    from gpuplan.api.schemas.job import parse_job
    from gpuplan.planner.cost.spend_commitments import with_spending
    from gpuplan.planner.planning import plan

    # A job that these prices refuse, or that takes long, fails when a user plans it; here nobody waits for the answer.
    with suppress(UnusableInput, OutOfTime), at_most(MOST_PLANNING_SECONDS):
        job = parse_job(document, now=datetime.now(UTC))
        plan(job, columns, owned=owned, settings=with_spending(settings, columns), past_runs=past_runs)
