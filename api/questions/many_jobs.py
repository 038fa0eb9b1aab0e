"""What may be asked of many jobs together: run them at least cost, and own, commit or rent for a forecast."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from api.questions.opened import Document, Opened, meta
from api.settings import settings_file
from api.version import gpuplan_version

if TYPE_CHECKING:
    from planner.portfolio.search import Progress as SearchProgress


class ManyJobs(Opened):
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
        return answer | {"meta": meta(answer, columns, now, began)}
