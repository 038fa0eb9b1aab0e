"""Check of a plan: cost, hours, finish, carbon, and that no other plan is better.

Lower bound on the cost of an offer from the dense peak of its accelerators.

    cost of a run >= price per node-hour x FLOPs of the job / (devices x dense peak x goodput)

A modelled goodput is below 1. The bound needs neither the estimator nor a node count.
"""

from dataclasses import asdict, replace
from datetime import timedelta

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.money import usd_exactly
from gpuplan.planner.model.job import Training
from gpuplan.planner.model.verification import PhasedComparison, PlanComparison, SingleComparison
from gpuplan.planner.verify.alternatives_check import alternatives, frontier, other_framework
from gpuplan.planner.verify.capacity_ladder_check import capacity_ladder
from gpuplan.planner.verify.certificate_check import certificate
from gpuplan.planner.verify.configuration_survey import Survey, surveyed
from gpuplan.planner.verify.contingency_check import fallback
from gpuplan.planner.verify.estimator_port import Work
from gpuplan.planner.verify.field_coverage import SHOWN
from gpuplan.planner.verify.ladder_proof_check import CHANGING, ladder_proof, least_if_obtained
from gpuplan.planner.verify.named_offers import second_text
from gpuplan.planner.verify.offer_counts import counts
from gpuplan.planner.verify.offer_groups import OfferGroup
from gpuplan.planner.verify.payment_check import commitments, credit_use
from gpuplan.planner.verify.phase_check import LOOSE, moment_of, ran
from gpuplan.planner.verify.phase_figures import dense_peak
from gpuplan.planner.verify.phase_pairs import InPhases, in_phases
from gpuplan.planner.verify.plan_outcome import Outcome, of_phases
from gpuplan.planner.verify.run_limit_check import run_limits
from gpuplan.planner.verify.sensitivity_check import sensitivity
from gpuplan.planner.verify.standby_check import with_standby
from gpuplan.planner.verify.verification_context import Context

#: The precisions that an accelerator may choose under `auto`.
AUTO = ("bf16", "fp16", "tf32", "fp32")


def least_usd(offer_group: OfferGroup, work: Work, training: Training, goodput: float | None) -> float:
    """Lower bound in USD on the node-hours of the job on this offer; 0 where no peak is known."""
    instance_type = offer_group.machine.type
    names = AUTO if training.precision == "auto" else (training.precision,)
    chip = accelerators()[instance_type.accelerator]
    peak = max((dense_peak(chip, name) or 0.0 for name in names), default=0.0)
    if not peak or offer_group.machine.measured is not None:
        return 0.0
    node_hours = (
        work.total_flops
        / (peak * float(instance_type.accelerator_count))
        / 3600
        / (1.0 if goodput is None else goodput)
    )
    return offer_group.micros / 1e6 * node_hours


#: The planner's normal distribution is accurate to 7.5e-8 (Abramowitz and Stegun 26.2.17).
ROUNDED_CHANCE = 1e-7


def check_planned(context: Context) -> SingleComparison | PhasedComparison:
    """Check everything that a plan states; returns a summary of the choices that its bound was compared with."""
    job = context.submitted_plan.job
    sweeps = context.enumeration.sweeps(context.open_offer_groups, job.constraints.max_nodes)
    survey = surveyed(sweeps, with_carbon=job.objective == "carbon")
    plan_outcome = outcome(context)
    phased: InPhases | None = None
    least = 0
    if plan_outcome is not None:
        sums(context, plan_outcome)
        changing = _changing_machines(context)
        proven = changing or (context, plan_outcome)
        least = least_if_obtained(*proven)
        phased = in_phases(context, _limit(*proven), plan_micros=least)
        certificate(*proven, survey, phased)
        sensitivity(context, plan_outcome, survey)
        alternatives(context, survey, moves=plan_outcome.alone is None)
        other_framework(context, plan_outcome.micros)
        commitments(context, None if plan_outcome.alone is None else plan_outcome.alone.part.named)
        credit_use(context, plan_outcome.spent, plan_outcome.confident)
        ladder_proof(
            context, plan_outcome, capacity_ladder(context, plan_outcome), None if changing is None else changing[1]
        )
        fallback(context, None if plan_outcome.alone is None else plan_outcome.alone.part, plan_outcome.micros)
    run_limits(context)
    frontier(context, survey)
    at = CHANGING if context.field_coverage.has(*CHANGING) else ()
    counts(context, survey, phases=context.field_coverage.size(*at, "phases"))
    return covers(context, survey, phased, None if plan_outcome is None else least / 1e6)


def outcome(context: Context) -> Outcome | None:
    """The recomputed outcome of the phases, with or without a standby; None where they cannot run."""
    field_coverage = context.field_coverage
    if field_coverage.size("phases") == 2 and field_coverage.value("phases", 1, "role") == "standby":
        return with_standby(context)
    phases = ran(context)
    return None if phases is None else of_phases(context, *phases)


def _changing_machines(context: Context) -> tuple[Context, Outcome] | None:
    """The plan that changes machines and is cheapest if obtained, checked in full, where the plan itself is another."""
    if not context.field_coverage.has(*CHANGING):
        return None
    inner = replace(context, field_coverage=context.field_coverage.with_the_figures_at(*CHANGING))
    changing = outcome(inner)
    if changing is None:
        return None
    sums(inner, changing)
    return inner, changing


def _limit(context: Context, outcome: Outcome) -> float:
    """The cost that another plan in phases must stay below to be better, by the least saving of a move where there is
    one.
    """
    saving = context.submitted_plan.settings.least_saving_of_a_move_percent
    return outcome.micros if outcome.alone is None else least_if_obtained(context, outcome) * (1 - saving / 100)


def sums(context: Context, outcome: Outcome) -> None:
    """Check the totals of a plan: cost, hours, finish, probability of the deadline and carbon."""
    field_coverage, submitted_plan = context.field_coverage, context.submitted_plan
    relative, near = outcome.relative, max(SHOWN, outcome.relative)
    parts = {name: micros for name, micros in outcome.parts.items() if name != "expected"}
    field_coverage.is_money(
        "cost", ("cost_usd", "expected"), outcome.micros, "not the sum of the phases' costs", relative=relative
    )
    for name, micros in (("median", outcome.median), ("p95", outcome.p95)):
        why = "not this quantile of the cost over hours and estimated prices"
        field_coverage.is_money("cost", ("cost_usd", name), micros, why, relative=outcome.of_quantiles)
    _at_band(context, field_coverage.size("phases"), relative)
    for name, micros in parts.items():
        at = ("cost_usd", "breakdown", name)
        field_coverage.is_money("cost", at, micros, f"not what {name} comes to", relative=relative)
    stated = [field_coverage.micros("cost_usd", "breakdown", name) for name in parts]
    whole = field_coverage.micros("cost_usd", "expected")
    field_coverage.is_true(
        "cost", ("cost_usd", "breakdown"), sum(stated) == whole, None, "the parts do not sum to the cost"
    )
    quantiles = (("median", outcome.median_hours), ("confident", outcome.confident), ("p95", outcome.p95_hours))
    for name, hours in (("expected", outcome.expected), *quantiles):
        field_coverage.is_number("hours", ("hours", name), hours, "not what the phases take", relative=near)
    end = second_text(submitted_plan.start + timedelta(hours=outcome.expected))
    moment_of(context, ("finishes_at",), end, "not the start and the expected hours", relative)
    field_coverage.is_same("finish", ("start",), second_text(submitted_plan.start), "not the start of the job")
    field_coverage.is_same("cost", ("currency",), "USD", "costs are in US dollars")
    why = "not the probability of the deadline"
    field_coverage.is_number(
        "finish",
        ("deadline_probability",),
        outcome.in_time,
        why,
        relative=max(relative, ROUNDED_CHANCE / max(outcome.in_time or 1.0, ROUNDED_CHANCE)),
    )
    field_coverage.is_number(
        "carbon", ("carbon_kg",), outcome.carbon_kg, "not power x hours x PUE x grid", relative=near
    )
    _required(context, outcome)


def _at_band(context: Context, phases: int, relative: float) -> None:
    """Check the cost with every price at either end of its band: machines cost in proportion to their price."""
    field_coverage, estimated = context.field_coverage, False
    for name, end in (("price_low", "low_usd_per_node_hour"), ("price_high", "high_usd_per_node_hour")):
        micros = field_coverage.micros("cost_usd", "expected")
        for number in range(phases):
            path = ("phases", number)
            if not field_coverage.has(*path, "price_estimate"):
                continue
            estimated, price = True, field_coverage.micros(*path, "usd_per_node_hour")
            paid = sum(field_coverage.micros(*path, "cost_usd", "breakdown", part) for part in ("compute", "setup"))
            micros += round(paid * (field_coverage.micros(*path, "price_estimate", end) - price) / max(price, 1))
        if estimated:
            why = "not the cost at this end of the bands of prices"
            field_coverage.is_money("cost", ("cost_usd", name), micros, why, relative=relative)
        else:
            present = field_coverage.has("cost_usd", name)
            field_coverage.is_true("cost", ("cost_usd", name), not present, None, "every price is as it was observed")


def _required(context: Context, outcome: Outcome) -> None:
    """Check deadline at the requested confidence, budget, and carbon budget."""
    field_coverage, job = context.field_coverage, context.submitted_plan.job
    deadline, budget, cap = job.deadline_hours, job.budget_usd, job.constraints.carbon_budget_kg
    if deadline is not None:
        in_it = outcome.confident <= deadline * (1 + (LOOSE if outcome.relative >= LOOSE else 1e-12))
        why = "later than the deadline at the requested confidence"
        field_coverage.is_true("requirements", ("hours", "confident"), in_it, deadline, why)
        sure = outcome.in_time is None or outcome.in_time >= job.confidence - 1e-6
        field_coverage.is_true(
            "requirements", ("deadline_probability",), sure, job.confidence, "less than the confidence asked"
        )
    if budget is not None:
        ok = outcome.micros / 1e6 <= budget
        field_coverage.is_true("requirements", ("cost_usd", "expected"), ok, budget, "dearer than the budget")
    if cap is not None:
        low = outcome.carbon_kg is not None and outcome.carbon_kg <= cap * (1 + SHOWN)
        field_coverage.is_true(
            "requirements", ("carbon_kg",), low, cap, "over constraints.carbon_budget_kg, or not known"
        )


def covers(
    context: Context, survey: Survey, phased: InPhases | None, cost_usd: float | None
) -> SingleComparison | PhasedComparison:
    """A summary of the choices that the bound was compared with."""
    offer_groups, open_groups = context.open_offers.offer_groups, context.open_offer_groups
    job, goodput = context.submitted_plan.job, context.submitted_plan.settings.goodput
    dear = [
        offer_group
        for offer_group in open_groups
        if cost_usd is not None and least_usd(offer_group, context.work, job.training, goodput) > cost_usd * (1 + SHOWN)
    ]
    comparison = PlanComparison(
        offers=context.open_offers.offers,
        offers_that_requirements_or_standing_refuse=sum(
            offer_group.size for offer_group in offer_groups if offer_group.reason or offer_group.broken
        ),
        offers_compared=sum(offer_group.size for offer_group in open_groups),
        of_these_dearer_than_the_plan_even_at_dense_peak=sum(offer_group.size for offer_group in dear),
        configurations_compared_by_estimate=survey.configurations,
        best_trades_of_cost_against_time=len(survey.frontier()),
        node_counts=f"every whole one to {job.constraints.max_nodes}, each evaluated; slices at every size sold",
    )
    if phased is None or cost_usd is None:
        return SingleComparison(**asdict(comparison), plans_in_phases="none: the job stays on one configuration")
    least = None if phased.least_usd is None else min(phased.least_usd, cost_usd)
    return PhasedComparison(
        **asdict(comparison),
        pairs_in_phases_priced_exactly=phased.priced,
        pairs_in_phases_left_to_the_bound_alone="those that it leaves least room" if phased.left else "none",
        no_plan_in_any_number_of_phases_costs_less_than_usd=None if least is None else usd_exactly(least),
        which_is_below_the_plan_by_percent=None if least is None else round(100 * (1 - least / max(cost_usd, 1e-9)), 4),
    )
