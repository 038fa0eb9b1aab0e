"""What runs measured, beside what their plans had said."""

from typing import Literal, TypedDict

from gpuplan_client.answers.parts import Correction, Moment


class FigureBand(TypedDict):
    """80 % of runs are expected inside."""

    low: float | None
    high: float | None


class ComparedFigure(TypedDict):
    """A measured figure beside the predicted one."""

    measured: float
    predicted: float
    ratio: float | None
    """measured / predicted."""
    band: FigureBand
    inside_band: bool


class Actual(TypedDict):
    """One report on a run."""

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


class ListedActual(Actual):
    """A report, and whether estimates learn from it."""

    counts: bool


class LearnedOf(Correction):
    """What reports teach of one task."""

    task: str


class Actuals(TypedDict):
    """Reports, oldest first, and what all of them teach together."""

    actuals: list[ListedActual]
    learning: Literal["on", "off"]
    learned: list[LearnedOf]


class Forgotten(TypedDict):
    """How many were removed."""

    forgotten: int
