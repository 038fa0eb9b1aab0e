"""Planning many jobs together: from the document to the answer, with what the clock says kept apart."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from api.documents.portfolio import parse_portfolio
from api.documents.quota import QuotaDocument
from api.version import gpuplan_version
from planner.portfolio.answer import Limits, plan_portfolio
from planner.portfolio.progress import Progress

if TYPE_CHECKING:
    from api.questions.opened import Opened


def plan_document(
    gpuplan: "Opened",
    document: dict[str, Any],
    quotas: tuple[QuotaDocument, ...],
    *,
    snapshot: str | None,
    now: datetime,
    report: Callable[[Progress], None] | None,
    limits: Limits,
    cancelled: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """`{"portfolio": ..., "meta": ...}`; the settings' `quotas` hold beside the document's own."""
    began = time.perf_counter()
    portfolio = replace(parse_portfolio(document, now=now, quotas=quotas), past_runs=gpuplan.past_runs())
    told: list[Progress] = []

    def tell(progress: Progress) -> None:
        told[:] = [progress]
        if report is not None:
            report(progress)

    answer = plan_portfolio(
        portfolio,
        gpuplan.columns(snapshot),
        owned=gpuplan.owned,
        settings=gpuplan.settings,
        limits=limits,
        report=tell,
        cancelled=cancelled,
    )
    taken = time.perf_counter() - began
    return {
        "portfolio": answer,
        "meta": {
            "created_at": now.isoformat(),
            "milliseconds": round(taken * 1e3, 3),
            "search_seconds": round(told[-1].elapsed_s, 3) if told else 0.0,
            "version": gpuplan_version(),
        },
    }
