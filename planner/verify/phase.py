"""The phases of a plan, figure by figure: machine, price and estimate, and what hours, bill and carbon follow."""

import math
from datetime import UTC, datetime, timedelta

from planner.verify.alternatives import allowed
from planner.verify.bill import Bill
from planner.verify.clock import interval_hours_of
from planner.verify.context import Context
from planner.verify.course import STEPS, Part, Ran, course, kin
from planner.verify.estimates import Row
from planner.verify.figures import agrees_with_the_work, fits, repeats_the_estimator, stated_row
from planner.verify.ledger import SHOWN, Path, closely
from planner.verify.money import parts_of_bill
from planner.verify.named import Named, second_text
from planner.verify.weights import GIB, held

#: Figures that follow from others of the document, which are rounded to nine digits.
LOOSE = 2e-7
#: What rests on figures that are rounded to nine digits may differ by this at the least.
ROUNDED = 1e-8
#: Phases of a plan at most, whatever a job asks.
MOST_PHASES = 3


def ran(context: Context) -> tuple[list[Ran], float] | None:
    """Every phase of a plan worked out anew, with all its figures ticked off, and how far what rests on it may differ.

    That is nothing to speak of where the estimator's own figures stand behind it, and roundings where only the
    document's do: an estimator of another release says other figures. None where a phase is none that there is.
    """
    ledger, count = context.ledger, context.ledger.size("phases")
    if not 1 <= count <= MOST_PHASES:
        raise ledger.unusable(("phases",), f"{count} phases are not accepted; a plan has 1 to {MOST_PHASES}")
    steps = _shares(context, count)
    named = [described(context, ("phases", number), steps[number]) for number in range(count)]
    machines = [each for each in named if each is not None]
    if len(machines) < count:
        return None
    taken = [context.estimator.row(each.lot.machine, each.nodes) for each in machines]
    own = [_stated(context, number, steps[number]) for number in range(count)]
    tried = []
    for rows, relative in ((taken, context.relative), (own, LOOSE)):
        parts = [Part(one, row, many) for one, row, many in zip(machines, rows, steps, strict=True)]
        found = None if any(row.reason for row in rows) else course(context, parts)
        if found is not None:
            tried.append((found, relative))
    if not tried:
        ledger.holds("hours", ("phases",), False, None, "so many nodes never end this job")
        return None
    stated = [ledger.number("phases", number, "hours") for number in range(count)]
    phases, relative = next((one for one in tried if _same_hours(one[0], stated)), tried[0])
    for number, each in enumerate(phases):
        _figures(context, number, each, relative)
    _in_order(context, phases)
    return phases, relative


def _same_hours(phases: list[Ran], stated: list[float]) -> bool:
    return all(closely(one.expected, hours, LOOSE) for one, hours in zip(phases, stated, strict=True))


def _shares(context: Context, count: int) -> list[int]:
    """The share of each phase in steps; all of them are the whole work."""
    ledger, steps = context.ledger, []
    for number in range(count):
        path: Path = ("phases", number, "share")
        share = ledger.number(*path)
        whole = round(min(max(share, 0.0), 2.0) * STEPS)
        ledger.is_number(
            "work", path, max(1, min(whole, STEPS)) / STEPS, "not a number of steps of 1/100,000 of the work"
        )
        steps.append(max(1, min(whole, STEPS)))
    for number in range(count):
        rest = STEPS - sum(steps) + steps[number]
        why = "the shares of the phases do not sum to the whole work"
        ledger.holds("work", ("phases", number, "share"), sum(steps) == STEPS, rest / STEPS, why)
    return steps


def _stated(context: Context, number: int, steps: int) -> Row:
    """The document's own estimate of a phase, for all the work."""
    row = stated_row(context.ledger, ("phases", number))
    share = steps / STEPS
    return row._replace(training_hours=row.training_hours / share, hours_with_goodput=row.hours_with_goodput / share)


def described(context: Context, path: Path, steps: int) -> Named | None:
    """The machine and price of a phase, with its estimate, memory and layout ticked off."""
    ledger, claim = context.ledger, context.claim
    named = context.counter.named(ledger, path)
    if named is None:
        return None
    _priced(context, path, named)
    allowed(context, path, named)
    machine, share = named.lot.machine, steps / STEPS
    row = context.estimator.row(machine, named.nodes)
    repeats_the_estimator(ledger, path, row, context.work.unit, share=share)
    agrees_with_the_work(ledger, path, named, context.work, goodput=claim.settings.goodput, share=share)
    learned = claim.learned.of(machine.type.accelerator)
    fits(ledger, path, machine, context.work, claim.job.training, factor=learned.memory.factor)
    _all_held(context, path, named, min(1.0, learned.memory.factor))
    if claim.learned:
        why, at = "not what past runs have taught", (*path, "learned")
        before = math.sqrt(ledger.number(*path, "log_sigma") ** 2 + learned.variance_removed)
        ledger.is_number("estimates", (*at, "hours_factor"), learned.hours.factor, why)
        ledger.is_number("estimates", (*at, "memory_factor"), learned.memory.factor, why)
        ledger.is_number("estimates", (*at, "log_sigma_before"), before, why, relative=LOOSE)
    return named


def _all_held(context: Context, path: Path, named: Named, factor: float) -> None:
    """All accelerators together have room for all that is trained and frozen, and all hosts for what is offloaded to them."""
    ledger, machine = context.ledger, named.lot.machine.type
    least = held(context.work, context.claim.job.training, ledger.text(*path, "precision"))
    at, devices = (*path, "memory_gib_per_accelerator"), named.nodes * machine.devices
    each = least.devices / GIB / devices * factor
    why = f"{least.devices / GIB:,.0f} GiB of weights, gradients and optimizer are on no accelerator"
    ledger.holds("memory", at, ledger.number(*at) >= each * (1 - LOOSE), each, why)
    if machine.ram_gib is not None:
        room = machine.ram_gib * GIB * named.nodes
        why = f"{least.hosts / GIB:,.0f} GiB are offloaded to hosts that have {room / GIB:,.0f} GiB"
        ledger.holds("memory", (*path, "instance_type"), least.hosts <= room, None, why)


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
    ledger.is_number("prices", (*path, "interruptions_per_node_hour"), named.lot.rate, "not the rate of this offer")
    modelled = [] if offer is None else list(offer.modelled)
    listed = [ledger.text(*path, "modelled", i) for i in range(ledger.size(*path, "modelled"))]
    ledger.tick("prices", *((*path, "modelled", i) for i in range(len(listed))))
    ledger.holds("prices", (*path, "modelled"), listed == modelled, modelled, "not what is modelled of this offer")


def _figures(context: Context, number: int, found: Ran, relative: float) -> None:
    """Hours, begin, bill and move of one phase, and its preemptions."""
    ledger, near = context.ledger, max(SHOWN, relative)
    path: Path = ("phases", number)
    ledger.is_number("hours", (*path, "hours"), found.expected, "not what the phase takes", relative=near)
    begins = second_text(context.claim.start + timedelta(hours=found.begins))
    moment_of(
        context, (*path, "starts_at"), begins, "not when the phase before ends and its machines can begin", relative
    )
    bill_of_phase(context, path, found.bill, relative)
    ledger.is_same("requirements", (*path, "role"), "planned", "a phase that does a share of the work is planned")
    taken_over(context, number, moved=found.moved, far=found.far, egress=found.bill.egress, relative=relative)
    lot, nodes = found.part.named.lot, found.part.named.nodes
    cluster, write = lot.rate * nodes, context.rates.checkpoint_hours(nodes)
    work = found.part.row.hours_with_goodput * found.part.steps / STEPS
    interval = interval_hours_of(work, write, cluster) if cluster else None
    why = "not sqrt(2 x writing / rate), or the work if that is less"
    ledger.is_number("hours", (*path, "checkpoint_interval_hours"), interval, why, relative=near)
    expected = cluster * found.busy.up
    ledger.is_number("hours", (*path, "expected_preemptions"), expected, "not rate x hours", relative=near)


def moment_of(context: Context, path: Path, expected: str, why: str, relative: float) -> None:
    """A time to the second; of rounded figures one that is a second and their rounding off at most."""
    if relative < ROUNDED:
        context.ledger.is_same("finish", path, expected, why)
    else:
        context.ledger.tick("finish", path)
        stated, moment = _moment(context.ledger.text(*path)), _moment(expected)
        near = stated is not None and moment is not None and _same_second(stated, moment, context.claim.start, relative)
        context.ledger.holds("finish", path, near, expected, why)


def _same_second(one: datetime, other: datetime, start: datetime, relative: float) -> bool:
    """Whether two times are a second apart at most, or what rounding leaves of the time since the start."""
    return abs((one - other).total_seconds()) <= 1.0 + relative * abs((other - start).total_seconds())


def _moment(text: str) -> datetime | None:
    """A time as `second_text` shows it; None if it is none."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def bill_of_phase(context: Context, path: Path, bill: Bill, relative: float) -> None:
    """What a phase costs, part by part."""
    for name, micros in parts_of_bill([bill]).items():
        at = (*path, "cost_usd", "expected") if name == "expected" else (*path, "cost_usd", "breakdown", name)
        context.ledger.is_money("cost", at, micros, f"not the {name} of this phase", relative=relative)


def taken_over(context: Context, number: int, *, moved: bool, far: bool, egress: float, relative: float) -> None:
    """From where a phase takes over, and what is brought for it (`egress` in USD); nothing of the first."""
    ledger, path = context.ledger, ("phases", number, "moved")
    if not ledger.is_there("hours", path, moved, "not whether it takes over from a phase before"):
        return
    for name in ("provider", "region", "zone", "instance_type"):
        before = ledger.value("phases", number - 1, name)
        ledger.is_same("hours", (*path, "from", name), before, "not where the phase before ran")
    data = context.claim.job.data
    here = (ledger.text("phases", number, "provider"), ledger.text("phases", number, "region"))
    brought = data.dataset_gb if far and here != (data.provider, data.region) else 0.0
    why = "not what is brought for it"
    ledger.is_number("cost", (*path, "checkpoint_gb"), context.rates.checkpoint_gb, why)
    ledger.is_number("cost", (*path, "data_gb"), brought, why)
    ledger.is_money("cost", (*path, "egress_usd"), egress * 1e6, "not its egress", relative=relative)


def _in_order(context: Context, phases: list[Ran]) -> None:
    """No more phases than the job allows, each between machines that a run can move between."""
    ledger, most = context.ledger, context.claim.job.constraints.max_phases
    ledger.holds("requirements", ("phases",), len(phases) <= most, most, "more phases than constraints.max_phases")
    for number, each in enumerate(phases[1:], start=1):
        same = kin(phases[number - 1].part) == kin(each.part)
        why = "a run cannot move there: another software stack, or another precision"
        ledger.holds("requirements", ("phases", number, "precision"), same, None, why)
