"""Portfolios: many jobs planned together at least cost."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.schemas.settings_file import settings_file
from gpuplan.api.services.audited import Audited
from gpuplan.api.services.service_context import Document, ServiceContext

if TYPE_CHECKING:
    from gpuplan.planner.model.portfolio import PortfolioAnswer
    from gpuplan.planner.portfolio.search_progress import Progress


class PortfolioService:
    """Plans many jobs together."""

    def __init__(self, context: ServiceContext, audited: Audited) -> None:
        """Plan on the snapshots and settings of `context`."""
        self._context, self._audited = context, audited

    def plan(
        self,
        document: Document,
        *,
        time_limit_s: float | None = 60.0,
        iterations: int | None = None,
        seed: int = 0,
        snapshot: str | None = None,
        now: datetime | None = None,
        report: "Callable[[Progress], None] | None" = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> "PortfolioAnswer":
        """The best plan for many jobs together, with its proven gap.

        Calls `report` after each step of the search. When `cancelled` returns true, the best plan so far is the answer.
        With `iterations` and no time limit, the answer depends on nothing but the seed.
        """
        from gpuplan.api.services.portfolio_planning import answer_portfolio
        from gpuplan.planner.portfolio.portfolio_plan import Limits

        return answer_portfolio(
            self._context,
            document,
            settings_file(self._context.environment.settings).quotas,
            snapshot=snapshot,
            now=now or datetime.now(UTC),
            report=report,
            limits=Limits(time_limit_s=time_limit_s, iterations=iterations, seed=seed),
            cancelled=cancelled,
        )

    def check(self, document: Document, *, snapshot: str | None = None, now: datetime) -> str:
        """The id of the snapshot on which `plan` would plan the portfolio. Reads the document and plans nothing.

        Raises `UnusableInput` for a document that cannot be read, `NotStored` for no such snapshot.
        """
        from gpuplan.api.schemas.portfolio import parse_portfolio

        store = self._context.store
        with self._audited.refusals("portfolio"):
            parse_portfolio(document, now=now, quotas=settings_file(self._context.environment.settings).quotas)
            return store.current_snapshot_id() if snapshot is None else store.find_snapshot(snapshot).id
