"""Work that outlives its request."""

from dataclasses import dataclass, field
from typing import Literal

from gpuplan.api.schemas.problem import FieldProblem
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.shared import MAY_BE_ABSENT, Moment

type RunKind = Literal["portfolio", "refresh", "buy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """Why a run failed."""

    detail: str
    errors: tuple[FieldProblem, ...] | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How far a run is, and what came of it."""

    id: str
    kind: RunKind
    status: Literal["queued", "running", "done", "failed", "cancelled"]
    """done, failed and cancelled stay; a cancelled one keeps the best that it found."""
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    cancel_asked: bool
    progress: JsonObject
    """Of a portfolio: seconds, cost_usd of the jobs that run, objective_usd (with what leaving jobs out counts) and its
    bound_usd, gap, jobs_seen, jobs_planned, jobs_not_placed, jobs, stage and history, up to 120 changes of objective_usd and
    bound_usd with the seconds of each; of a refresh: regions done and in all, by provider."""
    answer: JsonObject | None
    answer_at: str | None
    """Where the answer is read on its own."""
    error: RunError | None
