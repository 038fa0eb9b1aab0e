"""The answer of a replay of a plan's capacity ladder over availability traces."""

from dataclasses import dataclass

from gpuplan.planner.model.shared import Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderPlace:
    """A choice of a ladder, numbered in the order it is tried; the machines on demand come last if they are none."""

    number: int
    provider: str
    region: str
    zone: str
    instance_type: str
    nodes: int
    price_kind: str
    usd_per_hour: Usd
    """Of all nodes."""
    work_hours: float
    """What the work takes without set-up, preemption and waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOfChoice:
    """Which trace was taken for a choice."""

    choice: int
    trace: str
    stands_in: bool
    """Whether it is of another zone or machine."""
    up: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneSet:
    """Zones that were recorded together, and the starts replayed over them."""

    name: str
    starts: int
    traces: tuple[TraceOfChoice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutSet:
    """Zones recorded together that could not be used."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObtainedChoice:
    """What a rule got of a choice: how often it came first and after how long, and mean hours there."""

    choice: int
    first_share: float
    first_after_hours: float | None
    hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderRuleResult:
    """How one rule did over all starts."""

    rule: str
    mean_usd: Usd
    p95_usd: Usd
    over_hindsight: float | None
    """Cost above the cheapest single choice, known beforehand for every start; null if that is free."""
    late_runs: int
    worst_late_hours: float
    mean_hours: float
    preemptions: float
    obtained: tuple[ObtainedChoice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderSimulation:
    """A plan's capacity ladder over availability traces, beside its first choice alone and on-demand."""

    plan: str
    name: str | None
    deadline_hours: float
    try_minutes: float
    refused: float
    choices: tuple[LadderPlace, ...]
    runs: int
    sets: tuple[ZoneSet, ...]
    left_out: tuple[LeftOutSet, ...]
    rules: tuple[LadderRuleResult, ...]
    assumptions: tuple[str, ...]
