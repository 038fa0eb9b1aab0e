"""Recomputation of consecutive phases: hours and cost of each, when it starts, and what it moves.

A phase does its share of the work on its own machines: set-up, the wall hours of the share, and, if another follows,
writing the checkpoint from which that resumes. The checkpoint travels to another region at `move_gbs`, and the data
are brought as for a run that starts there. The error of the estimate is common to all phases, so hours at a
confidence are the sum of those of the phases. Own machines wait for their windows from the end of the phase before.
"""

import math
from typing import NamedTuple

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.verify.cost_recomputation import RecomputedCost, mean_wait
from gpuplan.planner.verify.estimator_port import Row
from gpuplan.planner.verify.named_offers import Named
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import Clock, normal_probability

#: Shares of the work are whole multiples of one over this.
STEPS = 100_000
#: Hours of work, small enough to show when a window opens.
MOMENT = 1e-6
_SIGMAS, _HALVINGS = 8.0, 50


class Part(NamedTuple):
    """A phase before recomputation: offer, nodes, estimate, and share of the work in steps."""

    named: Named
    row: Row
    steps: int


class Ran(NamedTuple):
    """A recomputed phase: `busy` hours on its machines; the other hours include moves and waits before them.

    It begins `begins` hours after the plan. `moved` says whether it takes over from a phase before, `far` whether in
    another place. `egress` is what the move costs; None for that of the place.
    """

    part: Part
    busy: Clock
    expected: float
    median: float
    confident: float
    p95: float
    begins: float
    cost_breakdown: RecomputedCost
    carbon_kg: float | None
    egress: float | None
    moved: bool
    far: bool


def schedule(context: Context, parts: list[Part]) -> list[Ran] | None:
    """The phases in order; None where one of them never ends or its price kind does not allow as many hours."""
    rates, done = context.rates, [0.0, 0.0, 0.0, 0.0]
    rans: list[Ran] = []
    for number, part in enumerate(parts):
        (offer_group, _, nodes), row = part.named, part.row
        last = number == len(parts) - 1
        busy = rates.clock(offer_group, nodes, row, share=part.steps / STEPS, hands_over=not last)
        if busy is None:
            return None
        before = parts[number - 1].named.offer_group.place if number else offer_group.place
        usd, way_hours = rates.moving(before, offer_group.place)
        hours = []
        for quantile, spent in enumerate((busy.expected, busy.median, busy.confident, busy.p95)):
            begun = done[quantile] + way_hours
            hours.append(way_hours + rates.elapsed(offer_group.machine, spent, begun))
        begun = done[0] + way_hours
        begins = begun + max(0.0, rates.elapsed(offer_group.machine, MOMENT, begun) - MOMENT)
        done = [sum_ + hour for sum_, hour in zip(done, hours, strict=True)]
        if not all(math.isfinite(hours_done) for hours_done in (done[0], *done[2:])):
            return None
        kg = rates.kg_per_node_hour(offer_group)
        rans.append(
            Ran(
                part,
                busy,
                hours[0],
                hours[1],
                hours[2],
                hours[3],
                begins,
                rates.cost_breakdown(offer_group, offer_group.micros, nodes, busy, egress=usd if number else None),
                None if kg is None else kg * nodes * busy.up,
                usd if number else None,
                number > 0,
                before != offer_group.place,
            )
        )
    return _with_mean_waits(context, rans)


def _with_mean_waits(context: Context, phases: list[Ran]) -> list[Ran]:
    """The same phases; with availability windows, expected hours are the busy hours plus the mean of the waits."""
    owned = [phase.part.named.offer_group.machine.owned for phase in phases]
    if not any(owned_machine is not None and owned_machine.windows for owned_machine in owned):
        return phases
    ran: list[list[tuple[float, float]]] = [[] for _ in phases]
    for busy in zip(*(phase.busy.equally_likely() for phase in phases), strict=True):
        done, taken = 0.0, []
        for number, (phase, hours) in enumerate(zip(phases, busy, strict=True)):
            before = phases[number - 1].part.named.offer_group.place if number else phase.part.named.offer_group.place
            way = context.rates.moving(before, phase.part.named.offer_group.place)[1]
            taken.append(way + context.rates.elapsed(phase.part.named.offer_group.machine, hours, done + way))
            done += taken[-1]
        if math.isfinite(done):
            for pairs, hours, elapsed in zip(ran, busy, taken, strict=True):
                pairs.append((hours, elapsed))
    return [
        phase._replace(expected=phase.busy.expected + mean_wait(pairs))
        for phase, pairs in zip(phases, ran, strict=True)
    ]


def migration_class(part: Part) -> tuple[str, str]:
    """Software stack and precision: a run can move between configurations that agree in both."""
    return accelerators()[part.named.offer_group.machine.type.accelerator].stack, part.row.precision


def total_micros(phases: list[Ran]) -> int:
    """The cost of all phases, each rounded to micro-dollars."""
    return sum(round(phase.cost_breakdown.total * 1e6) for phase in phases)


def chance(context: Context, phases: list[Ran], deadline: float) -> float:
    """The probability of the deadline, by bisection on the common error of all hours."""

    def late(sigmas: float) -> bool:
        done = 0.0
        for number, phase in enumerate(phases):
            place = phases[number - 1].part.named.offer_group.place if number else phase.part.named.offer_group.place
            way = context.rates.moving(place, phase.part.named.offer_group.place)[1]
            busy = phase.busy.fixed + phase.busy.run * math.exp(sigmas * phase.busy.sigma)
            done += way + context.rates.elapsed(phase.part.named.offer_group.machine, busy, done + way)
        return done > deadline

    low, high = -_SIGMAS, _SIGMAS
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if late(middle) else (middle, high)
    return normal_probability(low)
