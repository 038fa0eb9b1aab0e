"""The answers on measured runs: reports beside predictions, and the corrections learned from them.

Field names and their order are those of the JSON object.
"""

from dataclasses import dataclass
from typing import Literal

from gpuplan.api.schemas.json_types import Moment
from gpuplan.planner.model.actuals import ComparedFigure


@dataclass(frozen=True, slots=True, kw_only=True)
class Actual:
    """A report on a run."""

    id: str
    plan_id: str
    task: str
    """The class of work whose later estimates learn from this."""
    accelerator: str
    reported_at: Moment
    reported_by: str
    running: bool
    share_done: float
    unit: str
    figures: dict[str, ComparedFigure]
    """By name: hours, throughput, peak_memory_gib, preemptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedActual(Actual):
    """A report, and whether estimates learn from it."""

    counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCorrection:
    """What reports teach of one task, on one accelerator or (null) on all those without reports."""

    task: str
    accelerator: str | None
    hours_factor: float
    hours_runs: int
    memory_factor: float
    memory_runs: int
    variance_removed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuals:
    """Reports, oldest first, and what all of them teach together."""

    actuals: tuple[ListedActual, ...]
    learning: Literal["on", "off"]
    learned: tuple[TaskCorrection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How many were removed."""

    forgotten: int
