"""The recomputed totals of a plan, with or without phases and standby."""

from typing import NamedTuple

from gpuplan.planner.verify.cost_recomputation import P95, cost_parts
from gpuplan.planner.verify.named_offers import Named
from gpuplan.planner.verify.price_spread import INTEGRATED, is_estimate, quantiles
from gpuplan.planner.verify.schedule_check import Ran, chance
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import probability_by


class Outcome(NamedTuple):
    """Whole micro-dollars, hours and kg of CO2 of a plan; `spent` by provider, `machines` in the order of its phases.

    `confident` are hours at the requested confidence. `alone` is the phase of a plan with only one and no standby.
    `relative` is the tolerance of figures that follow from these, `of_quantiles` that of the quantiles of the cost.
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
    of_quantiles: float

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
        in_time = probability_by(deadline - busy.fixed, busy.run, busy.sigma)
    elif deadline is not None:
        in_time = chance(context, phases, deadline)
    median, p95, estimated = cost_quantiles(context, phases)
    kilograms = [phase.carbon_kg for phase in phases]
    return Outcome(
        parts=cost_parts([phase.cost_breakdown for phase in phases]),
        median=median,
        p95=p95,
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
        of_quantiles=max(relative, INTEGRATED) if estimated else relative,
    )


def cost_quantiles(context: Context, phases: list[Ran]) -> tuple[int, int, bool]:
    """The median and the 95 % quantile of the cost in micro-dollars, and whether a price in them is an estimate."""
    if not any(is_estimate(phase.part.named.offer) for phase in phases):
        middle = sum(round(phase.cost_breakdown.median * 1e6) for phase in phases)
        return middle, sum(round(phase.cost_breakdown.p95 * 1e6) for phase in phases), False
    spreads = [context.rates.cost_by_deviation(phase.part.named, phase.busy, egress=phase.egress) for phase in phases]
    middle_usd, most_usd = quantiles(spreads, (0.5, P95))
    return round(middle_usd * 1e6), round(most_usd * 1e6), True


def total_kg(kilograms: list[float | None]) -> float | None:
    """The sum; None where a term is unknown."""
    known = [kilogram for kilogram in kilograms if kilogram is not None]
    return sum(known) if len(known) == len(kilograms) else None
