"""The certificate of a plan: no configuration and no pair in phases is better, and no bound lies above what is to be had."""

from planner.verify.context import Context
from planner.verify.outcome import Outcome
from planner.verify.pairs import InPhases
from planner.verify.survey import Survey

#: In what each objective is counted.
UNITS = {"cost": "USD", "time": "hours", "carbon": "kg CO2e"}
#: Solver and enumeration agree to this.
AGREEMENT = 1e-6
AT = ("certificate", "objective_usd")


def certificate(context: Context, found: Outcome, survey: Survey, phased: InPhases | None) -> None:
    """What was proven: nothing of the enumeration is better, and the bound is no higher than the best."""
    ledger, of = context.ledger, context.claim.job.objective
    total, relative, moves = found.micros, found.relative, found.alone is None
    ledger.is_money("bound", AT, total, "not the cost of the plan", relative=max(relative, 1e-9))
    ledger.is_same("bound", ("certificate", "objective", "of"), of, "not the objective of the job")
    ledger.is_same("bound", ("certificate", "objective", "unit"), UNITS[of], "not its unit")
    mine = {"cost": total / 1e6, "time": found.kept, "carbon": found.carbon_kg or 0.0}[of]
    least = _alone(context, survey, mine, moves=moves, relative=relative)
    if phased is not None and phased.cheapest is not None:
        micros, words = phased.cheapest
        room = 2.0 + relative * total
        ledger.holds("bound", AT, micros >= total - room, micros / 1e6, f"in phases, {words} costs less")
        least = min(least, micros / 1e6)
    _bounds(context, mine, least, of)
    _gap(context)


def _alone(context: Context, survey: Survey, mine: float, *, moves: bool, relative: float) -> float:
    """What the best single configuration comes to; the plan's own figure where none meets the requirements."""
    ledger, of = context.ledger, context.claim.job.objective
    best = {"cost": survey.whole.feasible, "time": survey.whole.fastest, "carbon": survey.whole.greenest}[of]
    if best is None:
        ledger.holds("bound", AT, moves, None, "no single configuration meets the requirements")
        return mine
    least = {"cost": best.micros / 1e6, "time": best.kept_hours, "carbon": best.carbon_kg or 0.0}[of]
    lot = best.lot
    where = f"{best.nodes} x {lot.machine.type.name} {lot.kind.name} in {':'.join(lot.place)}"
    room = 1.5e-6 + max(relative, 1e-11) * abs(mine)
    ledger.holds("bound", AT, mine <= least + room, least, f"{where} has less {of}: {least:.9g} {UNITS[of]}")
    saving = context.claim.settings.least_saving_of_a_move_percent
    if moves:
        enough = mine <= least * (1 - saving / 100) + room
        ledger.holds("requirements", ("phases",), enough, None, f"moving saves less than {saving:g} %")
    return min(mine, least)


def _bounds(context: Context, mine: float, least: float, of: str) -> None:
    """Objective and bound in dollars, and in the objective's own unit; no bound lies above what was found."""
    ledger = context.ledger
    bound = ledger.micros("certificate", "bound_usd") / 1e6
    objective = ledger.micros(*AT) / 1e6
    ledger.tick("bound", ("certificate", "bound_usd"))
    near = AGREEMENT * max(1.0, objective)
    low = bound <= objective + 1e-6 and (of != "cost" or bound <= least + near)
    found = least if of == "cost" else objective
    ledger.holds("bound", ("certificate", "bound_usd"), low, found, "above what is to be had")
    value, own = ("certificate", "objective", "value"), ("certificate", "objective", "bound")
    ledger.is_number("bound", value, round(mine * 1e6) / 1e6, f"not the plan's {UNITS[of]}", relative=AGREEMENT)
    stated = ledger.number(*own)
    ledger.tick("bound", own)
    ledger.holds("bound", own, stated <= least + AGREEMENT * max(1.0, least), least, "above what is to be had")


def _gap(context: Context) -> None:
    """The gap is what lies between objective and bound, the wider of that in dollars and that in its own unit."""
    ledger = context.ledger
    pairs = (
        (ledger.micros(*AT) / 1e6, ledger.micros("certificate", "bound_usd") / 1e6),
        (ledger.number("certificate", "objective", "value"), ledger.number("certificate", "objective", "bound")),
    )
    gap = max((value - bound) / max(abs(value), 1e-9) for value, bound in pairs)
    stated = ledger.number("certificate", "gap")
    ledger.tick("bound", ("certificate", "gap"))
    why = "not what lies between objective and bound"
    ledger.holds("bound", ("certificate", "gap"), abs(stated - gap) <= AGREEMENT, gap, why)
