"""Check of a spot plan with a standby against its rule, replayed, and figure by figure.

The rule is stated in `gpuplan.planner.verify.standby_replay`. Machines, prices, the probability of the deadline (in
closed form) and the checkpoint intervals are recomputed. The averages and quantiles of the rule have no closed form:
each such figure (`replay_tolerance.REPLAYED`) must lie within the interval of thousands of replayed runs. Every other
figure of the two phases follows from these and is checked to the last digits.
"""

from datetime import timedelta
from typing import NamedTuple

from gpuplan.catalog.model.price_kinds import PriceKind
from gpuplan.planner.verify.billed_hours import mean_of
from gpuplan.planner.verify.cost_recomputation import RecomputedCost, billing, cost_parts
from gpuplan.planner.verify.field_coverage import Path, closely
from gpuplan.planner.verify.named_offers import second_text
from gpuplan.planner.verify.phase_check import LOOSE, cost_of_phase, described, moment_of, taken_over
from gpuplan.planner.verify.plan_outcome import Outcome, total_kg
from gpuplan.planner.verify.replay_tolerance import within
from gpuplan.planner.verify.schedule_check import STEPS, Part, migration_class
from gpuplan.planner.verify.standby_pair import Standby, nearest_interval, pair_of, rule_of
from gpuplan.planner.verify.standby_replay import Estimated, Figures, figures
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import NEVER_HOURS

#: Relative tolerance of sums and quotients of two figures that are rounded to nine digits.
OF_ROUNDED = 2e-8
#: Lower bound on the probability by which the standby's hours are divided.
LEAST_CHANCE = 1e-12


class Stated(NamedTuple):
    """The document's values of the replayed figures, from which everything else of the two phases follows."""

    paid_hours: float
    clock_hours: float
    standby_hours: float
    calls: float
    called_at: float
    hours: float
    median_hours: float
    confident_hours: float
    p95_hours: float
    usd: float
    median_usd: float
    p95_usd: float


def with_standby(context: Context) -> Outcome | None:
    """Check the two phases of a plan with a standby and return their outcome; None where they are not such a pair."""
    field_coverage = context.field_coverage
    named = [described(context, ("phases", number), STEPS) for number in (0, 1)]
    parts = [
        Part(one, context.estimator.row(one.offer_group.machine, one.nodes), STEPS) for one in named if one is not None
    ]
    if len(parts) < 2 or any(part.row.reason for part in parts):
        return None
    spot, standby = parts
    if not _may_be_paired(context, spot, standby):
        return None
    at = ("phases", 0, "checkpoint_interval_hours")
    interval = nearest_interval(context, spot, field_coverage.number(*at))
    field_coverage.is_number("hours", at, interval, "not one of the evaluated intervals")
    plan = Standby(spot, standby, pair_of(context, spot, standby), rule_of(context, spot), interval)
    stated = _stated(context, plan)
    cost_breakdowns = _spot_cost(context, plan, stated), _standby_cost(context, plan, stated)
    _spot(context, plan, stated, cost_breakdowns[0])
    _standby(context, plan, stated, cost_breakdowns[1])
    _replayed(context, stated, figures(plan.pair, plan.rule, interval, context.submitted_plan.job.confidence), plan)
    sums = cost_parts(cost_breakdowns)
    spent: dict[str, int] = {}
    for part, cost_breakdown in zip(parts, cost_breakdowns, strict=True):
        provider = part.named.offer_group.place[0]
        spent[provider] = spent.get(provider, 0) + round(cost_breakdown.total * 1e6)
    return Outcome(
        parts=sums,
        median=round(stated.median_usd * 1e6),
        p95=round(stated.p95_usd * 1e6),
        expected=stated.hours,
        median_hours=stated.median_hours,
        confident=_confident(stated.confident_hours, plan.rule.deadline_hours),
        p95_hours=stated.p95_hours,
        in_time=plan.in_time(),
        carbon_kg=_carbon(context, plan, stated),
        spent=spent,
        machines=(spot.named, standby.named),
        alone=None,
        relative=OF_ROUNDED,
        of_quantiles=OF_ROUNDED,
    )


def _confident(stated_hours: float, deadline_hours: float) -> float:
    """The stated hours, or exactly the deadline where they are the deadline rounded to nine digits."""
    return deadline_hours if closely(stated_hours, deadline_hours) else stated_hours


def _may_be_paired(context: Context, spot: Part, standby: Part) -> bool:
    """Check that the first can be preempted, that the second is available at once and cannot, and that a run can
    move.
    """
    field_coverage, offer_group = context.field_coverage, standby.named.offer_group
    kind = offer_group.kind
    plain = not (offer_group.rate or kind.max_run_hours or (kind.term_hours and not offer_group.paid))
    owned_machine = offer_group.machine.owned
    at = ("phases", 1, "price_kind")
    field_coverage.is_true(
        "requirements", ("phases", 0, "price_kind"), spot.named.offer_group.rate > 0, None, "nobody takes these away"
    )
    field_coverage.is_true(
        "requirements",
        at,
        plain and not (owned_machine and owned_machine.windows),
        None,
        "not available at once as a standby",
    )
    field_coverage.is_true(
        "requirements",
        ("phases", 1, "precision"),
        migration_class(spot) == migration_class(standby),
        None,
        "a run cannot move there",
    )
    stated = context.submitted_plan.job.deadline_hours is not None
    field_coverage.is_true("requirements", ("phases",), stated, None, "a plan without a deadline needs no standby")
    return spot.named.offer_group.rate > 0 and stated


def _stated(context: Context, plan: Standby) -> Stated:
    """The document's replayed figures; hours paid on spot are derived from the expected preemptions."""
    field_coverage = context.field_coverage
    preemptions = field_coverage.number("phases", 0, "expected_preemptions")
    return Stated(
        paid_hours=plan.rule.setup_hours + max(preemptions, 0.0) / plan.pair.preemptions_per_hour,
        clock_hours=field_coverage.number("phases", 0, "hours"),
        standby_hours=field_coverage.number("phases", 1, "hours"),
        calls=field_coverage.number("phases", 1, "probability"),
        called_at=field_coverage.number("phases", 1, "switch_by_hours"),
        hours=field_coverage.number("hours", "expected"),
        median_hours=field_coverage.number("hours", "median"),
        confident_hours=field_coverage.number("hours", "confident"),
        p95_hours=field_coverage.number("hours", "p95"),
        usd=field_coverage.micros("cost_usd", "expected") / 1e6,
        median_usd=field_coverage.micros("cost_usd", "median") / 1e6,
        p95_usd=field_coverage.micros("cost_usd", "p95") / 1e6,
    )


def _spot_cost(context: Context, plan: Standby, stated: Stated) -> RecomputedCost:
    """The expected cost on interruptible machines."""
    offer_group, _, nodes = plan.spot.named
    rate, place = nodes * offer_group.micros / 1e6, context.rates.place(offer_group.place)
    storage = place.storage_per_hour * stated.clock_hours
    compute = rate * _billed(stated.paid_hours, offer_group.kind)
    setup = min(rate * plan.rule.setup_hours, compute)
    return RecomputedCost(compute, setup, storage, place.egress, 0.0, compute + storage + place.egress, 0.0, 0.0)


def _billed(hours: float, kind: PriceKind) -> float:
    """Expected billed hours: half a step more than these, which spread over many steps, or the minimum."""
    step, least = billing(kind, 0)
    return max(hours + step / 2, least)


def _standby_cost(context: Context, plan: Standby, stated: Stated) -> RecomputedCost:
    """The expected cost of the standby, over runs that use it and those that do not."""
    offer_group, _, nodes = plan.standby.named
    rate, chance = nodes * offer_group.micros / 1e6, min(max(stated.calls, 0.0), 1.0)
    storage = context.rates.place(offer_group.place).storage_per_hour * stated.standby_hours
    egress = chance * plan.pair.standby_fixed_usd
    power = nodes * offer_group.machine.power_usd_per_hour * stated.standby_hours
    compute = rate * chance * _billed(stated.standby_hours / max(chance, LEAST_CHANCE), offer_group.kind)
    setup = min(rate * chance * context.rates.setup_hours_of(offer_group, nodes), compute)
    return RecomputedCost(compute, setup, storage, egress, power, compute + storage + egress + power, 0.0, 0.0)


def _spot(context: Context, plan: Standby, stated: Stated, cost_breakdown: RecomputedCost) -> None:
    """Check the figures of the phase on interruptible machines."""
    field_coverage, path = context.field_coverage, ("phases", 0)
    field_coverage.tick("hours", (*path, "hours"), (*path, "expected_preemptions"))
    moment_of(context, (*path, "starts_at"), second_text(context.submitted_plan.start), "not the start", 0.0)
    field_coverage.is_number("work", (*path, "share"), 1.0, "not the work without the standby's share")
    field_coverage.is_same("requirements", (*path, "role"), "planned", "a phase that is planned")
    taken_over(context, 0, moved=False, far=False, egress=0.0, relative=OF_ROUNDED)
    cost_of_phase(context, path, cost_breakdown, OF_ROUNDED)
    on_clock = stated.paid_hours <= stated.clock_hours * (1 + LOOSE)
    field_coverage.is_true("hours", (*path, "hours"), on_clock, stated.paid_hours, "fewer hours than are paid")


def _standby(context: Context, plan: Standby, stated: Stated, cost_breakdown: RecomputedCost) -> None:
    """Check the figures of the standby: its probability, latest call and expected cost."""
    field_coverage, path = context.field_coverage, ("phases", 1)
    work, calls = plan.pair.standby_work_hours, stated.calls
    field_coverage.tick("hours", (*path, "hours"), (*path, "probability"))
    field_coverage.is_true("hours", (*path, "probability"), 0.0 <= calls <= 1.0, None, "no probability")
    trained = stated.standby_hours - calls * plan.pair.changeover_hours
    field_coverage.is_true("hours", (*path, "hours"), trained >= -1e-6, None, "fewer hours than the changeovers need")
    mean_work = mean_of(work, plan.pair.standby_log_sigma)
    share = 1.0 - min(max(1.0 - trained / mean_work, 0.0), 1.0)
    field_coverage.is_number("work", (*path, "share"), share, "not its average share of the work", relative=1e-5)
    field_coverage.is_same("requirements", (*path, "role"), "standby", "it stands by")
    switch(context, path, stated.called_at, plan.last_hours, work)
    when = second_text(context.submitted_plan.start + timedelta(hours=_bounded(stated.called_at)))
    moment_of(context, (*path, "starts_at"), when, "not when it is called", LOOSE)
    places = plan.spot.named.offer_group.place, plan.standby.named.offer_group.place
    taken_over(context, 1, moved=True, far=places[0] != places[1], egress=cost_breakdown.egress, relative=OF_ROUNDED)
    cost_of_phase(context, path, cost_breakdown, OF_ROUNDED)
    field_coverage.is_number("hours", (*path, "checkpoint_interval_hours"), None, "nobody takes it away")
    field_coverage.is_number("hours", (*path, "expected_preemptions"), 0.0, "nobody takes it away")


def _bounded(hours: float) -> float:
    """Hours clipped to the range that a date accepts."""
    return min(max(hours, 0.0), NEVER_HOURS)


def switch(context: Context, path: Path, at_hours: float, last_hours: float, standby_hours: float) -> None:
    """Check the latest call of a standby, and the share of the work that must be saved by then to avoid it."""
    field_coverage = context.field_coverage
    when = second_text(context.submitted_plan.start + timedelta(hours=_bounded(at_hours)))
    field_coverage.is_number("hours", (*path, "switch_by_hours"), at_hours, "not the latest moment", relative=LOOSE)
    moment_of(context, (*path, "switch_by"), when, "not the latest moment", LOOSE)
    needed = min(max(1.0 - (last_hours - at_hours) / standby_hours, 0.0), 1.0)
    field_coverage.is_number(
        "hours", (*path, "switch_share"), needed, "not the saved work that is needed", relative=1e-5
    )


def _carbon(context: Context, plan: Standby, stated: Stated) -> float | None:
    trained = max(stated.standby_hours - stated.calls * plan.pair.changeover_hours, 0.0)
    hours = (stated.paid_hours - plan.rule.setup_hours, trained)
    kilograms: list[float | None] = []
    for part, busy in zip((plan.spot, plan.standby), hours, strict=True):
        kg_per_node_hour = context.rates.kg_per_node_hour(part.named.offer_group)
        kilograms.append(None if kg_per_node_hour is None else kg_per_node_hour * part.named.nodes * busy)
    return total_kg(kilograms)


def _replayed(context: Context, stated: Stated, figures: Figures, plan: Standby) -> None:
    """Check every replayed figure against the interval of the runs, widened by the error of the planner's model."""
    whole = plan.pair.changeover_hours + plan.pair.standby_work_hours
    latest = max(stated.called_at, 0.0) <= plan.rule.deadline_hours
    context.field_coverage.is_true("hours", ("phases", 1, "switch_by_hours"), latest, None, "after the deadline")
    confident = figures.confident_hours._replace(value=min(figures.confident_hours.value, plan.rule.deadline_hours))
    # Rare runs may raise a mean above what 95 % of runs take or cost; that is then stated as the mean.
    p95_hours, p95_usd = (
        figure._replace(value=max(figure.value, mean))
        for figure, mean in ((figures.p95_hours, stated.hours), (figures.p95_usd, stated.usd))
    )
    checks: tuple[tuple[Path, str, float, Estimated | None], ...] = (
        (
            ("phases", 0, "expected_preemptions"),
            "hours paid on interruptible machines",
            stated.paid_hours,
            figures.paid_hours,
        ),
        (("phases", 0, "hours"), "hours on interruptible machines", stated.clock_hours, figures.clock_hours),
        (
            ("phases", 1, "hours"),
            "standby hours",
            stated.standby_hours,
            figures.standby_hours.of_event(stated.calls, whole),
        ),
        (("phases", 1, "probability"), "calls", stated.calls, figures.calls.of_event(stated.calls, 1.0)),
        (("phases", 1, "switch_by_hours"), "moment of the call", stated.called_at, figures.called_at),
        (("hours", "expected"), "expected hours", stated.hours, figures.hours.of_event(stated.calls, whole)),
        (("hours", "median"), "quantiles of hours", stated.median_hours, figures.median_hours),
        (("hours", "confident"), "quantiles of hours", stated.confident_hours, confident),
        (("hours", "p95"), "quantiles of hours", stated.p95_hours, p95_hours),
        (("cost_usd", "median"), "quantiles of cost", stated.median_usd, figures.median_usd),
        (("cost_usd", "p95"), "quantiles of cost", stated.p95_usd, p95_usd),
    )
    for path, name, value, leg in checks:
        if leg is not None:
            within(context, path, name, value, leg, segments=plan.pair.work_hours / plan.interval_hours)
