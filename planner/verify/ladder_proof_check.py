"""Check that the ladder begins with the right choice: against every selection and order of the choices that a plan names.

Besides the ladder's own choices these are the configuration that is cheapest if obtained. A ladder of the same last choice
from among them never costs less, and the stated bound is above none of them.
"""

import math
from collections.abc import Iterator

from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.planner.verify.alternatives_check import choice
from gpuplan.planner.verify.capacity_ladder_check import (
    AT,
    CHECK,
    MOST_NEXT,
    NEAR,
    Floats,
    Step,
    chance_of,
    states,
    step_of,
)
from gpuplan.planner.verify.field_coverage import Path
from gpuplan.planner.verify.plan_outcome import Outcome
from gpuplan.planner.verify.stated_answers import answers_of
from gpuplan.planner.verify.verification_context import Context

CHEAPEST: Path = (*AT, "cheapest_if_obtained")
PROOF: Path = ("certificate", "ladder")
#: Micro-dollars that sums of doubles and whole micro-dollars may differ by, and the relative saving that changes no order.
ROOM, EQUAL = 2.0, 2e-6


def least_if_obtained(context: Context, outcome: Outcome) -> int:
    """The stated cost of the cheapest plan if obtained, micro-dollars: what the certificate's objective is of."""
    stated = context.field_coverage.has(*CHEAPEST)
    return context.field_coverage.micros(*CHEAPEST, "cost_usd") if stated else outcome.micros


def ladder_proof(context: Context, outcome: Outcome, steps: list[Step]) -> None:
    """Check the cheapest choice if obtained, and objective, bound and gap of the ladder; older plans have neither."""
    field_coverage, of_cost = context.field_coverage, context.submitted_plan.job.objective == "cost"
    others = _cheapest(context, outcome)
    if not field_coverage.has(*PROOF):
        field_coverage.is_true(CHECK, CHEAPEST, not others, None, "the certificate says nothing of the ladder")
        return
    field_coverage.is_true(CHECK, PROOF, of_cost, None, "not a job for the least cost")
    objective = field_coverage.micros(*AT, "expected_cost_usd")
    field_coverage.is_money(CHECK, (*PROOF, "objective_usd"), objective, "not what the ladder costs", relative=0.0)
    field_coverage.tick(CHECK, (*PROOF, "bound_usd"), (*PROOF, "gap"))
    least = float(objective)
    if outcome.alone is not None and steps:
        least = min(_expected(context, steps, others), default=least)
        room = ROOM + EQUAL * least
        why = "another first choice or order of the choices named costs less"
        field_coverage.is_true(CHECK, (*PROOF, "objective_usd"), objective <= least + room, least / 1e6, why)
    bound, gap = field_coverage.micros(*PROOF, "bound_usd"), field_coverage.number(*PROOF, "gap")
    low = bound <= min(least, objective) + ROOM + NEAR * least
    field_coverage.is_true(
        CHECK, (*PROOF, "bound_usd"), low, least / 1e6, "above the cost of a ladder of these choices"
    )
    mine = (objective - bound) / objective if objective else 0.0
    why = "not the distance between objective and bound"
    same = math.isclose(gap, mine, rel_tol=NEAR, abs_tol=1e-12)
    for name, value in (("gap", mine), ("bound_usd", objective * (1 - gap) / 1e6)):
        field_coverage.is_true(CHECK, (*PROOF, name), same, value, why)


def _cheapest(context: Context, outcome: Outcome) -> list[Step]:
    """Check the configuration that is cheapest if obtained, where it is not the plan; the certificate proves its cost."""
    field_coverage = context.field_coverage
    if not field_coverage.has(*CHEAPEST):
        return []
    field_coverage.is_true(CHECK, CHEAPEST, outcome.alone is not None, None, "the plan changes machines")
    micros = field_coverage.micros(*CHEAPEST, "cost_usd")
    why = "the plan costs no more, so it is the cheapest itself"
    field_coverage.is_true(CHECK, (*CHEAPEST, "cost_usd"), micros < outcome.micros + ROOM, outcome.micros / 1e6, why)
    cheapest = choice(context, CHEAPEST)
    figures = ("after_minutes", "chance", "chance_low", "chance_high", "chance_when_tried")
    if cheapest is None:
        field_coverage.tick(CHECK, *((*CHEAPEST, name) for name in figures))
        return []
    deadline = context.submitted_plan.job.deadline_hours
    late = deadline is not None and cheapest.clock.confident > deadline * (1 + 1e-9)
    field_coverage.is_true(CHECK, (*CHEAPEST, "hours_confident"), not late, deadline, "it misses the deadline")
    step = step_of(context, cheapest.named, micros, answers_of(context))
    chance_of(context, CHEAPEST, step)
    field_coverage.is_number(CHECK, (*CHEAPEST, "after_minutes"), 0.0, "it is compared as a first choice")
    field_coverage.is_number(
        CHECK, (*CHEAPEST, "chance_when_tried"), step.chance, "not its chance as a first choice", relative=NEAR
    )
    return [step._replace(hours=cheapest.clock.confident)]


def _expected(context: Context, steps: list[Step], others: list[Step]) -> Iterator[float]:
    """Expected micro-dollars of every selection and order of these that ends with the last step and is in time."""
    *before, last = steps
    rest, tries = [*others, *before], capacity_prior().try_minutes / 60
    deadline = context.submitted_plan.job.deadline_hours
    weight, chances = states([*rest, last])

    def in_time(step: Step, position: int) -> bool:
        return deadline is None or step.hours + position * tries <= deadline * (1 + 1e-9)

    def ladders(weight: Floats, paid: float, tried: tuple[int, ...]) -> Iterator[float]:
        if in_time(last, len(tried)):
            yield paid + float(weight.sum()) * last.micros
        if len(tried) == MOST_NEXT:
            return
        pools = [last.pool, *(rest[i].pool for i in tried)]
        for i, step in enumerate(rest):
            if step.pool not in pools and in_time(step, len(tried)):
                got = weight * chances[i]
                yield from ladders(weight - got, paid + float(got.sum()) * step.micros, (*tried, i))

    yield from ladders(weight, 0.0, ())
