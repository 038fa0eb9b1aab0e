"""A plan on interruptible machines with a standby, held against the model that it was planned with, and by simulation.

What the model says of one pair (`planner.spot.net_exact`) is taken as the estimates are; what is worked out anew is
what goes into it (work, rates, prices, ways), every figure that follows from it, and, by replaying the rule preemption
by preemption (`simulated`), that its expectations are those of the rule.
"""

from datetime import timedelta
from typing import NamedTuple

import numpy as np

from planner.spot.net import SHORTER, NetTerms, Pairs
from planner.spot.net_exact import NetRun, net_run
from planner.verify.bill import Bill, billed_hours_of
from planner.verify.clock import interval_hours_of
from planner.verify.context import Context
from planner.verify.course import STEPS, Part, kin
from planner.verify.ledger import Path
from planner.verify.money import parts_of_bill
from planner.verify.named import second_text
from planner.verify.outcome import Outcome, total_kg
from planner.verify.phase import LOOSE, bill_of_phase, described, moment_of, taken_over
from planner.verify.simulated import Leg, simulated

#: A checkpoint that costs nothing is still written no more often than this.
LEAST_INTERVAL_HOURS = 1 / 120
#: A standby that is hardly ever used is billed as if it were used this often.
LEAST_CHANCE = 1e-12
#: Quantiles of the model are found by bisection, and sums by quadrature: other machines differ in later digits.
MODEL = 1e-6


class Net(NamedTuple):
    """A pair as the model takes it, and what the model says of it at the plan's interval."""

    spot: Part
    standby: Part
    pairs: Pairs
    terms: NetTerms
    run: NetRun


def under_net(context: Context) -> Outcome | None:
    """The two phases of a plan under a net, with all their figures ticked off; None where there are none such."""
    ledger = context.ledger
    named = [described(context, ("phases", number), STEPS) for number in (0, 1)]
    parts = [Part(one, context.estimator.row(one.lot.machine, one.nodes), STEPS) for one in named if one is not None]
    if len(parts) < 2 or any(part.row.reason for part in parts):
        return None
    spot, standby = parts
    if not _may_be_paired(context, spot, standby):
        return None
    pairs, terms = pairs_of(context, spot, standby), terms_of(context)
    stated = ledger.number("phases", 0, "checkpoint_interval_hours")
    tried = intervals(context, spot)
    interval = min(tried, key=lambda one: abs(one - stated))
    ledger.is_number(
        "hours", ("phases", 0, "checkpoint_interval_hours"), interval, "none of the intervals that are tried"
    )
    net = Net(spot, standby, pairs, terms, net_run(pairs, terms, interval))
    bills = _spot_bill(context, net), _standby_bill(context, net)
    _spot(context, net, bills[0])
    _standby(context, net, bills[1])
    _replayed(context, net)
    parts_ = parts_of_bill(bills)
    spent: dict[str, int] = {}
    for part, bill in zip(parts, bills, strict=True):
        provider = part.named.lot.place[0]
        spent[provider] = spent.get(provider, 0) + round(bill.total * 1e6)
    run, deadline = net.run, terms.deadline_hours
    return Outcome(
        parts=parts_,
        p95=max(round(run.usd_p95 * 1e6), parts_["expected"]),
        expected=run.hours,
        kept=min(run.hours_kept, deadline),
        p95_hours=run.hours_p95,
        in_time=run.in_time,
        carbon_kg=_carbon(context, net),
        spent=spent,
        machines=(spot.named, standby.named),
        alone=None,
        relative=MODEL,
    )


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


def intervals(context: Context, spot: Part) -> list[float]:
    """Hours between checkpoints that are tried: Young's, and halves of it, which keep more slack."""
    nodes, work = spot.named.nodes, spot.row.hours_with_goodput
    best = interval_hours_of(work, context.rates.checkpoint_hours(nodes), spot.named.lot.rate * nodes)
    return [max(best * part, min(work, LEAST_INTERVAL_HOURS)) for part in SHORTER]


def terms_of(context: Context) -> NetTerms:
    """What the job and the settings say of any pair."""
    job, settings = context.claim.job, context.claim.settings
    return NetTerms(
        deadline_hours=job.deadline_hours or 0.0,
        confidence=job.confidence,
        setup_hours=settings.setup_hours,
        restart_hours=settings.restart_hours,
        wait_hours=settings.spot_wait_hours,
    )


def pairs_of(context: Context, spot: Part, standby: Part) -> Pairs:
    """The pair as the one row that the model takes, from the rows of the snapshot and the estimates."""
    rates, usd, hours = context.rates, 0.0, 0.0
    usd, hours = rates.moving(spot.named.lot.place, standby.named.lot.place)
    k, m = spot.named, standby.named
    figures = {
        "work_hours": spot.row.hours_with_goodput,
        "log_sigma": spot.row.log_sigma,
        "rate": k.lot.rate * k.nodes,
        "checkpoint_hours": rates.checkpoint_hours(k.nodes),
        "usd_per_hour": k.nodes * k.lot.micros / 1e6,
        "storage_usd_per_hour": rates.place(k.lot.place).storage_per_hour,
        "fixed_usd": rates.place(k.lot.place).egress,
        "step_hours": k.lot.kind.billing_step_seconds / 3600,
        "minimum_hours": k.lot.kind.billing_minimum_seconds / 3600,
        "standby_work_hours": standby.row.hours_with_goodput,
        "standby_log_sigma": standby.row.log_sigma,
        "standby_usd_per_hour": m.nodes * m.lot.micros / 1e6,
        "standby_storage_usd_per_hour": rates.place(m.lot.place).storage_per_hour
        + m.nodes * m.lot.machine.power_usd_per_hour,
        "standby_fixed_usd": usd,
        "standby_step_hours": m.lot.kind.billing_step_seconds / 3600,
        "standby_minimum_hours": m.lot.kind.billing_minimum_seconds / 3600,
        "changeover_hours": context.claim.settings.setup_hours + hours,
    }
    zero = np.zeros(1, np.int64)
    return Pairs(spot=zero, standby=zero, **{name: np.array([value]) for name, value in figures.items()})


def _spot_bill(context: Context, net: Net) -> Bill:
    """The expected bill of the interruptible machines."""
    run, (lot, _, nodes) = net.run, net.spot.named
    rate = nodes * lot.micros / 1e6
    compute = rate * billed_hours_of(run.spot_hours, lot.kind)
    setup = min(rate * net.terms.setup_hours, compute)
    place = context.rates.place(lot.place)
    storage = place.storage_per_hour * run.spot_wall_hours
    return Bill(compute, setup, storage, place.egress, 0.0, compute + storage + place.egress, 0.0)


def _standby_bill(context: Context, net: Net) -> Bill:
    """The expected bill of the standby, over runs that use it and those that do not."""
    run, (lot, _, nodes) = net.run, net.standby.named
    rate, chance = nodes * lot.micros / 1e6, run.switch_probability
    compute = rate * chance * billed_hours_of(run.standby_hours / max(chance, LEAST_CHANCE), lot.kind)
    setup = min(rate * chance * net.terms.setup_hours, compute)
    storage = context.rates.place(lot.place).storage_per_hour * run.standby_hours
    egress = chance * float(net.pairs.standby_fixed_usd[0])
    power = nodes * lot.machine.power_usd_per_hour * run.standby_hours
    return Bill(compute, setup, storage, egress, power, compute + storage + egress + power, 0.0)


def _spot(context: Context, net: Net, bill: Bill) -> None:
    """The figures of the phase on interruptible machines."""
    ledger, run, path = context.ledger, net.run, ("phases", 0)
    ledger.is_number("hours", (*path, "hours"), run.spot_wall_hours, "not the hours on spot", relative=MODEL)
    moment_of(context, (*path, "starts_at"), second_text(context.claim.start), "not the start", 0.0)
    ledger.is_number("work", (*path, "share"), 1.0, "it does the work but for what the standby takes over")
    ledger.is_same("requirements", (*path, "role"), "planned", "a phase that is planned")
    taken_over(context, 0, moved=False, far=False, egress=0.0, relative=MODEL)
    bill_of_phase(context, path, bill, MODEL)
    expected = float(net.pairs.rate[0]) * (run.spot_hours - net.terms.setup_hours)
    ledger.is_number("hours", (*path, "expected_preemptions"), expected, "not rate x hours paid", relative=MODEL)


def _standby(context: Context, net: Net, bill: Bill) -> None:
    """The figures of the standby: how likely it is, by when, and what it costs on average."""
    ledger, run = context.ledger, net.run
    path: Path = ("phases", 1)
    work = float(net.pairs.standby_work_hours[0])
    trained = run.standby_hours - run.switch_probability * run.changeover_hours
    ledger.is_number("hours", (*path, "hours"), run.standby_hours, "not its expected hours", relative=MODEL)
    share = 1.0 - min(max(1.0 - trained / work, 0.0), 1.0)
    ledger.is_number("work", (*path, "share"), share, "not the work that it does on average", relative=1e-5)
    ledger.is_same("requirements", (*path, "role"), "standby", "it stands by")
    ledger.is_number(
        "hours", (*path, "probability"), run.switch_probability, "not how often it is used", relative=MODEL
    )
    last = net.terms.deadline_hours - run.length_hours - run.changeover_hours
    switch(context, path, run.switch_hours, last, work)
    when = second_text(context.claim.start + timedelta(hours=run.switch_hours))
    moment_of(context, (*path, "starts_at"), when, "not when it is called", LOOSE)
    places = net.spot.named.lot.place, net.standby.named.lot.place
    taken_over(context, 1, moved=True, far=places[0] != places[1], egress=bill.egress, relative=MODEL)
    bill_of_phase(context, path, bill, MODEL)
    ledger.is_number("hours", (*path, "checkpoint_interval_hours"), None, "nobody takes it away")
    ledger.is_number("hours", (*path, "expected_preemptions"), 0.0, "nobody takes it away")


def switch(context: Context, path: Path, at_hours: float, last_hours: float, standby_hours: float) -> None:
    """By when a standby must be called, and how much of the work must be saved by then for it not to be."""
    ledger = context.ledger
    when = second_text(context.claim.start + timedelta(hours=at_hours))
    ledger.is_number("hours", (*path, "switch_by_hours"), at_hours, "not the latest moment", relative=MODEL)
    moment_of(context, (*path, "switch_by"), when, "not the latest moment", LOOSE)
    needed = min(max(1.0 - (last_hours - at_hours) / standby_hours, 0.0), 1.0)
    ledger.is_number("hours", (*path, "switch_share"), needed, "not the work saved that it takes", relative=1e-5)


def _carbon(context: Context, net: Net) -> float | None:
    run, rates = net.run, context.rates
    trained = max(run.standby_hours - run.switch_probability * run.changeover_hours, 0.0)
    hours = (run.spot_hours - net.terms.setup_hours, trained)
    found: list[float | None] = []
    for part, busy in zip((net.spot, net.standby), hours, strict=True):
        each = rates.kg_per_node_hour(part.named.lot)
        found.append(None if each is None else each * part.named.nodes * busy)
    return total_kg(found)


def _replayed(context: Context, net: Net) -> None:
    """The rule, replayed run by run: the model's expectations lie within what chance allows."""
    ledger = context.ledger
    found = simulated(net.pairs, net.terms, net.run.interval_hours)
    chance, hours, standby = net.run.switch_probability, net.run.spot_hours, net.run.standby_hours
    whole = float(net.pairs.changeover_hours[0] + net.pairs.standby_work_hours[0])
    checks: tuple[tuple[Path, float, Leg], ...] = (
        (("phases", 1, "probability"), chance, found.called.of_event(chance, 1.0, found.runs)),
        (("phases", 0, "hours"), hours, found.spot_hours),
        (("phases", 1, "hours"), standby, found.standby_hours.of_event(chance, whole, found.runs)),
    )
    for path, value, leg in checks:
        why = f"{found.runs:,} replayed runs come to {leg.mean:.4g} +- {leg.error:.2g}"
        ledger.holds("replayed", path, leg.allows(value), leg.mean, why)
