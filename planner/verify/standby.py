"""A plan on interruptible machines with a standby, held against its rule: replayed, and figure by figure.

The rule is what `planner.verify.replay` states. Which machines and prices go into it, when the standby is in time (in
closed form), and the intervals between checkpoints are worked out anew. What the rule comes to on average and in its
quantiles has no closed form: every such figure (`REPLAYED`) is held against thousands of replayed runs, within their
interval. Every other figure of the two phases follows from these, and is held against them to the last digits.
"""

import math
from datetime import timedelta
from typing import NamedTuple

from catalog.price_kinds import PriceKind
from planner.verify.bill import Bill, billing
from planner.verify.billing import mean_of
from planner.verify.clock import NEVER_HOURS, interval_hours_of
from planner.verify.context import Context
from planner.verify.course import STEPS, Part, kin
from planner.verify.ledger import Path, closely
from planner.verify.money import parts_of_bill
from planner.verify.named import second_text
from planner.verify.outcome import Outcome, total_kg
from planner.verify.phase import LOOSE, bill_of_phase, described, moment_of, taken_over
from planner.verify.replay import Estimated, Figures, Pair, Rule, figures

#: Parts of the interval of Young and Daly that are tried between checkpoints: shorter ones keep more slack.
SHORTER = (1.0, 0.5, 0.25, 0.125)
#: Sums and quotients of two figures of the document, each rounded to nine digits.
OF_ROUNDED = 2e-8
#: A checkpoint that costs nothing is still written no more often than this.
LEAST_INTERVAL_HOURS = 1 / 120
#: A standby that is hardly ever used is billed as if it were used this often.
LEAST_CHANCE = 1e-12


class Room(NamedTuple):
    """How far a stated figure may lie from the interval of the replayed runs: a share of it, absolutely, and by how much the
    share grows where a run has few segments, each of which is a step.
    """

    share: float
    absolute: float
    of_a_segment: float = 0.0

    def share_of(self, segments: float) -> float:
        """The share for runs of so many segments."""
        return self.share + self.of_a_segment / max(segments, 1.0)


#: The planner's model of a standby is an approximation of its rule: about twice what it was found to be off by at most, over
#: 18 plans on small catalogues (0.8 % of hours on interruptible machines, 1.6 % of the standby's, 5.4 % of calls, 3.2 % of
#: their moment, 0.5 % of expected hours, 1.1 % and 1.5 % of quantiles) and runs of eight segments (3.3 % of hours).
REPLAYED = {
    "hours paid on interruptible machines": Room(0.01, 0.003, 0.3),
    "hours on interruptible machines": Room(0.01, 0.003, 0.3),
    "standby hours": Room(0.03, 0.003, 0.3),
    "calls": Room(0.08, 0.003),
    "moment of the call": Room(0.08, 0.05),
    "expected hours": Room(0.015, 0.01),
    "quantiles of hours": Room(0.03, 0.01),
    "quantiles of cost": Room(0.04, 0.01),
}


class Standby(NamedTuple):
    """The two parts of a plan, the pair and the rule as they are replayed, and the interval between checkpoints."""

    spot: Part
    standby: Part
    pair: Pair
    rule: Rule
    interval_hours: float

    @property
    def length_hours(self) -> float:
        """An interval with its checkpoint."""
        return self.interval_hours + self.pair.checkpoint_hours

    @property
    def last_hours(self) -> float:
        """The hour by which a standby that does all the work is called at the latest."""
        return self.rule.deadline_hours - self.length_hours - self.pair.changeover_hours

    def in_time(self) -> float:
        """The probability that the standby is in time: that set-up, a first interval, changeover and all its work fit."""
        room = self.last_hours - self.rule.setup_hours
        return chance_of_work(room, self.pair.standby_work_hours, self.pair.standby_log_sigma)


class Stated(NamedTuple):
    """The replayed figures as the document states them; everything else of the two phases follows."""

    paid_hours: float
    clock_hours: float
    standby_hours: float
    calls: float
    called_at: float
    hours: float
    median_hours: float
    kept_hours: float
    p95_hours: float
    median_usd: float
    p95_usd: float


def with_standby(context: Context) -> Outcome | None:
    """The two phases of a plan with a standby, with all their figures ticked off; None where there are none such."""
    ledger = context.ledger
    named = [described(context, ("phases", number), STEPS) for number in (0, 1)]
    parts = [Part(one, context.estimator.row(one.lot.machine, one.nodes), STEPS) for one in named if one is not None]
    if len(parts) < 2 or any(part.row.reason for part in parts):
        return None
    spot, standby = parts
    if not _may_be_paired(context, spot, standby):
        return None
    at = ("phases", 0, "checkpoint_interval_hours")
    interval = nearest_interval(context, spot, ledger.number(*at))
    ledger.is_number("hours", at, interval, "none of the intervals that are tried")
    plan = Standby(spot, standby, pair_of(context, spot, standby), rule_of(context), interval)
    stated = _stated(context, plan)
    bills = _spot_bill(context, plan, stated), _standby_bill(context, plan, stated)
    _spot(context, plan, stated, bills[0])
    _standby(context, plan, stated, bills[1])
    _replayed(context, stated, figures(plan.pair, plan.rule, interval, context.claim.job.confidence), plan)
    sums = parts_of_bill(bills)
    spent: dict[str, int] = {}
    for part, bill in zip(parts, bills, strict=True):
        provider = part.named.lot.place[0]
        spent[provider] = spent.get(provider, 0) + round(bill.total * 1e6)
    return Outcome(
        parts=sums,
        median=round(stated.median_usd * 1e6),
        p95=round(stated.p95_usd * 1e6),
        expected=stated.hours,
        median_hours=stated.median_hours,
        kept=_kept(stated.kept_hours, plan.rule.deadline_hours),
        p95_hours=stated.p95_hours,
        in_time=plan.in_time(),
        carbon_kg=_carbon(context, plan, stated),
        spent=spent,
        machines=(spot.named, standby.named),
        alone=None,
        relative=OF_ROUNDED,
    )


def _kept(stated_hours: float, deadline_hours: float) -> float:
    """The stated hours; those of the deadline where they are these, rounded to nine digits."""
    return deadline_hours if closely(stated_hours, deadline_hours) else stated_hours


def _may_be_paired(context: Context, spot: Part, standby: Part) -> bool:
    """Whether one can be taken away and the other is there at once and stays, and a run can move between them."""
    ledger, lot = context.ledger, standby.named.lot
    kind = lot.kind
    plain = not (lot.rate or kind.max_run_hours or (kind.term_hours and not lot.paid))
    own = lot.machine.own
    at = ("phases", 1, "price_kind")
    ledger.holds("requirements", ("phases", 0, "price_kind"), spot.named.lot.rate > 0, None, "nobody takes these away")
    ledger.holds("requirements", at, plain and not (own and own.windows), None, "not there at once to stand by")
    ledger.holds("requirements", ("phases", 1, "precision"), kin(spot) == kin(standby), None, "a run cannot move there")
    stated = context.claim.job.deadline_hours is not None
    ledger.holds("requirements", ("phases",), stated, None, "without a deadline nothing needs a standby")
    return spot.named.lot.rate > 0 and stated


def nearest_interval(context: Context, spot: Part, stated_hours: float) -> float:
    """Of the hours between checkpoints that are tried (Young's, and parts of it) those nearest to what is stated."""
    nodes, work = spot.named.nodes, spot.row.hours_with_goodput
    best = interval_hours_of(work, context.rates.checkpoint_hours(nodes), spot.named.lot.rate * nodes)
    tried = [max(best * part, min(work, LEAST_INTERVAL_HOURS)) for part in SHORTER]
    return min(tried, key=lambda one: abs(one - stated_hours))


def rule_of(context: Context) -> Rule:
    """What the job and the settings say of any pair."""
    settings = context.claim.settings
    return Rule(
        deadline_hours=context.claim.job.deadline_hours or 0.0,
        setup_hours=settings.setup_hours,
        restart_hours=settings.restart_hours,
        wait_hours=settings.spot_wait_hours,
    )


def pair_of(context: Context, spot: Part, standby: Part) -> Pair:
    """The pair in plain numbers, from the rows of the snapshot and the estimates."""
    rates, k, m = context.rates, spot.named, standby.named
    usd, hours = rates.moving(k.lot.place, m.lot.place)
    return Pair(
        work_hours=spot.row.hours_with_goodput,
        log_sigma=spot.row.log_sigma,
        preemptions_per_hour=k.lot.rate * k.nodes,
        checkpoint_hours=rates.checkpoint_hours(k.nodes),
        usd_per_hour=k.nodes * k.lot.micros / 1e6,
        clock_usd_per_hour=rates.place(k.lot.place).storage_per_hour,
        fixed_usd=rates.place(k.lot.place).egress,
        standby_work_hours=standby.row.hours_with_goodput,
        standby_log_sigma=standby.row.log_sigma,
        standby_usd_per_hour=m.nodes * (m.lot.micros / 1e6 + m.lot.machine.power_usd_per_hour)
        + rates.place(m.lot.place).storage_per_hour,
        standby_fixed_usd=usd,
        changeover_hours=context.claim.settings.setup_hours + hours,
    )


def chance_of_work(room_hours: float, work_hours: float, sigma: float) -> float:
    """P(f x work <= room) for the lognormal error f of an estimate."""
    if room_hours <= 0:
        return 0.0
    if sigma == 0:
        return 1.0 if work_hours <= room_hours * (1 + 1e-12) else 0.0
    return 0.5 * math.erfc(-math.log(room_hours / work_hours) / sigma / math.sqrt(2))


def _stated(context: Context, plan: Standby) -> Stated:
    """The figures to be replayed, read. Hours paid on interruptible machines stand there as expected preemptions."""
    ledger = context.ledger
    preemptions = ledger.number("phases", 0, "expected_preemptions")
    return Stated(
        paid_hours=plan.rule.setup_hours + max(preemptions, 0.0) / plan.pair.preemptions_per_hour,
        clock_hours=ledger.number("phases", 0, "hours"),
        standby_hours=ledger.number("phases", 1, "hours"),
        calls=ledger.number("phases", 1, "probability"),
        called_at=ledger.number("phases", 1, "switch_by_hours"),
        hours=ledger.number("hours", "expected"),
        median_hours=ledger.number("hours", "median"),
        kept_hours=ledger.number("hours", "confident"),
        p95_hours=ledger.number("hours", "p95"),
        median_usd=ledger.micros("cost_usd", "median") / 1e6,
        p95_usd=ledger.micros("cost_usd", "p95") / 1e6,
    )


def _spot_bill(context: Context, plan: Standby, stated: Stated) -> Bill:
    """The expected bill of the interruptible machines."""
    lot, _, nodes = plan.spot.named
    rate, place = nodes * lot.micros / 1e6, context.rates.place(lot.place)
    storage = place.storage_per_hour * stated.clock_hours
    compute = rate * _billed(stated.paid_hours, lot.kind)
    setup = min(rate * plan.rule.setup_hours, compute)
    return Bill(compute, setup, storage, place.egress, 0.0, compute + storage + place.egress, 0.0, 0.0)


def _billed(hours: float, kind: PriceKind) -> float:
    """Hours billed on average: the minimum, or half a step more than these, which spread over many steps."""
    step, least = billing(kind, 0)
    return max(hours + step / 2, least)


def _standby_bill(context: Context, plan: Standby, stated: Stated) -> Bill:
    """The expected bill of the standby, over runs that use it and those that do not."""
    lot, _, nodes = plan.standby.named
    rate, chance = nodes * lot.micros / 1e6, min(max(stated.calls, 0.0), 1.0)
    storage = context.rates.place(lot.place).storage_per_hour * stated.standby_hours
    egress = chance * plan.pair.standby_fixed_usd
    power = nodes * lot.machine.power_usd_per_hour * stated.standby_hours
    compute = rate * chance * _billed(stated.standby_hours / max(chance, LEAST_CHANCE), lot.kind)
    setup = min(rate * chance * plan.rule.setup_hours, compute)
    return Bill(compute, setup, storage, egress, power, compute + storage + egress + power, 0.0, 0.0)


def _spot(context: Context, plan: Standby, stated: Stated, bill: Bill) -> None:
    """The figures of the phase on interruptible machines."""
    ledger, path = context.ledger, ("phases", 0)
    ledger.tick("hours", (*path, "hours"), (*path, "expected_preemptions"))
    moment_of(context, (*path, "starts_at"), second_text(context.claim.start), "not the start", 0.0)
    ledger.is_number("work", (*path, "share"), 1.0, "it does the work but for what the standby takes over")
    ledger.is_same("requirements", (*path, "role"), "planned", "a phase that is planned")
    taken_over(context, 0, moved=False, far=False, egress=0.0, relative=OF_ROUNDED)
    bill_of_phase(context, path, bill, OF_ROUNDED)
    on_clock = stated.paid_hours <= stated.clock_hours * (1 + LOOSE)
    ledger.holds("hours", (*path, "hours"), on_clock, stated.paid_hours, "fewer hours than are paid")


def _standby(context: Context, plan: Standby, stated: Stated, bill: Bill) -> None:
    """The figures of the standby: how likely it is, by when, and what it costs on average."""
    ledger, path = context.ledger, ("phases", 1)
    work, calls = plan.pair.standby_work_hours, stated.calls
    ledger.tick("hours", (*path, "hours"), (*path, "probability"))
    ledger.holds("hours", (*path, "probability"), 0.0 <= calls <= 1.0, None, "no probability")
    trained = stated.standby_hours - calls * plan.pair.changeover_hours
    ledger.holds("hours", (*path, "hours"), trained >= -1e-6, None, "fewer hours than the changeovers take")
    mean_work = mean_of(work, plan.pair.standby_log_sigma)
    share = 1.0 - min(max(1.0 - trained / mean_work, 0.0), 1.0)
    ledger.is_number("work", (*path, "share"), share, "not the work that it does on average", relative=1e-5)
    ledger.is_same("requirements", (*path, "role"), "standby", "it stands by")
    switch(context, path, stated.called_at, plan.last_hours, work)
    when = second_text(context.claim.start + timedelta(hours=_bounded(stated.called_at)))
    moment_of(context, (*path, "starts_at"), when, "not when it is called", LOOSE)
    places = plan.spot.named.lot.place, plan.standby.named.lot.place
    taken_over(context, 1, moved=True, far=places[0] != places[1], egress=bill.egress, relative=OF_ROUNDED)
    bill_of_phase(context, path, bill, OF_ROUNDED)
    ledger.is_number("hours", (*path, "checkpoint_interval_hours"), None, "nobody takes it away")
    ledger.is_number("hours", (*path, "expected_preemptions"), 0.0, "nobody takes it away")


def _bounded(hours: float) -> float:
    """Hours that a date can be moved by."""
    return min(max(hours, 0.0), NEVER_HOURS)


def switch(context: Context, path: Path, at_hours: float, last_hours: float, standby_hours: float) -> None:
    """By when a standby must be called, and how much of the work must be saved by then for it not to be."""
    ledger = context.ledger
    when = second_text(context.claim.start + timedelta(hours=_bounded(at_hours)))
    ledger.is_number("hours", (*path, "switch_by_hours"), at_hours, "not the latest moment", relative=LOOSE)
    moment_of(context, (*path, "switch_by"), when, "not the latest moment", LOOSE)
    needed = min(max(1.0 - (last_hours - at_hours) / standby_hours, 0.0), 1.0)
    ledger.is_number("hours", (*path, "switch_share"), needed, "not the work saved that it takes", relative=1e-5)


def _carbon(context: Context, plan: Standby, stated: Stated) -> float | None:
    trained = max(stated.standby_hours - stated.calls * plan.pair.changeover_hours, 0.0)
    hours = (stated.paid_hours - plan.rule.setup_hours, trained)
    found: list[float | None] = []
    for part, busy in zip((plan.spot, plan.standby), hours, strict=True):
        each = context.rates.kg_per_node_hour(part.named.lot)
        found.append(None if each is None else each * part.named.nodes * busy)
    return total_kg(found)


def _replayed(context: Context, stated: Stated, found: Figures, plan: Standby) -> None:
    """Every figure that is replayed lies within the interval of the runs, or of what the model may be off by."""
    whole = plan.pair.changeover_hours + plan.pair.standby_work_hours
    latest = max(stated.called_at, 0.0) <= plan.rule.deadline_hours
    context.ledger.holds("hours", ("phases", 1, "switch_by_hours"), latest, None, "after the deadline")
    kept = found.kept_hours._replace(value=min(found.kept_hours.value, plan.rule.deadline_hours))
    checks: tuple[tuple[Path, str, float, Estimated | None], ...] = (
        (
            ("phases", 0, "expected_preemptions"),
            "hours paid on interruptible machines",
            stated.paid_hours,
            found.paid_hours,
        ),
        (("phases", 0, "hours"), "hours on interruptible machines", stated.clock_hours, found.clock_hours),
        (
            ("phases", 1, "hours"),
            "standby hours",
            stated.standby_hours,
            found.standby_hours.of_event(stated.calls, whole),
        ),
        (("phases", 1, "probability"), "calls", stated.calls, found.calls.of_event(stated.calls, 1.0)),
        (("phases", 1, "switch_by_hours"), "moment of the call", stated.called_at, found.called_at),
        (("hours", "expected"), "expected hours", stated.hours, found.hours.of_event(stated.calls, whole)),
        (("hours", "median"), "quantiles of hours", stated.median_hours, found.median_hours),
        (("hours", "confident"), "quantiles of hours", stated.kept_hours, kept),
        (("hours", "p95"), "quantiles of hours", stated.p95_hours, found.p95_hours),
        (("cost_usd", "median"), "quantiles of cost", stated.median_usd, found.median_usd),
        (("cost_usd", "p95"), "quantiles of cost", stated.p95_usd, found.p95_usd),
    )
    for path, name, value, leg in checks:
        if leg is not None:
            within(context, path, name, value, leg, segments=plan.pair.work_hours / plan.interval_hours)


def within(context: Context, path: Path, name: str, stated: float, found: Estimated, *, segments: float) -> None:
    """A stated figure lies within the interval of the replayed runs, of so many segments."""
    room = REPLAYED[name]
    ok = found.allows(stated, share=room.share_of(segments), absolute=room.absolute)
    why = f"replayed runs come to {found.value:.5g} +- {found.error:.2g} {name}"
    context.ledger.holds("replayed", path, ok, found.value, why)
