"""Plans a portfolio: from the document to the answer, with clock times under `meta`."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.schemas.portfolio import parse_portfolio
from gpuplan.api.schemas.quota import QuotaDocument
from gpuplan.api.services.service_context import Document, ServiceContext
from gpuplan.planner.model.portfolio import PortfolioAnswer, PortfolioMeta
from gpuplan.planner.portfolio.portfolio_plan import Limits, plan_portfolio
from gpuplan.planner.portfolio.search_progress import Progress


def answer_portfolio(
    context: ServiceContext,
    document: Document,
    quotas: tuple[QuotaDocument, ...],
    *,
    snapshot: str | None,
    now: datetime,
    report: Callable[[Progress], None] | None,
    limits: Limits,
    cancelled: Callable[[], bool] | None = None,
) -> PortfolioAnswer:
    """The plan for the jobs of `document`; applies `quotas` of the settings and those of the document."""
    began = time.perf_counter()
    portfolio = replace(parse_portfolio(document, now=now, quotas=quotas), past_runs=context.past_runs())
    progresses: list[Progress] = []

    def keep_last(progress: Progress) -> None:
        progresses[:] = [progress]
        if report is not None:
            report(progress)

    plan = plan_portfolio(
        portfolio,
        context.columns(snapshot),
        owned=context.owned,
        settings=context.settings,
        limits=limits,
        report=keep_last,
        cancelled=cancelled,
    )
    taken = time.perf_counter() - began
    return PortfolioAnswer(
        portfolio=plan,
        meta=PortfolioMeta(
            created_at=now,
            milliseconds=round(taken * 1e3, 3),
            search_seconds=round(progresses[-1].elapsed_s, 3) if progresses else 0.0,
            version=gpuplan_version(),
        ),
    )
