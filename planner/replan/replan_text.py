"""The advice for a running job in sentences: the action first, then its reasons."""

from datetime import UTC, timedelta

from gpuplan.catalog.model.money import usd_display, usd_text
from gpuplan.planner.model.outcome import Choice, NoPlan, Planned
from gpuplan.planner.replan.replan_answer import GoingOn, Replanned

#: Probabilities above this are not distinguished.
_SURE = 0.999
_PARTS = ("compute", "storage", "egress", "power", "setup")


def summary(replanned: Replanned) -> tuple[str, ...]:
    """One to a few sentences."""
    if isinstance(replanned.best, NoPlan):
        return (*_infeasible(replanned, replanned.best), *_measured(replanned))
    return (
        *_advice(replanned, replanned.best),
        *_against(replanned, replanned.best),
        *_stays_optimal(replanned),
        *_measured(replanned),
    )


def _advice(replanned: Replanned, best: Planned) -> list[str]:
    first, cost = best.phases[replanned.leads], usd_display(best.cost.expected)
    end = _at(best, best.hours.expected)
    then = f"{cost} from now, done {end} if all goes as expected{_chance(best.deadline_probability)}"
    if replanned.action in {"continue", "standby", "move_later"}:
        how = " as it is" if replanned.action == "continue" else ""
        now = f"continue{how} on {_named(first.choice)}"
    elif replanned.machines is None or not replanned.running.up:
        again = " again" if replanned.action == "restart" else ""
        now = f"start{again} on {_named(first.choice)}"
    else:
        now = f"now {_change(replanned.machines, first.choice)}"
    return [f"{now}{_later(best, replanned.leads)}: {then}"]


def _later(best: Planned, leads: int) -> str:
    """The phases after the first one."""
    text, before = "", best.phases[leads]
    for phase in best.phases[leads + 1 :]:
        if phase.role == "standby":
            by = "" if phase.switch_by_hours is None else f" by {_at(best, phase.switch_by_hours)}"
            text += f", with {_named(phase.choice)} standing by in case the work falls behind{by}"
        else:
            text += f", then at {_at(best, phase.begins_hours)} {_change(before.choice, phase.choice)}"
            before = phase
    return text


def _at(best: Planned, hours: float) -> str:
    """A time in words: `2026-11-21 08:00 UTC`."""
    return f"{(best.start + timedelta(hours=hours)).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _change(choice: Choice, target: Choice) -> str:
    if choice.offer.key != target.offer.key:
        return f"move to {_named(target)}"
    return f"{'grow' if target.nodes > choice.nodes else 'shrink'} to {_named(target)}"


def _against(replanned: Replanned, best: Planned) -> list[str]:
    """The difference between continuing and the best plan."""
    stays = replanned.going_on
    if replanned.action == "continue" or replanned.machines is None:
        return []
    if stays is None:
        if not replanned.running.up:
            return []
        return [f"{_named(replanned.machines)} cannot be kept to the end: price kind or free windows leave no room"]
    if stays.breaks:
        return [f"continuing as it is does not meet the requirements: {_why_not(stays, replanned)}"]
    less = stays.schedule.cost.expected - best.cost.expected
    later = best.hours.confident - stays.schedule.hours.confident
    parts = [(name, getattr(best.cost, name) - getattr(stays.schedule.cost, name)) for name in _PARTS]
    differences = ", ".join(
        f"{name} {'+' if micros > 0 else ''}{usd_display(micros)}" for name, micros in parts if micros
    )
    slower = (
        ""
        if abs(later) < 0.01
        else f", {abs(later):.3g} h {'later' if later > 0 else 'sooner'} at the asked confidence"
    )
    kind = "cheaper" if less >= 0 else "dearer"
    chance = stays.schedule.deadline_probability
    sure = "" if chance is None else f"; going on would be in time{_with(chance)}"
    return [f"that is {usd_display(abs(less))} {kind} than going on to the end{slower} ({differences}){sure}"]


def _why_not(stays: GoingOn, replanned: Replanned) -> str:
    schedule, job = stays.schedule, replanned.left.job
    reasons = []
    for name in stays.breaks:
        if name == "deadline" and job.deadline_hours is not None:
            chance = schedule.deadline_probability or 0.0
            reasons.append(
                f"in time with a probability of {100 * chance:.3g} % only, {schedule.hours.confident:.4g} h at the asked confidence where "
                f"{job.deadline_hours:.4g} h are left"
            )
        elif name == "budget_usd" and job.budget_usd is not None:
            left = usd_display(round(max(job.budget_usd, 0.0) * 1e6))
            reasons.append(f"it costs {usd_display(schedule.cost.expected)} where {left} of the budget are left")
        else:
            reasons.append(f"{name} does not allow it")
    return "; ".join(reasons)


def _stays_optimal(replanned: Replanned) -> list[str]:
    until = replanned.stays_optimal
    if until is None:
        return []
    limits = []
    if until.price is not None:
        limits.append(f"up to ${usd_text(until.price)} per node-hour")
    if until.slower is not None:
        percent = 100 * (until.slower - 1)
        limits.append(f"while the work takes no more than {percent:.3g} % longer than now estimated")
    if not limits:
        return ["that holds at any price and speed: there is nothing else to go to"]
    return [f"that holds {', and '.join(limits)}, everything else as it is"]


def _measured(replanned: Replanned) -> list[str]:
    seen = replanned.measured
    if seen is None:
        return []
    percent = 100 * (seen.factor - 1)
    how = (
        f"{abs(percent):.3g} % {'longer' if percent > 0 else 'less'} than estimated"
        if abs(percent) >= 0.05
        else "as estimated"
    )
    what = (
        f"{seen.rate:.4g} h measured where {seen.predicted:.4g} h were estimated"
        if seen.unit == "h"
        else f"{seen.rate:,.0f} {seen.unit} measured where {seen.predicted:,.0f} were estimated"
    )
    return [f"the work takes {how}: {what}; all figures here rest on that"]


def _infeasible(replanned: Replanned, best: NoPlan) -> list[str]:
    conflicts = "; ".join(" and ".join(conflict) for conflict in best.conflicts[:3])
    sentences = [f"nothing from now on, within {best.searched_nodes:,} nodes, keeps what the job asks for: {conflicts}"]
    if best.relaxations:
        least = best.relaxations[0]
        ways = [
            f"{name} of {to}"
            for name, to in zip(
                least.requirements, in_all(replanned, least.requirements, least.needed, least.choice), strict=True
            )
        ]
        sentences.append(
            f"the least that would help: {' and '.join(ways)}, {usd_display(least.choice.cost.expected)} from now"
        )
    if replanned.going_on is not None:
        sentences.append(f"going on as it is: {_why_not(replanned.going_on, replanned)}")
    return sentences


def in_all(replanned: Replanned, names: tuple[str, ...], needed: tuple[str, ...], choice: Choice) -> list[str]:
    """The values that requirements must have, with time and money counted from the job's start."""
    values = []
    for name, value in zip(names, needed, strict=True):
        if name == "deadline":
            hours = choice.hours.confident + replanned.left.elapsed_hours
            values.append(f"{value} from now ({hours:.6g} h from the start)")
        elif name == "budget_usd":
            values.append(f"{usd_display(choice.cost.expected + round(replanned.running.spent_usd * 1e6))} in all")
        else:
            values.append(value)
    return values


def _named(choice: Choice) -> str:
    offer = choice.offer
    place = f"{offer.provider} {offer.region}" + (f" {offer.zone}" if offer.zone else "")
    return f"{choice.machines} ({place}, {offer.price_kind.replace('_', ' ')})"


def _chance(probability: float | None) -> str:
    if probability is None:
        return ""
    return f", in time{_with(probability)}"


def _with(probability: float) -> str:
    return f" with a probability of {'more than 99.9' if probability > _SURE else f'{100 * probability:.1f}'} %"
