"""Checks of the other configurations that a plan names: alternatives, other frameworks and the frontier."""

from typing import NamedTuple

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.verify.configuration_survey import Least, Survey, by_cost, cheapest
from gpuplan.planner.verify.cost_recomputation import P95, RecomputedCost
from gpuplan.planner.verify.eligibility_check import framework_for
from gpuplan.planner.verify.field_coverage import Path
from gpuplan.planner.verify.named_offers import Named
from gpuplan.planner.verify.price_spread import INTEGRATED, is_estimate, quantiles
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import Clock

CHECK = "alternatives"
FRAMEWORK = "training.framework"
WITHOUT_A_MOVE = "without a move"
FASTEST, CHEAPEST, LEAST_COST = "fastest within the requirements", "cheapest at any speed", "least cost"
#: Micro-dollars by which a stated cost may differ from the enumeration's, in addition to `Context.relative`.
_SAME = 1.0


class Choice(NamedTuple):
    """A configuration that a document names, with its recomputed cost in micro-dollars and its hours.

    `busy` are the hours without the wait for the availability windows of an owned machine, `clock` those with it.
    """

    named: Named
    micros: int
    busy: Clock
    clock: Clock
    cost_breakdown: RecomputedCost


def choice(context: Context, path: Path, *, requirements: bool = True) -> Choice | None:
    """The configuration at the path, recomputed, with its cost and hours checked; None if the job cannot run on it."""
    field_coverage = context.field_coverage
    named = context.counter.named(field_coverage, path)
    figures = [(*path, name) for name in ("cost_usd", "cost_p95_usd", "hours", "hours_confident")]
    if named is None:
        field_coverage.tick(CHECK, *figures)
        return None
    offer_group, nodes = named.offer_group, named.nodes
    if requirements:
        allowed(context, path, named)
    row = context.estimator.row(offer_group.machine, nodes)
    busy = None if row.reason else context.rates.clock(offer_group, nodes, row)
    clock = None if busy is None else context.rates.in_windows(offer_group.machine, busy)
    if busy is None or clock is None:
        why = row.reason or "longer than its price kind or free windows allow"
        field_coverage.is_true(CHECK, (*path, "nodes"), False, None, f"so many nodes cannot run the job: {why}")
        field_coverage.tick(CHECK, *figures)
        return None
    cost_breakdown = context.rates.cost_breakdown(offer_group, offer_group.micros, nodes, busy)
    money, hours = "not the cost of this configuration", "not the hours of this configuration"
    field_coverage.is_money(CHECK, figures[0], cost_breakdown.total * 1e6, money, relative=context.relative)
    p95, relative = cost_breakdown.p95, context.relative
    if is_estimate(named.offer):
        (p95,), relative = quantiles([context.rates.cost_by_deviation(named, busy)], (P95,)), INTEGRATED
    field_coverage.is_money(CHECK, figures[1], p95 * 1e6, money, relative=relative)
    field_coverage.is_number(CHECK, figures[2], clock.expected, hours)
    field_coverage.is_number(CHECK, figures[3], clock.confident, hours)
    return Choice(named, round(cost_breakdown.total * 1e6), busy, clock, cost_breakdown)


def allowed(context: Context, path: Path, named: Named) -> None:
    """Check that the offer is eligible and meets the requirements that do not depend on time and cost."""
    field_coverage, offer_group, asked = (
        context.field_coverage,
        named.offer_group,
        context.submitted_plan.job.constraints,
    )
    name = (*path, "instance_type")
    field_coverage.is_true("requirements", name, not offer_group.reason, None, offer_group.reason)
    field_coverage.is_true(
        "requirements", name, not offer_group.broken, None, f"not among {', '.join(sorted(offer_group.broken))}"
    )
    nodes = (*path, "nodes")
    most = int(min(asked.max_nodes, offer_group.machine.limit, offer_group.quota_nodes))
    field_coverage.is_true(
        "requirements",
        nodes,
        named.nodes <= most,
        most,
        "more nodes than the job or a known quota allows, or the source has",
    )
    devices = named.nodes * offer_group.machine.type.devices
    if asked.max_accelerators is not None:
        few = devices <= asked.max_accelerators
        field_coverage.is_true(
            "requirements", nodes, few, asked.max_accelerators, "more than constraints.max_accelerators"
        )
    alone = named.nodes == 1 or offer_group.machine.type.clusters or offer_group.machine.type.fixed_nodes is not None
    field_coverage.is_true("requirements", nodes, alone, 1, "machines of this type do not work together")
    whole = offer_group.machine.type.fixed_nodes
    field_coverage.is_true("requirements", nodes, whole in (None, named.nodes), whole, "a slice has all its hosts")


def alternatives(context: Context, survey: Survey, *, moves: bool) -> None:
    """Check every alternative, and that none is missing."""
    field_coverage, job = context.field_coverage, context.submitted_plan.job
    plan_micros = field_coverage.micros("cost_usd", "expected")
    expected = _groups(context, survey, moves=moves)
    seen = set()
    for number in range(field_coverage.size("alternatives")):
        path: Path = ("alternatives", number)
        label = field_coverage.text(*path, "label")
        field_coverage.tick(CHECK, (*path, "label"))
        field_coverage.is_true(
            CHECK, (*path, "label"), label not in seen, None, "an earlier alternative has the same label"
        )
        seen.add(label)
        alternative = choice(context, path)
        others = [(*path, name) for name in ("extra_usd", "meets_deadline", "meets_budget")]
        if alternative is None:
            field_coverage.tick(CHECK, *others)
            continue
        # The difference of the two stated costs, which other checks recompute.
        extra = field_coverage.micros(*path, "cost_usd") - plan_micros
        field_coverage.is_money(CHECK, others[0], extra, "not this cost less the cost of the plan", relative=0.0)
        in_time = job.deadline_hours is None or alternative.clock.confident <= job.deadline_hours
        field_coverage.is_same(CHECK, others[1], in_time, "not whether it meets the deadline")
        in_budget = job.budget_usd is None or alternative.micros / 1e6 <= job.budget_usd
        field_coverage.is_same(CHECK, others[2], in_budget, "not whether it meets the budget")
        if label not in expected:
            field_coverage.is_true(CHECK, (*path, "label"), False, sorted(expected), "no configuration has that label")
            continue
        cost, hours = expected[label]
        best = abs(alternative.micros - cost) <= _SAME + context.relative * cost if cost is not None else True
        best = best and (hours is None or alternative.clock.confident <= hours * (1 + 1e-9))
        what = " and ".join(
            f"{value:.9g} {unit}"
            for value, unit in ((None if cost is None else cost / 1e6, "USD"), (hours, "hours"))
            if value is not None
        )
        field_coverage.is_true(
            CHECK, (*path, "instance_type"), best, what, f"not the {label}: the enumeration has one with {what}"
        )
    for label in sorted(set(expected) - seen):
        field_coverage.is_true(CHECK, ("alternatives",), False, label, f"the alternative {label!r} is missing")


def _groups(context: Context, survey: Survey, *, moves: bool) -> dict[str, tuple[float | None, float | None]]:
    """(micro-dollars, hours) of the best configuration per label; None for the figure that the label does not
    minimise.
    """
    best_by_label: dict[str, tuple[float | None, float | None]] = {}
    whole = survey.whole
    if whole.fastest is not None:
        best_by_label[FASTEST] = (None, whole.fastest.confident_hours)
    if whole.any_cheapest is not None:
        best_by_label[CHEAPEST] = (whole.any_cheapest.micros, None)
    if moves and whole.any_fastest is not None:
        best_by_label[WITHOUT_A_MOVE] = _best(whole)
    if context.submitted_plan.job.objective != "cost" and whole.feasible is not None:
        best_by_label[LEAST_COST] = (whole.feasible.micros, None)
    # Plans of the first release name no actions, and not the best of each vendor.
    groups = survey.labels | survey.vendors if context.field_coverage.has("actions") else survey.labels
    return best_by_label | {label: _best(group) for label, group in groups.items()}


def _best(group: Least) -> tuple[float | None, float | None]:
    """The cheapest configuration that meets deadline and budget, else the fastest."""
    if group.feasible is not None:
        return group.feasible.micros, None
    return None, None if group.any_fastest is None else group.any_fastest.confident_hours


def other_framework(context: Context, plan_micros: int) -> None:
    """Check the cheapest configuration for code of another framework, or that none is cheaper than the plan."""
    field_coverage, job = context.field_coverage, context.submitted_plan.job
    named = job.constraints.accelerators or job.constraints.vendors
    asked = job.objective == "cost" and not named
    others = [
        offer_group
        for offer_group in context.open_offers.offer_groups
        if asked and not offer_group.reason and offer_group.broken == {FRAMEWORK}
    ]
    sweeps = context.enumeration.sweeps(others, job.constraints.max_nodes)
    feasible = (sweep.take(sweep.broken == 0) for sweep in sweeps)
    least = min((cheapest(sweep) for sweep in feasible if len(sweep)), key=by_cost, default=None)
    path: Path = ("other_framework",)
    if least is None or least.micros >= plan_micros:
        is_stated = field_coverage.has(*path)
        field_coverage.is_true(CHECK, path, not is_stated, None, "no machine for other code is cheaper than the plan")
        return
    if not field_coverage.has(*path):
        what = least.offer_group.machine.type.name
        field_coverage.is_true(CHECK, path, False, what, "a cheaper machine for other code is missing")
        return
    alternative = choice(context, path, requirements=False)
    stack = accelerators()[least.offer_group.machine.type.accelerator].stack
    field_coverage.is_same(CHECK, (*path, "framework"), framework_for(stack), "not the framework of this machine")
    extra = field_coverage.micros(*path, "cost_usd") - field_coverage.micros("cost_usd", "expected")
    field_coverage.is_money(CHECK, (*path, "extra_usd"), extra, "not this cost less that of the plan", relative=0.0)
    best = alternative is not None and abs(alternative.micros - least.micros) <= _SAME + context.relative * least.micros
    excluded = alternative is not None and alternative.named.offer_group.broken == {FRAMEWORK}
    why = "not the cheapest machine that only the framework excludes"
    field_coverage.is_true(CHECK, (*path, "instance_type"), best and excluded, least.micros / 1e6, why)


def frontier(context: Context, survey: Survey) -> None:
    """Check the frontier of cost and time, if the document has one: every point, recomputed, and that none is
    missing.
    """
    field_coverage = context.field_coverage
    if not field_coverage.has("frontier"):
        return
    expected = survey.frontier()
    count = field_coverage.size("frontier")
    field_coverage.is_true(
        CHECK, ("frontier",), count == len(expected), len(expected), "not the number of points on the frontier"
    )
    for number in range(count):
        point = choice(context, ("frontier", number))
        if point is None or number >= len(expected):
            continue
        hours, micros = expected[number]
        same = abs(point.micros - micros) <= _SAME + context.relative * micros
        same = same and abs(point.clock.confident - hours) <= 1e-9 * hours
        field_coverage.is_true(
            CHECK,
            ("frontier", number, "cost_usd"),
            same,
            micros / 1e6,
            "another configuration is better in cost and time",
        )
