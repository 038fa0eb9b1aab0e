"""What a plan says of other configurations: each is priced anew, and is the best of what its label names."""

import math
from datetime import timedelta
from typing import NamedTuple

from catalog.money import usd_micros
from catalog.price_kinds import price_kinds
from planner.verify.bill import Bill
from planner.verify.clock import NEVER_HOURS, Clock
from planner.verify.context import Context
from planner.verify.ledger import Path
from planner.verify.named import Named
from planner.verify.survey import Least, Survey

CHECK = "alternatives"
WITHOUT_A_MOVE = "without a move"
FASTEST, CHEAPEST, LEAST_COST = "fastest within the requirements", "cheapest at any speed", "least cost"
#: Costs and hours of the enumeration agree with those of a document to this.
_SAME = 1.0


class Choice(NamedTuple):
    """A configuration that a document names, priced anew: whole micro-dollars; `busy` hours without waiting for windows."""

    named: Named
    micros: int
    busy: Clock
    clock: Clock
    bill: Bill


def choice(context: Context, path: Path, *, requirements: bool = True) -> Choice | None:
    """The configuration at the path, its cost and hours ticked off; None if it is none."""
    ledger = context.ledger
    found = context.counter.named(ledger, path)
    figures = [(*path, name) for name in ("cost_usd", "cost_p95_usd", "hours", "hours_confident")]
    if found is None:
        ledger.tick(CHECK, *figures)
        return None
    lot, nodes = found.lot, found.nodes
    if requirements:
        allowed(context, path, found)
    row = context.estimator.row(lot.machine, nodes)
    busy = None if row.reason else context.rates.clock(lot, nodes, row)
    clock = None if busy is None else context.rates.in_windows(lot.machine, busy)
    if busy is None or clock is None:
        why = row.reason or "longer than its price kind or free windows allow"
        ledger.holds(CHECK, (*path, "nodes"), False, None, f"so many nodes cannot run the job: {why}")
        ledger.tick(CHECK, *figures)
        return None
    bill = context.rates.bill(lot, lot.micros, nodes, busy)
    money, hours = "not the cost of this configuration", "not the hours of this configuration"
    ledger.is_money(CHECK, figures[0], bill.total * 1e6, money, relative=context.relative)
    ledger.is_money(CHECK, figures[1], bill.p95 * 1e6, money, relative=context.relative)
    ledger.is_number(CHECK, figures[2], clock.expected, hours)
    ledger.is_number(CHECK, figures[3], clock.kept, hours)
    return Choice(found, round(bill.total * 1e6), busy, clock, bill)


def allowed(context: Context, path: Path, found: Named) -> None:
    """Whether the offer can be had and breaks nothing that does not hang on time and money."""
    ledger, lot, asked = context.ledger, found.lot, context.claim.job.constraints
    name = (*path, "instance_type")
    ledger.holds("requirements", name, not lot.reason, None, lot.reason)
    ledger.holds("requirements", name, not lot.broken, None, f"not among {', '.join(sorted(lot.broken))}")
    nodes = (*path, "nodes")
    most = min(asked.max_nodes, lot.machine.limit)
    ledger.holds("requirements", nodes, found.nodes <= most, most, "more nodes than are allowed or there are")
    devices = found.nodes * lot.machine.type.devices
    if asked.max_accelerators is not None:
        few = devices <= asked.max_accelerators
        ledger.holds("requirements", nodes, few, asked.max_accelerators, "more than constraints.max_accelerators")
    alone = found.nodes == 1 or lot.machine.type.clusters or lot.machine.type.fixed_nodes is not None
    ledger.holds("requirements", nodes, alone, 1, "machines of this type do not work together")
    whole = lot.machine.type.fixed_nodes
    ledger.holds("requirements", nodes, whole in (None, found.nodes), whole, "a slice has all its hosts")


def alternatives(context: Context, survey: Survey, plan_micros: int, *, moves: bool) -> None:
    """Every alternative, and whether none is missing."""
    ledger, job = context.ledger, context.claim.job
    expected = _groups(context, survey, moves=moves)
    seen = set()
    for number in range(ledger.size("alternatives")):
        path: Path = ("alternatives", number)
        label = ledger.text(*path, "label")
        ledger.tick(CHECK, (*path, "label"))
        ledger.holds(CHECK, (*path, "label"), label not in seen, None, "an alternative of that label stands before")
        seen.add(label)
        found = choice(context, path)
        others = [(*path, name) for name in ("extra_usd", "meets_deadline", "meets_budget")]
        if found is None:
            ledger.tick(CHECK, *others)
            continue
        ledger.is_money(CHECK, others[0], found.micros - plan_micros, "not the distance from the plan")
        in_time = job.deadline_hours is None or found.clock.kept <= job.deadline_hours
        ledger.is_same(CHECK, others[1], in_time, "not whether it meets the deadline")
        in_budget = job.budget_usd is None or found.micros / 1e6 <= job.budget_usd
        ledger.is_same(CHECK, others[2], in_budget, "not whether it meets the budget")
        if label not in expected:
            ledger.holds(CHECK, (*path, "label"), False, sorted(expected), "there is nothing of that label")
            continue
        cost, hours = expected[label]
        best = abs(found.micros - cost) <= _SAME + context.relative * cost if cost is not None else True
        best = best and (hours is None or found.clock.kept <= hours * (1 + 1e-9))
        what = " and ".join(
            f"{value:.9g} {unit}"
            for value, unit in ((None if cost is None else cost / 1e6, "USD"), (hours, "hours"))
            if value is not None
        )
        ledger.holds(CHECK, (*path, "instance_type"), best, what, f"not the {label}: the enumeration has one of {what}")
    for label in sorted(set(expected) - seen):
        ledger.holds(CHECK, ("alternatives",), False, label, f"the alternative {label!r} is missing")


def _groups(context: Context, survey: Survey, *, moves: bool) -> dict[str, tuple[float | None, float | None]]:
    """(micro-dollars, hours) of the best of each label; None where it is not what the label is about."""
    found: dict[str, tuple[float | None, float | None]] = {}
    whole = survey.whole
    if whole.fastest is not None:
        found[FASTEST] = (None, whole.fastest.kept_hours)
    if whole.any_cheapest is not None:
        found[CHEAPEST] = (whole.any_cheapest.micros, None)
    if moves and whole.any_fastest is not None:
        found[WITHOUT_A_MOVE] = _best(whole)
    if context.claim.job.objective != "cost" and whole.feasible is not None:
        found[LEAST_COST] = (whole.feasible.micros, None)
    return found | {label: _best(group) for label, group in survey.labels.items()}


def _best(group: Least) -> tuple[float | None, float | None]:
    """The cheapest that meets deadline and budget, else the fastest."""
    if group.feasible is not None:
        return group.feasible.micros, None
    return None, None if group.any_fastest is None else group.any_fastest.kept_hours


def frontier(context: Context, survey: Survey) -> None:
    """The trades of cost against time, if they are there: each priced anew, and all of them."""
    ledger = context.ledger
    if not ledger.has("frontier"):
        return
    expected = survey.frontier()
    count = ledger.size("frontier")
    ledger.holds(CHECK, ("frontier",), count == len(expected), len(expected), "not as many trades as there are")
    for number in range(count):
        found = choice(context, ("frontier", number))
        if found is None or number >= len(expected):
            continue
        hours, micros = expected[number]
        same = abs(found.micros - micros) <= _SAME + context.relative * micros
        same = same and abs(found.clock.kept - hours) <= 1e-9 * hours
        ledger.holds(CHECK, ("frontier", number, "cost_usd"), same, micros / 1e6, "something beats it in cost and time")


def commitments(context: Context, phase: Named | None) -> None:
    """The plan's machine under kinds with a term: price in the snapshot, obligation and break-even from it.

    A plan in phases (None) has none.
    """
    ledger = context.ledger
    count = ledger.size("commitments")
    if phase is None:
        ledger.holds(CHECK, ("commitments",), not count, [], "a plan in phases has none")
        return
    kinds = {name for name, kind in price_kinds().items() if kind.term_hours}
    paid = phase.lot.micros if phase.offer is None else phase.offer.usd_micros_per_hour
    there = {
        lot.kind.name
        for lot in context.shelves.lots
        if lot.shelf == 0
        and lot.kind.name in kinds
        and (lot.place, lot.machine.type.name) == (phase.lot.place, phase.lot.machine.type.name)
    }
    listed = set()
    for number in range(count):
        path: Path = ("commitments", number)
        kind, name, region = (ledger.text(*path, each) for each in ("price_kind", "instance_type", "region"))
        listed.add(kind)
        nodes = ledger.whole(*path, "nodes", least=1)
        ledger.is_same(CHECK, (*path, "instance_type"), phase.lot.machine.type.name, "not the machine of the plan")
        ledger.is_same(CHECK, (*path, "region"), phase.lot.place[1], "not the place of the plan")
        ledger.is_same(CHECK, (*path, "nodes"), phase.nodes, "not the nodes of the plan")
        ledger.is_same(CHECK, (*path, "price_kind"), kind if kind in there else None, "it has no such price there")
        price = ledger.micros(*path, "usd_per_node_hour")
        known = context.counter.prices(phase.lot.place, name, kind) if region == phase.lot.place[1] else set()
        ledger.tick(CHECK, (*path, "usd_per_node_hour"))
        ledger.holds("prices", (*path, "usd_per_node_hour"), price in known, None, "no such price in the snapshot")
        if kind not in kinds:
            ledger.tick(CHECK, (*path, "total_obligation_usd"), (*path, "break_even_hours"))
            continue
        hours = price_kinds()[kind].term_hours
        obligation = nodes * price * hours
        busy = obligation / max(1, phase.nodes * paid)
        ledger.is_money(CHECK, (*path, "total_obligation_usd"), obligation, "not nodes x price x term", relative=0.0)
        ledger.is_number(CHECK, (*path, "break_even_hours"), busy if busy <= hours else None, "not where it pays off")
    expected = set() if phase.lot.machine.own is not None or phase.lot.paid else there
    ledger.holds(CHECK, ("commitments",), listed == expected, sorted(expected), "not the commitments that there are")


def credit_use(context: Context, spent: dict[str, int], confident_hours: float) -> None:
    """What is left to pay once credits are used; `spent` is micro-dollars by provider."""
    ledger, claim = context.ledger, context.claim
    granted = claim.settings.credits
    if not granted:
        return
    paid = _out_of_pocket(context, spent, confident_hours)
    applied = sum(spent.values()) - paid
    ledger.is_money(CHECK, ("credits", "applied_usd"), applied, "not what the credits cover", relative=context.relative)
    ledger.is_money(CHECK, ("credits", "out_of_pocket_usd"), paid, "not what is left to pay", relative=context.relative)
    others = []
    for number in range(ledger.size("alternatives")):
        path: Path = ("alternatives", number)
        if not (ledger.value(*path, "meets_deadline") and ledger.value(*path, "meets_budget")):
            continue
        provider, micros = ledger.text(*path, "provider"), ledger.micros(*path, "cost_usd")
        left = _out_of_pocket(context, {provider: micros}, ledger.number(*path, "hours_confident"))
        others.append((left, ledger.text(*path, "label")))
    least = min(others, default=None)
    better = least is not None and least[0] < paid
    why = "not whether an alternative leaves less to pay"
    if not ledger.is_there(CHECK, ("credits", "least_out_of_pocket"), better, why) or least is None:
        return
    ledger.is_same(CHECK, ("credits", "least_out_of_pocket", "label"), least[1], "not what leaves least to pay")
    ledger.is_money(
        CHECK, ("credits", "least_out_of_pocket", "out_of_pocket_usd"), least[0], "not what it leaves to pay"
    )


def _out_of_pocket(context: Context, spent: dict[str, int], hours: float) -> int:
    end = context.claim.start + timedelta(hours=min(hours, NEVER_HOURS))
    left = 0
    for provider, micros in spent.items():
        granted = sum(
            usd_micros(each.usd)
            for each in context.claim.settings.credits
            if each.provider == provider and (each.expires is None or end <= each.expires)
        )
        left += max(0, micros - granted)
    return left


def enough(hours: float) -> float:
    """The least number of nine digits that is no less than these hours."""
    digits = 10.0 ** (math.floor(math.log10(hours)) - 8)
    shown = float(f"{hours:.9g}")
    return shown if shown >= hours else float(f"{shown + digits:.9g}")
