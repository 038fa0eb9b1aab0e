"""The phases of a plan, one after the other: what each takes and costs, when it begins, and what it takes over.

A phase does its share of the work on its own machines: set-up, the share's wall hours, and, if another follows, writing
the checkpoint that it goes on from. To another region the checkpoint travels at `move_gbs` and the data are brought as
for a run that starts there. Estimates of all phases are late or early together, so hours at a confidence are the sum of
those of the phases; own machines wait for their windows from where the phase before has left off.
"""

import math
from typing import NamedTuple

from catalog.accelerators import accelerators
from planner.verify.bill import Bill, mean_wait
from planner.verify.clock import Clock, normal_probability
from planner.verify.context import Context
from planner.verify.estimates import Row
from planner.verify.named import Named

#: Shares are planned in whole steps of this part of the work.
STEPS = 100_000
#: A moment of work, in hours, that shows when a window opens.
MOMENT = 1e-6
_SIGMAS, _HALVINGS = 8.0, 50


class Part(NamedTuple):
    """What a phase is: an offer, how many nodes, its estimate, and its share of the work in steps."""

    named: Named
    row: Row
    steps: int


class Ran(NamedTuple):
    """A phase worked out anew: `busy` hours on its machines; the other hours with moves and waits before.

    It begins `begins` hours after the plan; `checkpoint_gb` and `data_gb` are brought for it, for `egress` USD.
    """

    part: Part
    busy: Clock
    expected: float
    median: float
    kept: float
    p95: float
    begins: float
    bill: Bill
    carbon_kg: float | None
    moved: bool
    far: bool


def course(context: Context, parts: list[Part]) -> list[Ran] | None:
    """The phases in order; None where one of them never ends or its price kind does not allow as many hours."""
    rates, done = context.rates, [0.0, 0.0, 0.0, 0.0]
    found: list[Ran] = []
    for number, part in enumerate(parts):
        (lot, _, nodes), row = part.named, part.row
        last = number == len(parts) - 1
        busy = rates.clock(lot, nodes, row, share=part.steps / STEPS, hands_over=not last)
        if busy is None:
            return None
        before = parts[number - 1].named.lot.place if number else lot.place
        usd, way_hours = rates.moving(before, lot.place)
        hours = []
        for quantile, spent in enumerate((busy.expected, busy.median, busy.kept, busy.p95)):
            begun = done[quantile] + way_hours
            hours.append(way_hours + rates.elapsed(lot.machine, spent, begun))
        begun = done[0] + way_hours
        begins = begun + max(0.0, rates.elapsed(lot.machine, MOMENT, begun) - MOMENT)
        done = [sum_ + more for sum_, more in zip(done, hours, strict=True)]
        if not all(math.isfinite(each) for each in (done[0], *done[2:])):
            return None
        kg = rates.kg_per_node_hour(lot)
        found.append(
            Ran(
                part,
                busy,
                hours[0],
                hours[1],
                hours[2],
                hours[3],
                begins,
                rates.bill(lot, lot.micros, nodes, busy, egress=usd if number else None),
                None if kg is None else kg * nodes * busy.up,
                number > 0,
                before != lot.place,
            )
        )
    return _with_mean_waits(context, found)


def _with_mean_waits(context: Context, phases: list[Ran]) -> list[Ran]:
    """The same phases; where machines are free at times only, expected hours are busy ones and the mean of the waits."""
    owned = [each.part.named.lot.machine.own for each in phases]
    if not any(own is not None and own.windows for own in owned):
        return phases
    ran: list[list[tuple[float, float]]] = [[] for _ in phases]
    for busy in zip(*(each.busy.equally_likely() for each in phases), strict=True):
        done, taken = 0.0, []
        for number, (each, hours) in enumerate(zip(phases, busy, strict=True)):
            before = phases[number - 1].part.named.lot.place if number else each.part.named.lot.place
            way = context.rates.moving(before, each.part.named.lot.place)[1]
            taken.append(way + context.rates.elapsed(each.part.named.lot.machine, hours, done + way))
            done += taken[-1]
        if math.isfinite(done):
            for pairs, hours, elapsed in zip(ran, busy, taken, strict=True):
                pairs.append((hours, elapsed))
    return [
        each._replace(expected=each.busy.expected + mean_wait(pairs)) for each, pairs in zip(phases, ran, strict=True)
    ]


def kin(part: Part) -> tuple[str, str]:
    """Configurations between which a run can move have the same: software stack and precision."""
    return accelerators()[part.named.lot.machine.type.accelerator].stack, part.row.precision


def total_micros(phases: list[Ran]) -> int:
    """The cost of all phases: each is whole micro-dollars."""
    return sum(round(each.bill.total * 1e6) for each in phases)


def chance(context: Context, phases: list[Ran], deadline: float) -> float:
    """The probability of the deadline: how far the common factor of all hours may go before the plan is late."""

    def late(sigmas: float) -> bool:
        done = 0.0
        for number, each in enumerate(phases):
            place = phases[number - 1].part.named.lot.place if number else each.part.named.lot.place
            way = context.rates.moving(place, each.part.named.lot.place)[1]
            busy = each.busy.fixed + each.busy.run * math.exp(sigmas * each.busy.sigma)
            done += way + context.rates.elapsed(each.part.named.lot.machine, busy, done + way)
        return done > deadline

    low, high = -_SIGMAS, _SIGMAS
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if late(middle) else (middle, high)
    return normal_probability(low)
