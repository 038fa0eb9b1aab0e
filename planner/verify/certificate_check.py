"""Check of a plan's certificate: no configuration and no pair in phases is better, and no bound exceeds the optimum."""

from gpuplan.planner.verify.configuration_survey import Survey
from gpuplan.planner.verify.ladder_proof_check import least_if_obtained
from gpuplan.planner.verify.phase_pairs import InPhases
from gpuplan.planner.verify.plan_outcome import Outcome
from gpuplan.planner.verify.verification_context import Context

#: The unit of each objective.
UNITS = {"cost": "USD", "time": "hours", "carbon": "kg CO2e"}
#: Relative tolerance between the solver and the enumeration.
AGREEMENT = 1e-6
#: Tolerance in USD, above the rounding error of sums of doubles and below a micro-dollar.
LESS_THAN_A_MICRO = 5e-7
AT = ("certificate", "objective_usd")


def certificate(context: Context, outcome: Outcome, survey: Survey, phased: InPhases | None) -> None:
    """Check that nothing in the enumeration is better than the plan, and that the bound does not exceed the optimum."""
    field_coverage, of = context.field_coverage, context.submitted_plan.job.objective
    total, relative, moves = least_if_obtained(context, outcome), outcome.relative, outcome.alone is None
    why = "not the cost of the plan, or of what is cheapest if obtained"
    field_coverage.is_money("bound", AT, total, why, relative=max(relative, 1e-9))
    field_coverage.is_same("bound", ("certificate", "objective", "of"), of, "not the objective of the job")
    field_coverage.is_same("bound", ("certificate", "objective", "unit"), UNITS[of], "not its unit")
    mine = {"cost": total / 1e6, "time": outcome.confident, "carbon": outcome.carbon_kg or 0.0}[of]
    least = _alone(context, survey, mine, moves=moves, relative=relative)
    if phased is not None and phased.cheapest is not None:
        micros, words = phased.cheapest
        room = 2.0 + relative * total
        field_coverage.is_true("bound", AT, micros >= total - room, micros / 1e6, f"in phases, {words} costs less")
        least = min(least, micros / 1e6)
    _bounds(context, mine, least, of)
    _gap(context)


def _alone(context: Context, survey: Survey, mine: float, *, moves: bool, relative: float) -> float:
    """The objective of the best single configuration; the plan's value if none meets the requirements."""
    field_coverage, of = context.field_coverage, context.submitted_plan.job.objective
    best = {"cost": survey.whole.feasible, "time": survey.whole.fastest, "carbon": survey.whole.greenest}[of]
    if best is None:
        field_coverage.is_true("bound", AT, moves, None, "no single configuration meets the requirements")
        return mine
    least = {"cost": best.micros / 1e6, "time": best.confident_hours, "carbon": best.carbon_kg or 0.0}[of]
    offer_group = best.offer_group
    where = f"{best.nodes} x {offer_group.machine.type.name} {offer_group.kind.name} in {':'.join(offer_group.place)}"
    room = 1.5e-6 + max(relative, 1e-11) * abs(mine)
    field_coverage.is_true("bound", AT, mine <= least + room, least, f"{where} has less {of}: {least:.9g} {UNITS[of]}")
    saving = context.submitted_plan.settings.least_saving_of_a_move_percent
    if moves:
        enough = mine <= least * (1 - saving / 100) + room
        field_coverage.is_true("requirements", ("phases",), enough, None, f"moving saves less than {saving:g} %")
    return min(mine, least)


def _bounds(context: Context, mine: float, least: float, of: str) -> None:
    """Check objective and bound in USD and in the objective's unit; no bound may exceed the optimum of the
    enumeration.
    """
    field_coverage = context.field_coverage
    bound = field_coverage.micros("certificate", "bound_usd") / 1e6
    objective = field_coverage.micros(*AT) / 1e6
    field_coverage.tick("bound", ("certificate", "bound_usd"))
    near = AGREEMENT * max(1.0, objective)
    low = bound <= objective + LESS_THAN_A_MICRO and (of != "cost" or bound <= least + near)
    most = least if of == "cost" else objective
    field_coverage.is_true("bound", ("certificate", "bound_usd"), low, most, "above the optimum of the enumeration")
    value, own_bound = ("certificate", "objective", "value"), ("certificate", "objective", "bound")
    field_coverage.is_number("bound", value, round(mine * 1e6) / 1e6, f"not the plan's {UNITS[of]}", relative=AGREEMENT)
    stated = field_coverage.number(*own_bound)
    field_coverage.tick("bound", own_bound)
    field_coverage.is_true(
        "bound", own_bound, stated <= least + AGREEMENT * max(1.0, least), least, "above the optimum of the enumeration"
    )


def _gap(context: Context) -> None:
    """Check the gap: the larger of the relative distances of objective and bound, in USD and in the objective's unit."""
    field_coverage = context.field_coverage
    pairs = (
        (field_coverage.micros(*AT) / 1e6, field_coverage.micros("certificate", "bound_usd") / 1e6),
        (
            field_coverage.number("certificate", "objective", "value"),
            field_coverage.number("certificate", "objective", "bound"),
        ),
    )
    gap = max((value - bound) / max(abs(value), 1e-9) for value, bound in pairs)
    stated = field_coverage.number("certificate", "gap")
    field_coverage.tick("bound", ("certificate", "gap"))
    why = "not the distance between objective and bound"
    field_coverage.is_true("bound", ("certificate", "gap"), abs(stated - gap) <= AGREEMENT, gap, why)
