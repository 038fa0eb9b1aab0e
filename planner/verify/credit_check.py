"""Checks of what remains to pay after credits."""

from datetime import timedelta

from gpuplan.catalog.model.money import usd_micros
from gpuplan.planner.verify.alternatives_check import CHECK
from gpuplan.planner.verify.field_coverage import Path
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import NEVER_HOURS


def credit_use(context: Context, spent: dict[str, int], confident_hours: float) -> None:
    """Check the cost that remains after credits; `spent` is micro-dollars by provider."""
    field_coverage, submitted_plan = context.field_coverage, context.submitted_plan
    granted = submitted_plan.settings.credits
    if not granted:
        return
    paid = _out_of_pocket(context, spent, confident_hours)
    applied = sum(spent.values()) - paid
    field_coverage.is_money(
        CHECK, ("credits", "applied_usd"), applied, "not what the credits cover", relative=context.relative
    )
    field_coverage.is_money(
        CHECK, ("credits", "out_of_pocket_usd"), paid, "not the amount left to pay", relative=context.relative
    )
    others = []
    for number in range(field_coverage.size("alternatives")):
        path: Path = ("alternatives", number)
        if not (field_coverage.value(*path, "meets_deadline") and field_coverage.value(*path, "meets_budget")):
            continue
        provider, micros = field_coverage.text(*path, "provider"), field_coverage.micros(*path, "cost_usd")
        left = _out_of_pocket(context, {provider: micros}, field_coverage.number(*path, "hours_confident"))
        others.append((left, field_coverage.text(*path, "label")))
    least = min(others, default=None)
    better = least is not None and least[0] < paid
    why = "not whether an alternative leaves less to pay"
    if not field_coverage.is_there(CHECK, ("credits", "least_out_of_pocket"), better, why) or least is None:
        return
    field_coverage.is_same(
        CHECK, ("credits", "least_out_of_pocket", "label"), least[1], "not the alternative with the least to pay"
    )
    field_coverage.is_money(
        CHECK, ("credits", "least_out_of_pocket", "out_of_pocket_usd"), least[0], "not the amount that it leaves to pay"
    )


def _out_of_pocket(context: Context, spent: dict[str, int], hours: float) -> int:
    end = context.submitted_plan.start + timedelta(hours=min(hours, NEVER_HOURS))
    left = 0
    for provider, micros in spent.items():
        granted = sum(
            usd_micros(credit.usd)
            for credit in context.submitted_plan.settings.credits
            if credit.provider == provider and (credit.expires is None or end <= credit.expires)
        )
        left += max(0, micros - granted)
    return left
