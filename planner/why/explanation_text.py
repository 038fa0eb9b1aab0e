"""An explanation in sentences, the answer to the question first."""

from gpuplan.catalog.model.regions import place_in_words
from gpuplan.catalog.model.unavailable_machines import why_no_price, why_retired, why_unavailable
from gpuplan.planner.candidates.eligibility import RETIRED
from gpuplan.planner.candidates.job_requirements import BIT
from gpuplan.planner.explain.break_even import BreakEven, Joining
from gpuplan.planner.explain.constraint_steps import carbon_of
from gpuplan.planner.model.outcome import Choice, LeastChange, NoPlan, Planned
from gpuplan.planner.serialization.rounded_figures import format_hours, format_price, format_usd
from gpuplan.planner.why.explanation import About, Run, Why

#: A sentence lists at most so many names.
MOST_NAMES = 4

#: Times closer than this count as equal.
_NO_HOURS = 0.01
_PRICES_NOT_PROVEN = (
    "not proven: too many pairs of configurations were left to compare all of them, so it may also win or be used in part "
    "at a higher price"
)
_BETTER = {"cost": "cheaper", "time": "faster", "carbon": "cleaner"}


def summary(why: Why) -> tuple[str, ...]:
    """One to a few sentences."""
    sentences = list(_about(why.about, why.chosen)) if why.about is not None else []
    if isinstance(why.chosen, NoPlan):
        return (*sentences, f"the job has no plan at all: {_conflicts(why.chosen)}")
    sentences += _without_chosen(why.without_chosen, why.chosen)
    binding = [binding for binding in why.bindings if binding.gain > 0]
    if binding:
        first = binding[0]
        sentences.append(
            f"{first.requirement} ({first.asked}) binds most: without it the plan would be {_BETTER[why.chosen.job.objective]} "
            f"by {_amount(first.gain, why.chosen.job.objective)}"
        )
    else:
        sentences.append(f"no requirement binds: giving one up makes no plan {_BETTER[why.chosen.job.objective]}")
    return tuple(sentences)


def _about(about: About, chosen: Planned | NoPlan) -> tuple[str, ...]:
    what = in_short(about)
    if about.verdict == "absent":
        return (f"{what}: neither the snapshot nor the owned machines include it", *_unavailable(about))
    if about.verdict == "chosen":
        return (f"the plan runs on {what}", *_worth(about, chosen))
    best = about.best
    if isinstance(best, NoPlan):
        return (
            f"{what} cannot run the job with its requirements: {_conflicts(best)}",
            *_unavailable(about),
            *_way(best, chosen),
            *_wins(about, chosen),
        )
    if best is None or isinstance(chosen, NoPlan):
        return ()
    how = "is part of the plan; alone it" if about.verdict == "partly_chosen" else "could run the job and"
    return (
        f"{what} {how} {_against(best, chosen)}: {_run(best)}",
        *_wins(about, chosen),
        *_worth(about, chosen),
    )


def _unavailable(about: About) -> tuple[str, ...]:
    """Why the named machines or accelerators cannot be had by anyone, where that is known."""
    reason_of = {
        ("absent", "instance_type"): why_unavailable,
        ("absent", "accelerator"): why_no_price,
        ("infeasible", "instance_type"): why_retired,
    }.get((about.verdict, about.named.field))
    retired = isinstance(about.best, NoPlan) and RETIRED in about.best.rejected
    if reason_of is None or (about.verdict == "infeasible" and not retired):
        return ()
    reasons = dict.fromkeys(reason for name in about.named.names if (reason := reason_of(name)) is not None)
    return tuple(f"{about.named.text}: {reason}" for reason in list(reasons)[:MOST_NAMES])


def _against(other: Run, chosen: Planned) -> str:
    """How much more another run costs, takes and emits than the plan, the plan's objective first."""
    hours = other.hours.confident - chosen.hours.confident
    kg = [carbon_of(run.phases) for run in (other, chosen)]
    differences = {
        "cost": f"costs {format_usd(abs(money := other.cost.expected - chosen.cost.expected))} {_more_or_less(money)}",
        "time": f"takes {format_hours(abs(hours))} {_more_or_less(hours)}" if abs(hours) > _NO_HOURS else "",
        "carbon": ""
        if kg[0] is None or kg[1] is None
        else f"emits {abs(kg[0] - kg[1]):.3g} kg {_more_or_less(kg[0] - kg[1])}",
    }
    aim = chosen.job.objective
    ordered = [differences[aim], *(differences[measure] for measure in ("cost", "time") if measure != aim)]
    return ", ".join(difference for difference in ordered if difference)


def _more_or_less(value: float) -> str:
    return "more" if value >= 0 else "less"


def in_short(about: About) -> str:
    """The given name and its meaning."""
    named = about.named
    names = ", ".join(named.names[:MOST_NAMES])
    if len(named.names) > MOST_NAMES:
        names += f" and {len(named.names) - MOST_NAMES} more"
    return f"{named.text} ({named.field.replace('_', ' ')} {names})"


def _run(plan: Run) -> str:
    return " then ".join(_machines(phase.choice) for phase in plan.phases)


def _machines(choice: Choice) -> str:
    offer = choice.offer
    return f"{choice.machines} in {place_in_words(offer.provider, offer.region)}, {offer.price_kind.replace('_', ' ')}"


def _wins(about: About, chosen: Planned | NoPlan) -> tuple[str, ...]:
    """The price at which it would win, alone or in part; empty unless cost is the objective."""
    if isinstance(chosen, NoPlan) or chosen.job.objective != "cost":
        return ()
    tie, part = about.break_even, about.joining
    sentences = ["no price per hour would make it win" if part is None else "no price per hour would make it win alone"]
    if tie is not None:
        price = _price(tie, tie.wins_at)
        sentences = [f"it would win at {price}, or with {tie.discount_percent:.3g} % off all of it"]
    if part is not None:
        sentences.append(f"as part of a plan it would be used at {_price(part, part.joins_at)} or less")
    if not about.prices_proven:
        sentences.append(_PRICES_NOT_PROVEN)
    return tuple(sentences)


def _price(break_even: BreakEven | Joining, at: int) -> str:
    offer = break_even.choice.offer
    on = f"{offer.instance_type} in {place_in_words(offer.provider, offer.region)}"
    return f"{format_price(at)} per node-hour (now {format_price(break_even.price)}) on {on}"


def _worth(about: About, chosen: Planned | NoPlan) -> tuple[str, ...]:
    """The saving that this supply allows."""
    if about.without is None or isinstance(chosen, NoPlan):
        return ()
    if isinstance(about.without, NoPlan):
        return (f"without it there is no plan: {_conflicts(about.without)}",)
    if about.without is chosen:
        return ("it would not improve the plan, which does not use it",)
    return (f"without it the best plan {_against(about.without, chosen)}: {_run(about.without)}",)


def _without_chosen(other: Run | NoPlan | None, chosen: Planned) -> list[str]:
    if other is None:
        return []
    names = ", ".join(sorted({phase.choice.accelerator for phase in chosen.phases}))
    if isinstance(other, NoPlan):
        return [f"without {names} there is no plan: {_conflicts(other)}"]
    return [f"without {names} the best plan {_against(other, chosen)}: {_run(other)}"]


def _conflicts(infeasible: NoPlan) -> str:
    """The conflicts on as many nodes as were searched, the smallest first."""
    if infeasible.conflicts == (("workload",),):
        return infeasible.warnings[0] if infeasible.warnings else "no machine holds it"
    conflicts = "; ".join(" with ".join(names) for names in infeasible.conflicts[:MOST_NAMES])
    return f"{conflicts} (within {infeasible.searched_nodes:,} nodes)"


def _way(infeasible: NoPlan, chosen: Planned | NoPlan) -> tuple[str, ...]:
    """The smallest relaxation, and the cost of the plan with it."""
    if not infeasible.relaxations:
        return ()
    relaxation = infeasible.relaxations[0]
    cost = format_usd(relaxation.choice.cost.expected)
    if isinstance(chosen, Planned):
        extra = relaxation.choice.cost.expected - chosen.cost.expected
        cost += f", {format_usd(abs(extra))} {'more' if extra >= 0 else 'less'} than the plan"
    return (f"it could if {_giving_way(relaxation)}; it would then cost {cost}",)


def _giving_way(relaxation: LeastChange) -> str:
    return " and ".join(
        f"{name} were {needed} instead of {asked}"
        for name, asked, needed in zip(relaxation.requirements, relaxation.asked, relaxation.needed, strict=True)
        if name in BIT
    )


def _amount(millionths: int, objective: str) -> str:
    if objective == "cost":
        return format_usd(millionths)
    return format_hours(millionths / 1e6) if objective == "time" else f"{millionths / 1e6:.3g} kg CO2e"
