"""The progress of a search as its run stores it, with its history: when its best plan or its bound changed."""

from dataclasses import dataclass, replace

from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.shared import Usd

#: Above this number of changes every second one is left out, but never the last.
MOST_POINTS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPoint:
    """The best plan and the bound after so many seconds; the objective is None before the first plan."""

    seconds: float
    objective_usd: Usd | None
    bound_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProgress:
    """How far a search is. Before the first plan there is no cost, objective and gap, and nothing is left out.

    Runs of earlier versions have stored no `cost_usd`, `objective_usd`, `jobs_not_placed` and `history`.
    """

    seconds: float
    cost_usd: Usd | None = None
    objective_usd: Usd | None = None
    bound_usd: Usd
    gap: float | None
    jobs_planned: int
    jobs_not_placed: int | None = None
    jobs_seen: int
    jobs: int
    stage: str
    history: tuple[SearchPoint, ...] = ()


def read_progress(document: JsonObject) -> SearchProgress | None:
    """The progress that a run of a search stored; None before its first report."""
    return read_stored(SearchProgress, document) if document else None


class SearchHistory:
    """Changes of the best plan and of the bound in order of time."""

    def __init__(self) -> None:
        """A history without points."""
        self._points: tuple[SearchPoint, ...] = ()

    def after(self, progress: SearchProgress) -> tuple[SearchPoint, ...]:
        """All points, with this progress if the plan or the bound has changed since the last."""
        point = SearchPoint(
            seconds=progress.seconds, objective_usd=progress.objective_usd, bound_usd=progress.bound_usd
        )
        if not self._points or replace(self._points[-1], seconds=point.seconds) != point:
            self._points = (*self._points, point)
        if len(self._points) > MOST_POINTS:
            self._points = (*self._points[:-1:2], self._points[-1])
        return self._points
