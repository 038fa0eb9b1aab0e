"""What a plan comes to, however it is made up: what the checks of its sums, its proof and its alternatives rest on."""

from typing import NamedTuple

from planner.verify.clock import probability_by
from planner.verify.context import Context
from planner.verify.course import Ran, chance
from planner.verify.money import parts_of_bill
from planner.verify.named import Named


class Outcome(NamedTuple):
    """Whole micro-dollars, hours and kg of CO2 of a plan; `spent` by provider, `machines` in the order of its phases.

    `alone` is the one phase of a plan that has no other and no standby. `relative` is how far what rests on this may
    differ.
    """

    parts: dict[str, int]
    median: int
    p95: int
    expected: float
    median_hours: float
    kept: float
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
    """The outcome of phases that follow each other."""
    deadline, spent = context.claim.job.deadline_hours, dict[str, int]()
    for each in phases:
        provider = each.part.named.lot.place[0]
        spent[provider] = spent.get(provider, 0) + round(each.bill.total * 1e6)
    busy = phases[0].busy
    in_time = None
    if deadline is not None and len(phases) == 1:
        in_time = probability_by(deadline - context.claim.settings.setup_hours, busy.run, busy.sigma)
    elif deadline is not None:
        in_time = chance(context, phases, deadline)
    kilograms = [each.carbon_kg for each in phases]
    return Outcome(
        parts=parts_of_bill([each.bill for each in phases]),
        median=sum(round(each.bill.median * 1e6) for each in phases),
        p95=sum(round(each.bill.p95 * 1e6) for each in phases),
        expected=sum(each.expected for each in phases),
        median_hours=sum(each.median for each in phases),
        kept=sum(each.kept for each in phases),
        p95_hours=sum(each.p95 for each in phases),
        in_time=in_time,
        carbon_kg=total_kg(kilograms),
        spent=spent,
        machines=tuple(each.part.named for each in phases),
        alone=phases[0] if len(phases) == 1 else None,
        relative=relative,
    )


def total_kg(kilograms: list[float | None]) -> float | None:
    """The sum, None where one is unknown."""
    known = [each for each in kilograms if each is not None]
    return sum(known) if len(known) == len(kilograms) else None
