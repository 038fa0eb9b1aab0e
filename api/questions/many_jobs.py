"""What may be asked of many jobs together: run them at least cost, and own, commit or rent for a forecast."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from api.identity.asking import owner
from api.questions.counted import Counted
from api.questions.opened import Document, meta
from api.settings import settings_file
from api.version import gpuplan_version
from catalog.runs import Run

if TYPE_CHECKING:
    from planner.portfolio.progress import Progress as SearchProgress


class ManyJobs(Counted):
    """Questions about many jobs."""

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
        cancelled: Callable[[], bool] | None = None,
    ) -> Document:
        """The best plan found for many jobs together, with its proven gap: `{"portfolio": ..., "meta": ...}`.

        `report` is told each step of the search; once `cancelled` says yes, the best plan so far is the answer. With
        `iterations` and no time limit the answer rests on the seed.
        """
        from api.portfolio import plan_document

        now = now or datetime.now(UTC)
        from planner.portfolio.answer import Limits

        limits = Limits(time_limit_s=time_limit_s, iterations=iterations, seed=seed)
        quotas = settings_file(self._environment.settings).quotas
        return plan_document(
            self, document, quotas, snapshot=snapshot, now=now, report=report, limits=limits, cancelled=cancelled
        )

    def check_portfolio(self, document: Document, *, snapshot: str | None = None, now: datetime) -> str:
        """The id of the snapshot that the portfolio would be planned on; reads the document and plans nothing.

        Raises `UnusableInput` for a document that cannot be read, `NotStored` for no such snapshot.
        """
        from api.documents.portfolio import parse_portfolio

        with self.refusals_noted("portfolio"):
            parse_portfolio(document, now=now, quotas=settings_file(self._environment.settings).quotas)
            return self.store.current_snapshot_id() if snapshot is None else self.store.find_snapshot(snapshot).id

    def check_buy(self, document: Document, *, snapshot: str | None = None, now: datetime | None = None) -> None:
        """Raises `UnusableInput` for a forecast that `buy` could not read, `NotStored` for no such snapshot."""
        from api.documents.forecast import parse_forecast

        with self.refusals_noted("buy"):
            parse_forecast(document, now=now or datetime.now(UTC))
            if snapshot is not None:
                self.store.find_snapshot(snapshot)

    def buy(
        self, document: Document, *, snapshot: str | None = None, now: datetime | None = None, save: bool = False
    ) -> Document:
        """What to own, commit to and rent for a forecast of jobs: `{"outcome": "decided", "decision": ..., "meta": ...}`.

        With `save`, a decision can be read again under its id.
        """
        now = now or datetime.now(UTC)
        answer = self.worked_out(self._decide, document, snapshot=snapshot, now=now)
        if save and "decision" in answer:
            self.store.runs.add(_decided(document, answer, now), owner=owner())
        return answer

    def _decide(self, document: Document, *, snapshot: str | None, now: datetime) -> Document:
        from api.documents.forecast import parse_forecast

        began = time.perf_counter()
        forecast = replace(parse_forecast(document, now=now), past_runs=self.past_runs())
        from planner.buying.decide import decide
        from planner.buying.document import document as as_document

        columns = self.columns(snapshot)
        found = decide(forecast, columns, self.settings, self.owned)
        answer: Document = as_document(found, self.settings, version=gpuplan_version())
        return answer | {"meta": meta(answer, columns, now, began)}


def _decided(document: Document, answer: Document, now: datetime) -> Run:
    """A decision as a run that has ended: what is kept of it is the same."""
    return Run(
        id=answer["decision"]["id"],
        kind="buy",
        status="done",
        request={"document": document},
        created_at=now,
        started_at=now,
        finished_at=datetime.now(UTC),
        beat_at=now,
        answer=answer,
    )
