"""Check that the ladder begins with the right choice: against every selection and order of the choices that a plan names.

Besides the ladder's own choices this is what is cheapest if obtained. A ladder of the same last choice from among them never
costs less, and the stated bound is above none of them. A plan that changes machines may only come first, and counts as its cost
over one less the least saving of a move.
"""

import math
from collections.abc import Iterator

from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.planner.verify.alternatives_check import WITHOUT_A_MOVE, choice
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
CHANGING: Path = (*AT, "changing_machines")
PROOF: Path = ("certificate", "ladder")
#: Micro-dollars that sums of doubles and whole micro-dollars may differ by, and the relative saving that changes no order.
ROOM, EQUAL = 2.0, 2e-6


def least_if_obtained(context: Context, outcome: Outcome) -> int:
    """The stated cost of the cheapest plan if obtained, micro-dollars: what the certificate's objective is of."""
    stated = context.field_coverage.has(*CHEAPEST)
    return context.field_coverage.micros(*CHEAPEST, "cost_usd") if stated else outcome.micros


def ladder_proof(context: Context, outcome: Outcome, steps: list[Step], changing: Outcome | None) -> None:
    """Check the cheapest choice if obtained, and objective, bound and gap of the ladder; older plans have neither.

    `changing` is the plan that changes machines, where that is cheapest if obtained and the plan does not.
    """
    field_coverage, of_cost = context.field_coverage, context.submitted_plan.job.objective == "cost"
    others = _cheapest(context, outcome) + _changing(context, outcome, changing)
    others += [] if outcome.alone is not None else _without_a_move(context)
    if not field_coverage.has(*PROOF):
        stated = field_coverage.has(*CHEAPEST) or changing is not None
        field_coverage.is_true(CHECK, AT, not stated, None, "the certificate says nothing of the ladder")
        return
    field_coverage.is_true(CHECK, PROOF, of_cost, None, "not a job for the least cost")
    objective = field_coverage.micros(*AT, "expected_cost_usd")
    field_coverage.is_money(CHECK, (*PROOF, "objective_usd"), objective, "not what the ladder costs", relative=0.0)
    field_coverage.tick(CHECK, (*PROOF, "bound_usd"), (*PROOF, "gap"))
    least = float(objective)
    if steps:
        first = steps[0] if outcome.alone is not None else _as_it_counts(context, steps[0])
        comparable = objective + first.chance * (first.micros - steps[0].micros)
        least = min(_expected(context, [first, *steps[1:]], others), default=comparable)
        room = ROOM + EQUAL * least
        why = "another first choice or order of the choices named costs less"
        field_coverage.is_true(CHECK, (*PROOF, "objective_usd"), comparable <= least + room, least / 1e6, why)
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


def _changing(context: Context, outcome: Outcome, changing: Outcome | None) -> list[Step]:
    """Check the chance of the plan that changes machines and does not come first, whose cost the certificate proves."""
    if changing is None:
        return []
    one = outcome.alone is not None and changing.alone is None and not context.field_coverage.has(*CHEAPEST)
    context.field_coverage.is_true(
        CHECK, CHANGING, one, None, "not a plan that changes machines beside one that does not"
    )
    step = step_of(context, changing.machines[0], changing.micros, answers_of(context))
    chance_of(context, CHANGING, step)
    return [_as_it_counts(context, step._replace(hours=changing.confident))]


def _without_a_move(context: Context) -> list[Step]:
    """The cheapest single configuration, which stands among the alternatives of a plan that changes machines."""
    field_coverage = context.field_coverage
    for number in range(field_coverage.size("alternatives")):
        path: Path = ("alternatives", number)
        if field_coverage.value(*path, "label") == WITHOUT_A_MOVE and field_coverage.value(*path, "meets_deadline"):
            named = context.counter.named(field_coverage, path)
            if named is not None and field_coverage.value(*path, "meets_budget"):
                step = step_of(context, named, field_coverage.micros(*path, "cost_usd"), answers_of(context))
                return [step._replace(hours=field_coverage.number(*path, "hours_confident"))]
    return []


def _as_it_counts(context: Context, step: Step) -> Step:
    """A plan that changes machines, with what it counts as in place of its cost."""
    least = context.submitted_plan.settings.least_saving_of_a_move_percent
    return step._replace(micros=round(step.micros / (1 - least / 100)), only_first=True)


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
            may_be_here = not (tried and step.only_first) and in_time(step, len(tried))
            if step.pool not in pools and may_be_here:
                got = weight * chances[i]
                yield from ladders(weight - got, paid + float(got.sum()) * step.micros, (*tried, i))

    yield from ladders(weight, 0.0, ())
