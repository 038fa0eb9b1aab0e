"""A measured figure of a run beside its prediction."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureBand:
    """80 % of runs are expected inside."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFigure:
    """A measured figure beside the predicted one."""

    measured: float
    predicted: float
    ratio: float | None
    """measured / predicted; null where nothing was predicted."""
    band: FigureBand
    inside_band: bool
