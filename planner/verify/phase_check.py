"""Check of the phases of a plan: machine, price and estimate, and the hours, cost and carbon that follow."""

import math
from datetime import UTC, datetime, timedelta

from gpuplan.catalog.model.offer import PriceEstimate
from gpuplan.planner.verify.alternatives_check import allowed
from gpuplan.planner.verify.cost_recomputation import RecomputedCost, cost_parts
from gpuplan.planner.verify.estimator_port import Row
from gpuplan.planner.verify.field_coverage import SHOWN, FieldCoverage, Path, closely
from gpuplan.planner.verify.named_offers import Named, second_text
from gpuplan.planner.verify.phase_figures import (
    GIB,
    agrees_with_the_work,
    fits,
    repeats_the_estimator,
    stated_row,
    states_floor,
)
from gpuplan.planner.verify.schedule_check import STEPS, Part, Ran, migration_class, schedule
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import interval_hours_of

#: Relative tolerance of figures that follow from others of the document, which are rounded to nine digits.
LOOSE = 2e-7
#: From this relative tolerance on, rounded figures of the document are used.
ROUNDED = 1e-8
#: The most phases of any version: earlier versions planned up to three.
MOST_PHASES = 3


def ran(context: Context) -> tuple[list[Ran], float] | None:
    """Recompute every phase of a plan and check its figures; returns the phases and the relative tolerance of sums
    over them.

    The tolerance is that of rounding sums where the estimator gives the same figures, and that of nine shown digits
    where the document's own estimates are used: another release may estimate differently. None where the phases
    cannot run.
    """
    field_coverage, count = context.field_coverage, context.field_coverage.size("phases")
    if not 1 <= count <= MOST_PHASES:
        raise field_coverage.unusable(("phases",), f"{count} phases are not accepted; a plan has 1 to {MOST_PHASES}")
    steps = _shares(context, count)
    named = [described(context, ("phases", number), steps[number]) for number in range(count)]
    machines = [machine for machine in named if machine is not None]
    if len(machines) < count:
        return None
    taken = [context.estimator.row(machine.offer_group.machine, machine.nodes) for machine in machines]
    stated_rows = [_stated(context, number, steps[number]) for number in range(count)]
    tried = []
    for rows, relative in ((taken, context.relative), (stated_rows, LOOSE)):
        parts = [Part(one, row, step) for one, row, step in zip(machines, rows, steps, strict=True)]
        scheduled = None if any(row.reason for row in rows) else schedule(context, parts)
        if scheduled is not None:
            tried.append((scheduled, relative))
    if not tried:
        field_coverage.is_true("hours", ("phases",), False, None, "the job never ends on this many nodes")
        return None
    stated = [field_coverage.number("phases", number, "hours") for number in range(count)]
    phases, relative = next((one for one in tried if _same_hours(one[0], stated)), tried[0])
    for number, phase in enumerate(phases):
        _figures(context, number, phase, relative)
    _in_order(context, phases)
    return phases, relative


def _same_hours(phases: list[Ran], stated: list[float]) -> bool:
    return all(closely(one.expected, hours, LOOSE) for one, hours in zip(phases, stated, strict=True))


def _shares(context: Context, count: int) -> list[int]:
    """The share of each phase in steps of 1/100,000; together they are the whole work."""
    field_coverage, steps = context.field_coverage, []
    for number in range(count):
        path: Path = ("phases", number, "share")
        share = field_coverage.number(*path)
        whole = round(min(max(share, 0.0), 2.0) * STEPS)
        field_coverage.is_number(
            "work", path, max(1, min(whole, STEPS)) / STEPS, "not a number of steps of 1/100,000 of the work"
        )
        steps.append(max(1, min(whole, STEPS)))
    for number in range(count):
        rest = STEPS - sum(steps) + steps[number]
        why = "the shares of the phases do not sum to the whole work"
        field_coverage.is_true("work", ("phases", number, "share"), sum(steps) == STEPS, rest / STEPS, why)
    return steps


def _stated(context: Context, number: int, steps: int) -> Row:
    """The document's own estimate of a phase, scaled to the whole work."""
    row = stated_row(context.field_coverage, ("phases", number))
    share = steps / STEPS
    return row._replace(training_hours=row.training_hours / share, hours_with_goodput=row.hours_with_goodput / share)


def described(context: Context, path: Path, steps: int) -> Named | None:
    """The offer of a phase, with its price, estimate, memory and layout checked."""
    field_coverage, submitted_plan = context.field_coverage, context.submitted_plan
    named = context.counter.named(field_coverage, path)
    if named is None:
        return None
    _priced(context, path, named)
    allowed(context, path, named)
    machine, share = named.offer_group.machine, steps / STEPS
    row = context.estimator.row(machine, named.nodes)
    repeats_the_estimator(field_coverage, path, row, context.work.unit, share=share)
    agrees_with_the_work(
        field_coverage, path, named, context.work, goodput=submitted_plan.settings.goodput, share=share
    )
    learned = submitted_plan.learned.of(machine.type.accelerator)
    fits(field_coverage, path, machine, context.work, submitted_plan.job.training, factor=learned.memory.factor)
    _all_states_fit(context, path, named, min(1.0, learned.memory.factor))
    if submitted_plan.learned:
        why, at = "not the corrections from past runs", (*path, "learned")
        before = math.sqrt(field_coverage.number(*path, "log_sigma") ** 2 + learned.variance_removed)
        field_coverage.is_number("estimates", (*at, "hours_factor"), learned.hours.factor, why)
        field_coverage.is_number("estimates", (*at, "memory_factor"), learned.memory.factor, why)
        field_coverage.is_number("estimates", (*at, "log_sigma_before"), before, why, relative=LOOSE)
    return named


def _all_states_fit(context: Context, path: Path, named: Named, factor: float) -> None:
    """Check that all accelerators together can hold the states, and all hosts what is offloaded to them."""
    field_coverage, machine = context.field_coverage, named.offer_group.machine.type
    least = states_floor(context.work, context.submitted_plan.job.training, field_coverage.text(*path, "precision"))
    at, devices = (*path, "memory_gib_per_accelerator"), named.nodes * machine.devices
    gib_per_device = least.devices / GIB / devices * factor
    why = f"{least.devices / GIB:,.0f} GiB of weights, gradients and optimizer do not fit on the accelerators"
    field_coverage.is_true(
        "memory", at, field_coverage.number(*at) >= gib_per_device * (1 - LOOSE), gib_per_device, why
    )
    if machine.ram_gib is not None:
        room = machine.ram_gib * GIB * named.nodes
        why = f"{least.hosts / GIB:,.0f} GiB are offloaded to hosts that have {room / GIB:,.0f} GiB"
        field_coverage.is_true("memory", (*path, "instance_type"), least.hosts <= room, None, why)


def _priced(context: Context, path: Path, named: Named) -> None:
    """Check when and where the price was observed, and which attributes of the offer are modelled."""
    field_coverage, offer = context.field_coverage, named.offer
    day = context.submitted_plan.start.replace(hour=0, minute=0, second=0, microsecond=0)
    observed = second_text(day if offer is None else offer.observed_at)
    about = offer is not None and offer.observed_approximately
    source = "the user's inventory" if offer is None else offer.source
    field_coverage.is_same("prices", (*path, "price_observed_at"), observed, "not when this price was read")
    field_coverage.is_same("prices", (*path, "price_observed_approximately"), about, "not how well its date is known")
    field_coverage.is_same("prices", (*path, "price_source"), source, "not where this price was read")
    field_coverage.is_number(
        "prices", (*path, "interruptions_per_node_hour"), named.offer_group.rate, "not the rate of this offer"
    )
    _waits(context, path, named)
    _setup(context, path, named)
    _expected(field_coverage, path, None if offer is None else offer.price_estimate)
    modelled = [] if offer is None else list(offer.modelled)
    listed = [field_coverage.text(*path, "modelled", i) for i in range(field_coverage.size(*path, "modelled"))]
    field_coverage.tick("prices", *((*path, "modelled", i) for i in range(len(listed))))
    field_coverage.is_true(
        "prices", (*path, "modelled"), listed == modelled, modelled, "not the modelled figures of this offer"
    )


def _waits(context: Context, path: Path, named: Named) -> None:
    """Check the hours without machines after a preemption; plans of older releases state them in their settings alone."""
    field_coverage, at = context.field_coverage, (*path, "preemption_wait_hours")
    rate, wait = context.rates.preempted_cluster(named.offer_group, named.nodes)
    if field_coverage.has(*at) or (rate and context.submitted_plan.settings.spot_wait_hours is None):
        why = "not the wait of these settings, zones and nodes"
        field_coverage.is_number("hours", at, wait if rate else None, why)


def _setup(context: Context, path: Path, named: Named) -> None:
    """Check the hours before the first step; plans of older releases state them in their settings alone."""
    field_coverage, at = context.field_coverage, (*path, "setup_hours")
    if field_coverage.has(*at) or context.submitted_plan.settings.setup_hours is None:
        hours = context.rates.setup_hours_of(named.offer_group, named.nodes)
        field_coverage.is_number("hours", at, hours, "not the set-up of these machines and settings")


def _expected(field_coverage: FieldCoverage, path: Path, estimate: PriceEstimate | None) -> None:
    """Check the observed price behind an expected one, its age at the start, and its band."""
    at, why = (*path, "price_estimate"), "not the estimate of this price at the start"
    if estimate is None:
        field_coverage.is_true("prices", at, not field_coverage.has(*at), None, "this price is as it was observed")
        return
    if not field_coverage.has(*at):
        field_coverage.is_true("prices", at, False, "an estimate", "this price is expected from one of some age")
        return
    for name, micros in (
        ("observed_usd_per_node_hour", estimate.observed_usd_micros_per_hour),
        ("low_usd_per_node_hour", estimate.low_usd_micros_per_hour),
        ("high_usd_per_node_hour", estimate.high_usd_micros_per_hour),
    ):
        field_coverage.is_money("prices", (*at, name), micros, why, relative=0.0)
    field_coverage.is_same("prices", (*at, "age_days"), estimate.age_days, why)


def _figures(context: Context, number: int, ran: Ran, relative: float) -> None:
    """Check hours, start, cost, move and preemptions of one phase."""
    field_coverage, near = context.field_coverage, max(SHOWN, relative)
    path: Path = ("phases", number)
    field_coverage.is_number("hours", (*path, "hours"), ran.expected, "not what the phase takes", relative=near)
    begins = second_text(context.submitted_plan.start + timedelta(hours=ran.begins))
    moment_of(
        context,
        (*path, "starts_at"),
        begins,
        "not the time at which the previous phase has ended and its machines can start",
        relative,
    )
    cost_of_phase(context, path, ran.cost_breakdown, relative)
    field_coverage.is_same(
        "requirements", (*path, "role"), "planned", "a phase with a share of the work must be planned"
    )
    taken_over(context, number, moved=ran.moved, far=ran.far, egress=ran.cost_breakdown.egress, relative=relative)
    offer_group, nodes = ran.part.named.offer_group, ran.part.named.nodes
    cluster, _ = context.rates.preempted_cluster(offer_group, nodes)
    write = context.rates.checkpoint_hours(nodes)
    work = ran.part.row.hours_with_goodput * ran.part.steps / STEPS
    interval = interval_hours_of(work, write, cluster) if cluster else None
    why = "not min(sqrt(2 x writing / rate), the work)"
    field_coverage.is_number("hours", (*path, "checkpoint_interval_hours"), interval, why, relative=near)
    expected = cluster * ran.busy.up
    field_coverage.is_number("hours", (*path, "expected_preemptions"), expected, "not rate x hours", relative=near)


def moment_of(context: Context, path: Path, expected: str, why: str, relative: float) -> None:
    """Check a time to the second; where figures are rounded, within a second and their rounding."""
    if relative < ROUNDED:
        context.field_coverage.is_same("finish", path, expected, why)
    else:
        context.field_coverage.tick("finish", path)
        stated, moment = _moment(context.field_coverage.text(*path)), _moment(expected)
        near = (
            stated is not None
            and moment is not None
            and _same_second(stated, moment, context.submitted_plan.start, relative)
        )
        context.field_coverage.is_true("finish", path, near, expected, why)


def _same_second(one: datetime, other: datetime, start: datetime, relative: float) -> bool:
    """Whether two times differ by at most a second and the rounding of the time since the start."""
    return abs((one - other).total_seconds()) <= 1.0 + relative * abs((other - start).total_seconds())


def _moment(text: str) -> datetime | None:
    """A time in the format of `second_text`; None if the text is not one."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def cost_of_phase(context: Context, path: Path, cost_breakdown: RecomputedCost, relative: float) -> None:
    """Check the cost breakdown of a phase."""
    for name, micros in cost_parts([cost_breakdown]).items():
        at = (*path, "cost_usd", "expected") if name == "expected" else (*path, "cost_usd", "breakdown", name)
        context.field_coverage.is_money("cost", at, micros, f"not the {name} of this phase", relative=relative)


def taken_over(context: Context, number: int, *, moved: bool, far: bool, egress: float, relative: float) -> None:
    """Check the origin of a phase and the data moved for it (`egress` in USD); null for the first phase."""
    field_coverage, path = context.field_coverage, ("phases", number, "moved")
    if not field_coverage.is_there("hours", path, moved, "not whether it takes over from a previous phase"):
        return
    for name in ("provider", "region", "zone", "instance_type"):
        before = field_coverage.value("phases", number - 1, name)
        field_coverage.is_same("hours", (*path, "from", name), before, "not the place of the previous phase")
    data = context.submitted_plan.job.data
    place = (field_coverage.text("phases", number, "provider"), field_coverage.text("phases", number, "region"))
    brought = data.dataset_gb if far and place != (data.provider, data.region) else 0.0
    why = "not the data transferred for it"
    field_coverage.is_number("cost", (*path, "checkpoint_gb"), context.rates.checkpoint_gb, why)
    field_coverage.is_number("cost", (*path, "data_gb"), brought, why)
    field_coverage.is_money("cost", (*path, "egress_usd"), egress * 1e6, "not its egress", relative=relative)


def _in_order(context: Context, phases: list[Ran]) -> None:
    """Check the number of phases, and that the run can move from each to the next.

    Earlier versions planned three phases. A job that states three is read as two, but its plan may have three.
    """
    field_coverage, most = context.field_coverage, context.submitted_plan.job.constraints.max_phases
    stated = ("job", "constraints", "max_phases")
    if field_coverage.has(*stated) and field_coverage.value(*stated) == MOST_PHASES:
        most = MOST_PHASES
    field_coverage.is_true(
        "requirements", ("phases",), len(phases) <= most, most, "more phases than constraints.max_phases"
    )
    for number, phase in enumerate(phases[1:], start=1):
        same = migration_class(phases[number - 1].part) == migration_class(phase.part)
        why = "a run cannot move there: another software stack, or another precision"
        field_coverage.is_true("requirements", ("phases", number, "precision"), same, None, why)
