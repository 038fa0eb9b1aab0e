"""Planned and actual cost of one plan in a month: a plan that spans months is split by its hours.

Actual cost is the hours that runs reported at the plan's own prices: each part of the cost of the phase grows with the hours,
data transfer with the share of the work. No bill is read.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from gpuplan.api.exports.focus import pieces
from gpuplan.api.exports.handover_reader import read_handover
from gpuplan.api.exports.plan_handover import Handover, Phase
from gpuplan.catalog.store.cost_store import PlanWithReports
from gpuplan.catalog.store.plan_store import Actual

#: Parts of the cost that grow with the work done and not with the hours.
BY_WORK = ("egress",)
State = Literal["planned", "running", "finished"]
#: Provider and price kind.
Where = tuple[str, str]


class Amounts(NamedTuple):
    """Micro-dollars: planned, actual, and expected, which is one of both by the state of the run."""

    planned: int
    actual: int
    expected: int

    @classmethod
    def added(cls, parts: Iterable["Amounts"]) -> "Amounts":
        """The sum of each."""
        return cls(*map(sum, zip(cls(0, 0, 0), *parts, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthCosts:
    """Micro-dollars of one plan in a month, by provider and price kind."""

    handover: Handover
    state: State
    ends_at: datetime
    planned: Counter[Where]
    actual: Counter[Where]

    @property
    def expected(self) -> Counter[Where]:
        """Of a finished run what it cost, of a running one the larger of both, else what is planned."""
        if self.state == "finished":
            return self.actual
        return self.planned | self.actual if self.state == "running" else self.planned

    @property
    def total(self) -> Amounts:
        """The amounts over all providers and price kinds."""
        return Amounts(self.planned.total(), self.actual.total(), self.expected.total())

    def by_provider(self) -> dict[str, Amounts]:
        """The amounts by provider."""
        return self._by(lambda where: where[0])

    def by_kind(self) -> dict[str, Amounts]:
        """The amounts by price kind."""
        return self._by(lambda where: where[1])

    def _by(self, name: Callable[[Where], str]) -> dict[str, Amounts]:
        parts: dict[str, list[Amounts]] = {}
        for where in dict.fromkeys((*self.planned, *self.actual)):
            of_where = Amounts(self.planned[where], self.actual[where], self.expected[where])
            parts.setdefault(name(where), []).append(of_where)
        return {part: Amounts.added(amounts) for part, amounts in parts.items()}


def month_costs(adopted: PlanWithReports, month: datetime) -> MonthCosts | None:
    """The plan's costs in the month that begins then; None if it has none."""
    handover = read_handover(adopted.saved.outcome)
    runs = _runs(adopted.reports)
    # A run that started a plan of several phases is not reported; see `gpuplan.api.services.run_actuals`.
    ran = [as_run(handover.phases[0], report) for report in runs]
    costs = MonthCosts(
        handover=handover,
        state="planned" if not runs else "running" if runs[-1].running else "finished",
        ends_at=max(phase.ends_at for phase in (*handover.phases, *ran)),
        planned=_in_month(handover.phases, month),
        actual=_in_month(ran, month),
    )
    return costs if costs.planned or costs.actual else None


def as_run(phase: Phase, report: Actual) -> Phase:
    """The phase with the hours that a run reported, and what they cost at its prices."""
    hours = report.hours or 0.0
    longer = hours / phase.hours if phase.hours else 0.0
    grown = {
        part: round(micros * (report.share_done if part in BY_WORK else longer)) for part, micros in phase.costs.items()
    }
    return replace(phase, hours=hours, ends_at=phase.starts_at + timedelta(hours=hours), costs=grown)


def _runs(reports: Iterable[Actual]) -> list[Actual]:
    """The reports that state hours, one per run: a report on a running job is replaced by the next one."""
    runs: list[Actual] = []
    for report in reports:
        if report.hours is None:
            continue
        if runs and runs[-1].running:
            runs.pop()
        runs.append(report)
    return runs


def _in_month(phases: Sequence[Phase], month: datetime) -> Counter[Where]:
    costs: Counter[Where] = Counter()
    for phase in phases:
        for micros in phase.costs.values():
            if micros:
                charged = sum(piece.micros for piece in pieces(phase, micros) if piece.month == month)
                costs[phase.provider, phase.kind.name] += charged
    return +costs
