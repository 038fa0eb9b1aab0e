"""One phase worked out anew: what it says of machine, price and estimate, and what hours, bill and carbon follow."""

import math
from typing import NamedTuple

from planner.verify.alternatives import allowed
from planner.verify.bill import Bill
from planner.verify.clock import Clock, interval_hours
from planner.verify.context import Context
from planner.verify.estimates import Row
from planner.verify.figures import agrees_with_the_work, fits, repeats_the_estimator, stated_row
from planner.verify.ledger import Path, closely
from planner.verify.named import Named, second_text

#: Figures that follow from others of the document, which are rounded to nine digits.
LOOSE = 2e-7


class Ran(NamedTuple):
    """A configuration that does the whole job: `busy` hours without waiting for free windows, `clock` with it.

    `relative` is how far what rests on it may differ: sums where the estimator's own figures stand behind it, roundings
    where only the document's do.
    """

    named: Named
    row: Row
    busy: Clock
    clock: Clock
    bill: Bill
    carbon_kg: float | None
    relative: float


def ran(context: Context, path: Path) -> Ran | None:
    """The configuration of a phase of a plan that has no other; ticks off every figure of it. None if there is none such."""
    named = described(context, path)
    if named is None:
        return None
    taken, own = context.estimator.row(named.lot.machine, named.nodes), stated_row(context.ledger, path)
    tried = [_ran(context, named, row, far) for row, far in ((taken, context.relative), (own, LOOSE)) if not row.reason]
    runs = [each for each in tried if each is not None]
    if not runs:
        context.ledger.holds("hours", (*path, "hours"), False, None, "so many nodes never end this job")
        return None
    # An estimator of another release says other figures; then hours and bill are held against those of the phase.
    hours = context.ledger.number(*path, "hours")
    found = next((each for each in runs if closely(hours, each.clock.expected, LOOSE)), runs[0])
    _interrupted(context, path, found)
    context.ledger.is_number(
        "hours",
        (*path, "hours"),
        found.clock.expected,
        "not set-up and expected hours",
        relative=max(1.5e-8, found.relative),
    )
    return found


def described(context: Context, path: Path) -> Named | None:
    """The machine and price of a phase, with its estimate, memory and layout ticked off."""
    ledger, claim = context.ledger, context.claim
    named = context.counter.named(ledger, path)
    if named is None:
        return None
    _priced(context, path, named)
    allowed(context, path, named)
    machine = named.lot.machine
    repeats_the_estimator(ledger, path, context.estimator.row(machine, named.nodes), context.work.unit)
    agrees_with_the_work(ledger, path, named, context.work, claim.settings.goodput)
    learned = claim.learned.of(machine.type.accelerator)
    fits(ledger, path, machine, context.work, claim.job.training, factor=learned.memory.factor)
    if claim.learned:
        why, at = "not what past runs have taught", (*path, "learned")
        before = math.sqrt(ledger.number(*path, "log_sigma") ** 2 + learned.variance_removed)
        ledger.is_number("estimates", (*at, "hours_factor"), learned.hours.factor, why)
        ledger.is_number("estimates", (*at, "memory_factor"), learned.memory.factor, why)
        ledger.is_number("estimates", (*at, "log_sigma_before"), before, why, relative=LOOSE)
    return named


def _priced(context: Context, path: Path, named: Named) -> None:
    """When and where the price was read, and what of the offer is modelled."""
    ledger, offer = context.ledger, named.offer
    day = context.claim.start.replace(hour=0, minute=0, second=0, microsecond=0)
    observed = second_text(day if offer is None else offer.observed_at)
    about = offer is not None and offer.observed_approximately
    source = "the user's inventory" if offer is None else offer.source
    ledger.is_same("prices", (*path, "price_observed_at"), observed, "not when this price was read")
    ledger.is_same("prices", (*path, "price_observed_approximately"), about, "not how well its date is known")
    ledger.is_same("prices", (*path, "price_source"), source, "not where this price was read")
    modelled = [] if offer is None else list(offer.modelled)
    listed = [ledger.text(*path, "modelled", i) for i in range(ledger.size(*path, "modelled"))]
    ledger.tick("prices", *((*path, "modelled", i) for i in range(len(listed))))
    ledger.holds("prices", (*path, "modelled"), listed == modelled, modelled, "not what is modelled of this offer")


def _ran(context: Context, named: Named, row: Row, relative: float) -> Ran | None:
    lot, nodes = named.lot, named.nodes
    busy = context.rates.clock(lot, nodes, row)
    clock = None if busy is None else context.rates.in_windows(lot.machine, busy)
    if busy is None or clock is None:
        return None
    kg = context.rates.kg_per_node_hour(lot)
    kg = None if kg is None else kg * nodes * busy.up
    return Ran(named, row, busy, clock, context.rates.bill(lot, lot.micros, nodes, busy), kg, relative)


def _interrupted(context: Context, path: Path, found: Ran) -> None:
    """Preemptions: the offer's rate, the best interval between checkpoints, and how many are expected."""
    ledger, lot, nodes = context.ledger, found.named.lot, found.named.nodes
    near = max(1.5e-8, found.relative)
    cluster = lot.rate * nodes
    ledger.is_number("prices", (*path, "interruptions_per_node_hour"), lot.rate, "not the rate of this offer")
    write = context.rates.checkpoint_hours(nodes)
    interval = interval_hours(found.row.hours_with_goodput, write, cluster) if cluster else None
    why = "not sqrt(2 x writing / rate), or the work if that is less"
    ledger.is_number("hours", (*path, "checkpoint_interval_hours"), interval, why, relative=near)
    expected = cluster * found.busy.up
    ledger.is_number("hours", (*path, "expected_preemptions"), expected, "not rate x hours", relative=near)
