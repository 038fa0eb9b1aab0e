"""An explanation in sentences, the answer to what was asked first."""

from planner.answer import Choice, Infeasible, Planned, Relaxation
from planner.candidates.requirements import BIT
from planner.document_figures import told_hours, told_price, told_usd
from planner.explain.break_even import BreakEven, Joining
from planner.explain.steps import carbon_of
from planner.explain.why import About, Run, Why

#: More names than these make no sentence.
MOST_NAMES = 4

#: Times closer than this are told as equal.
_NO_HOURS = 0.01
_BETTER = {"cost": "cheaper", "time": "faster", "carbon": "cleaner"}


def summary(found: Why) -> tuple[str, ...]:
    """One to a few sentences."""
    said = list(_about(found.about, found.chosen)) if found.about is not None else []
    if isinstance(found.chosen, Infeasible):
        return (*said, f"the job has no plan at all: {_conflicts(found.chosen)}")
    said += _without_chosen(found.without_chosen, found.chosen)
    binding = [each for each in found.bindings if each.gain > 0]
    if binding:
        first = binding[0]
        said.append(
            f"{first.requirement} ({first.asked}) binds most: without it the plan would be {_BETTER[found.chosen.job.objective]} "
            f"by {_amount(first.gain, found.chosen.job.objective)}"
        )
    else:
        said.append(f"no requirement binds: nothing {_BETTER[found.chosen.job.objective]} is found by giving one up")
    return tuple(said)


def _about(about: About, chosen: Planned | Infeasible) -> tuple[str, ...]:
    what = in_short(about)
    if about.verdict == "absent":
        return (f"{what}: the snapshot has no offer of it, and no own machine is one",)
    if about.verdict == "chosen":
        return (f"{what} is what the plan runs on", *_worth(about, chosen))
    best = about.best
    if isinstance(best, Infeasible):
        return (
            f"{what} cannot run the job as asked: {_conflicts(best)}",
            *_way(best, chosen),
            *_wins(about, chosen),
        )
    if best is None or isinstance(chosen, Infeasible):
        return ()
    how = "is part of the plan; alone it" if about.verdict == "partly_chosen" else "could run the job and"
    return (
        f"{what} {how} {_against(best, chosen)}: {_run(best)}",
        *_wins(about, chosen),
        *_worth(about, chosen),
    )


def _against(other: Run, chosen: Planned) -> str:
    """What another run costs, takes and emits more than the plan, what the plan makes least first."""
    hours = other.hours.confident - chosen.hours.confident
    kg = [carbon_of(each.phases) for each in (other, chosen)]
    more = {
        "cost": f"costs {told_usd(abs(money := other.cost.expected - chosen.cost.expected))} {_more(money)}",
        "time": f"takes {told_hours(abs(hours))} {_more(hours)}" if abs(hours) > _NO_HOURS else "",
        "carbon": "" if kg[0] is None or kg[1] is None else f"emits {abs(kg[0] - kg[1]):.3g} kg {_more(kg[0] - kg[1])}",
    }
    aim = chosen.job.objective
    told = [more[aim], *(more[each] for each in ("cost", "time") if each != aim)]
    return ", ".join(each for each in told if each)


def _more(value: float) -> str:
    return "more" if value >= 0 else "less"


def in_short(about: About) -> str:
    """What was named, and what it was taken for."""
    named = about.named
    names = ", ".join(named.names[:MOST_NAMES])
    if len(named.names) > MOST_NAMES:
        names += f" and {len(named.names) - MOST_NAMES} more"
    return f"{named.text} ({named.field.replace('_', ' ')} {names})"


def _run(plan: Run) -> str:
    return " then ".join(_machines(phase.choice) for phase in plan.phases)


def _machines(choice: Choice) -> str:
    offer = choice.offer
    return f"{choice.machines} in {offer.provider}:{offer.region}, {offer.price_kind.replace('_', ' ')}"


def _wins(about: About, chosen: Planned | Infeasible) -> tuple[str, ...]:
    """At what price it would win, alone or in part; prices decide nothing where cost is not the objective."""
    if isinstance(chosen, Infeasible) or chosen.job.objective != "cost":
        return ()
    each, part = about.break_even, about.joining
    said = ["no price per hour would make it win" if part is None else "no price per hour would make it win alone"]
    if each is not None:
        price = _price(each, each.wins_at)
        said = [f"it would win at {price}, or with {each.discount_percent:.3g} % off all of it"]
    if part is not None:
        said.append(f"as part of a plan it would be used at {_price(part, part.joins_at)} or less")
    return tuple(said)


def _price(each: BreakEven | Joining, at: int) -> str:
    on = f"{each.choice.offer.instance_type} in {each.choice.offer.provider}:{each.choice.offer.region}"
    return f"{told_price(at)} per node-hour on {on} (now {told_price(each.price)})"


def _worth(about: About, chosen: Planned | Infeasible) -> tuple[str, ...]:
    """What having it saves."""
    if about.without is None or isinstance(chosen, Infeasible):
        return ()
    if isinstance(about.without, Infeasible):
        return (f"without it there is no plan: {_conflicts(about.without)}",)
    if about.without is chosen:
        return ("having it is worth nothing: the plan does without",)
    return (f"without it the best plan {_against(about.without, chosen)}: {_run(about.without)}",)


def _without_chosen(other: Run | Infeasible | None, chosen: Planned) -> list[str]:
    if other is None:
        return []
    names = ", ".join(sorted({phase.choice.accelerator for phase in chosen.phases}))
    if isinstance(other, Infeasible):
        return [f"without {names} there is no plan: {_conflicts(other)}"]
    return [f"without {names} the best plan {_against(other, chosen)}: {_run(other)}"]


def _conflicts(found: Infeasible) -> str:
    """What stands in the way on as many nodes as were searched, the smallest conflict first."""
    if found.conflicts == (("workload",),):
        return found.warnings[0] if found.warnings else "no machine holds it"
    conflicts = "; ".join(" with ".join(names) for names in found.conflicts[:MOST_NAMES])
    return f"{conflicts} (within {found.searched_nodes:,} nodes)"


def _way(found: Infeasible, chosen: Planned | Infeasible) -> tuple[str, ...]:
    """The least that would have to give way, and what the plan would then cost."""
    if not found.relaxations:
        return ()
    each = found.relaxations[0]
    cost = told_usd(each.choice.cost.expected)
    if isinstance(chosen, Planned):
        more = each.choice.cost.expected - chosen.cost.expected
        cost += f", {told_usd(abs(more))} {'more' if more >= 0 else 'less'} than the plan"
    return (f"it could if {_giving_way(each)}; it would then cost {cost}",)


def _giving_way(each: Relaxation) -> str:
    return " and ".join(
        f"{name} were {needed} instead of {asked}"
        for name, asked, needed in zip(each.requirements, each.asked, each.needed, strict=True)
        if name in BIT
    )


def _amount(millionths: int, objective: str) -> str:
    if objective == "cost":
        return told_usd(millionths)
    return told_hours(millionths / 1e6) if objective == "time" else f"{millionths / 1e6:.3g} kg CO2e"
