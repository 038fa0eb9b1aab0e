"""What to do with a job that is under way, in sentences: the advice first, then what it rests on."""

from datetime import timedelta

from catalog.money import usd_display, usd_text
from planner.answer import Choice, Infeasible, Planned
from planner.document_figures import moment
from planner.replan.answer import GoingOn, Replanned

#: Chances above this are not told apart.
_SURE = 0.999
_PARTS = ("compute", "storage", "egress", "power", "setup")


def summary(found: Replanned) -> tuple[str, ...]:
    """One to a few sentences."""
    if isinstance(found.best, Infeasible):
        return (*_infeasible(found, found.best), *_measured(found))
    return (*_advice(found, found.best), *_against(found, found.best), *_holds(found), *_measured(found))


def _advice(found: Replanned, best: Planned) -> list[str]:
    first, cost = best.phases[found.leads], usd_display(best.cost.expected)
    end = moment(best.start + timedelta(hours=best.hours.expected))
    then = f"{cost} from now, done {end} if all goes as expected{_chance(best.deadline_probability)}"
    if found.action in {"continue", "standby", "move_later"}:
        how = " as it is" if found.action == "continue" else ""
        now = f"continue{how} on {_named(first.choice)}"
    elif found.machines is None or not found.running.up:
        again = " again" if found.action == "restart" else ""
        now = f"start{again} on {_named(first.choice)}"
    else:
        now = f"now {_change(found.machines, first.choice)}"
    return [f"{now}{_later(best, found.leads)}: {then}"]


def _later(best: Planned, leads: int) -> str:
    """What comes after the first phase."""
    said, before = "", best.phases[leads]
    for each in best.phases[leads + 1 :]:
        if each.role == "standby":
            by = "" if each.switch_by_hours is None else f" by {_at(best, each.switch_by_hours)}"
            said += f", with {_named(each.choice)} standing by in case the work falls behind{by}"
        else:
            said += f", then at {_at(best, each.begins_hours)} {_change(before.choice, each.choice)}"
            before = each
    return said


def _at(best: Planned, hours: float) -> str:
    return moment(best.start + timedelta(hours=hours))


def _change(here: Choice, there: Choice) -> str:
    if here.offer.key != there.offer.key:
        return f"move to {_named(there)}"
    return f"{'grow' if there.nodes > here.nodes else 'shrink'} to {_named(there)}"


def _against(found: Replanned, best: Planned) -> list[str]:
    """What lies between going on and the best."""
    stays = found.going_on
    if found.action == "continue" or found.machines is None:
        return []
    if stays is None:
        if not found.running.up:
            return []
        return [f"{_named(found.machines)} cannot be kept to the end: price kind or free windows leave no room"]
    if stays.breaks:
        return [f"going on as it is will not do: {_why_not(stays, found)}"]
    less = stays.course.cost.expected - best.cost.expected
    later = best.hours.confident - stays.course.hours.confident
    parts = [(name, getattr(best.cost, name) - getattr(stays.course.cost, name)) for name in _PARTS]
    told = ", ".join(f"{name} {'+' if micros > 0 else ''}{usd_display(micros)}" for name, micros in parts if micros)
    slower = (
        ""
        if abs(later) < 0.01
        else f", {abs(later):.3g} h {'later' if later > 0 else 'sooner'} at the asked confidence"
    )
    kind = "cheaper" if less >= 0 else "dearer"
    chance = stays.course.deadline_probability
    sure = "" if chance is None else f"; going on would be in time{_with(chance)}"
    return [f"that is {usd_display(abs(less))} {kind} than going on to the end{slower} ({told}){sure}"]


def _why_not(stays: GoingOn, found: Replanned) -> str:
    course, job = stays.course, found.left.job
    said = []
    for name in stays.breaks:
        if name == "deadline" and job.deadline_hours is not None:
            chance = course.deadline_probability or 0.0
            said.append(
                f"in time with {100 * chance:.3g} % only, {course.hours.confident:.4g} h at the asked confidence where "
                f"{job.deadline_hours:.4g} h are left"
            )
        elif name == "budget_usd" and job.budget_usd is not None:
            left = usd_display(round(max(job.budget_usd, 0.0) * 1e6))
            said.append(f"it costs {usd_display(course.cost.expected)} where {left} of the budget are left")
        else:
            said.append(f"{name} does not allow it")
    return "; ".join(said)


def _holds(found: Replanned) -> list[str]:
    holds = found.holds
    if holds is None:
        return []
    said = []
    if holds.price is not None:
        said.append(f"up to ${usd_text(holds.price)} per node-hour")
    if holds.slower is not None:
        percent = 100 * (holds.slower - 1)
        said.append(f"while the work takes no more than {percent:.3g} % longer than now estimated")
    if not said:
        return ["that holds at any price and speed: there is nothing else to go to"]
    return [f"that holds {', and '.join(said)}, everything else as it is"]


def _measured(found: Replanned) -> list[str]:
    seen = found.measured
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


def _infeasible(found: Replanned, best: Infeasible) -> list[str]:
    conflicts = "; ".join(" and ".join(each) for each in best.conflicts[:3])
    said = [f"nothing from now on, within {best.searched_nodes:,} nodes, keeps what the job asks for: {conflicts}"]
    if best.relaxations:
        least = best.relaxations[0]
        ways = [
            f"{name} of {to}"
            for name, to in zip(
                least.requirements, in_all(found, least.requirements, least.needed, least.choice), strict=True
            )
        ]
        said.append(
            f"the least that would help: {' and '.join(ways)}, {usd_display(least.choice.cost.expected)} from now"
        )
    if found.going_on is not None:
        said.append(f"going on as it is: {_why_not(found.going_on, found)}")
    return said


def in_all(found: Replanned, names: tuple[str, ...], needed: tuple[str, ...], choice: Choice) -> list[str]:
    """What requirements would have to be, time and money counted from the job's start."""
    told = []
    for name, value in zip(names, needed, strict=True):
        if name == "deadline":
            hours = choice.hours.confident + found.left.elapsed_hours
            told.append(f"{value} from now ({hours:.6g} h from the start)")
        elif name == "budget_usd":
            told.append(f"{usd_display(choice.cost.expected + round(found.running.spent_usd * 1e6))} in all")
        else:
            told.append(value)
    return told


def _named(choice: Choice) -> str:
    offer = choice.offer
    place = f"{offer.provider} {offer.region}" + (f" {offer.zone}" if offer.zone else "")
    return f"{choice.machines} ({place}, {offer.price_kind.replace('_', ' ')})"


def _chance(probability: float | None) -> str:
    if probability is None:
        return ""
    return f", in time{_with(probability)}"


def _with(probability: float) -> str:
    return f" with {'more than 99.9' if probability > _SURE else f'{100 * probability:.1f}'} %"
