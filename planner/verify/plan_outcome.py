"""The recomputed totals of a plan, with or without phases and standby."""

from typing import NamedTuple

from gpuplan.planner.verify.cost_parts import cost_parts
from gpuplan.planner.verify.named_offers import Named
from gpuplan.planner.verify.schedule_check import Ran, chance
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import probability_by


class Outcome(NamedTuple):
    """Whole micro-dollars, hours and kg of CO2 of a plan; `spent` by provider, `machines` in the order of its phases.

    `confident` are hours at the requested confidence. `alone` is the phase of a plan with only one and no standby.
    `relative` is the tolerance of figures that follow from these.
    """

    parts: dict[str, int]
    median: int
    p95: int
    expected: float
    median_hours: float
    confident: float
    p95_hours: float
    in_time: float | None
    carbon_kg: float | None
    spent: dict[str, int]
    machines: tuple[Named, ...]
    alone: Ran | None
    relative: float

    @property
    def micros(self) -> int:
        """The expected cost."""
        return self.parts["expected"]


def of_phases(context: Context, phases: list[Ran], relative: float) -> Outcome:
    """The outcome of consecutive phases."""
    deadline, spent = context.submitted_plan.job.deadline_hours, dict[str, int]()
    for phase in phases:
        provider = phase.part.named.offer_group.place[0]
        spent[provider] = spent.get(provider, 0) + round(phase.cost_breakdown.total * 1e6)
    busy = phases[0].busy
    in_time = None
    if deadline is not None and len(phases) == 1:
        in_time = probability_by(deadline - context.submitted_plan.settings.setup_hours, busy.run, busy.sigma)
    elif deadline is not None:
        in_time = chance(context, phases, deadline)
    kilograms = [phase.carbon_kg for phase in phases]
    return Outcome(
        parts=cost_parts([phase.cost_breakdown for phase in phases]),
        median=sum(round(phase.cost_breakdown.median * 1e6) for phase in phases),
        p95=sum(round(phase.cost_breakdown.p95 * 1e6) for phase in phases),
        expected=sum(phase.expected for phase in phases),
        median_hours=sum(phase.median for phase in phases),
        confident=sum(phase.confident for phase in phases),
        p95_hours=sum(phase.p95 for phase in phases),
        in_time=in_time,
        carbon_kg=total_kg(kilograms),
        spent=spent,
        machines=tuple(phase.part.named for phase in phases),
        alone=phases[0] if len(phases) == 1 else None,
        relative=relative,
    )


def total_kg(kilograms: list[float | None]) -> float | None:
    """The sum; None where a term is unknown."""
    known = [kilogram for kilogram in kilograms if kilogram is not None]
    return sum(known) if len(known) == len(kilograms) else None
