"""The short answer for a plan: machines, cost, time, standby, three alternatives, and first steps."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from gpuplan.api.presentation.live_capacity import not_learned
from gpuplan.api.presentation.optimality_phrases import best_of
from gpuplan.api.presentation.phrases import (
    configuration,
    configuration_beside,
    deadline_at,
    identity,
    job_name,
    kind,
    machines,
    mean_leaves_outages_out,
    place,
    price,
    price_estimate,
    rented,
)
from gpuplan.api.presentation.sections import Headline, Section, Tone, facts, notes, section, table
from gpuplan.api.presentation.text_formatting import chance, done_below, duration, number, percent, plain, usd, when
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.model.capacity_ladder import CapacityLadder, NextChoice
from gpuplan.planner.model.plan import Alternative, Plan
from gpuplan.planner.model.shared import Machines, Phase

#: The software stack of most training code; other stacks may need porting.
USUAL_STACK = "cuda"
#: Most alternatives shown; two lines of the ladder, whose choices are alternatives too, take the place of one.
MOST_ALTERNATIVES = 3
#: Most next choices shown; `--details` lists all of them.
MOST_NEXT = 3
#: Most actions shown; one line counts the others.
MOST_ACTIONS = 3
#: A part of the cost beside that of the machines is named from this share on.
NOTABLE_PART = Decimal("0.1")
#: Parts of the cost in prose, where their names differ.
COST_PART_WORDS = {"setup": "set-up"}
#: The average cost with refusals is shown if it is this many times that of the plan.
LEAST_RISE = Decimal("1.01")
#: The mean time says what it leaves out where 95 % of runs are within more than this many times the mean.
FAR_TIMES = 2.0
#: Letters of a job's name in a headline.
NAME_LENGTH = 64
_SAME_HOURS = 0.05
_CENT = Decimal("0.01")


def short_plan(plan: Plan) -> tuple[Section, ...]:
    """The sections of a short answer, most important first, without empty ones."""
    sections = (_answer(plan), _next(plan), _behind(plan), _alternatives(plan), _first(plan))
    return tuple(part for part in sections if part.parts)


def _answer(plan: Plan) -> Section:
    cost, hours = plan.cost_usd, plan.hours
    planned = [phase for phase in plan.phases if not phase.is_standby]
    offers = number(plan.certificate.offers_considered)
    average = average_with_refusals(plan)
    is_far = mean_leaves_outages_out(plan) and hours.p95 > FAR_TIMES * hours.expected
    outages = " without rare outages" if is_far else ""
    return section(
        "answer",
        "",
        Headline(
            text=f"{best_of(plan)} for {job_name(plan.job, limit=NAME_LENGTH)}, from {offers} offers",
            tone=Tone.GOOD,
        ),
        facts(
            *(row for place_, phase in enumerate(planned) for row in _rent(phase, place_, len(planned))),
            ("cost", f"{usd(cost.expected)} expected{_other_cost(plan)}95 % of runs within {usd(cost.p95)}"),
            ("average", None if average is None else f"{usd(average)} if refusals lead to the choices below"),
            ("time", f"{duration(hours.expected)} expected{outages}, 95 % of runs within {duration(hours.p95)}"),
            ("deadline", _deadline(plan)),
        ),
    )


def _rent(phase: Phase, order: int, phases: int) -> list[tuple[str, str]]:
    """The machines of a phase, with place and price."""
    owned = price_kinds()[phase.price_kind].owned
    verb = "then" if order else "use" if owned else "rent"
    share = f", {percent(phase.share)} of the work" if phases > 1 else ""
    paid = "your own" if owned else f"{kind(phase)} at {price(phase)}"
    rows = [(verb, machines(phase)), ("in", f"{place(phase)}, {paid}{share}")]
    return rows if (line := price_estimate(phase)) is None else [*rows, ("price", line)]


def _other_cost(plan: Plan) -> str:
    """The largest part of the cost beside the machines, if it is notable: `, $8.59 of it egress; `."""
    parts = plan.cost_usd.breakdown.parts()
    del parts["compute"]
    largest = max(parts, key=parts.__getitem__)
    if parts[largest] < max(plan.cost_usd.expected * NOTABLE_PART, _CENT):
        return ", "
    return f", {usd(parts[largest])} of it {COST_PART_WORDS.get(largest, largest)}; "


def average_with_refusals(plan: Plan) -> Decimal | None:
    """The average cost where refusals lead to the next choices; None where it is about that of the plan."""
    ladder = plan.capacity_ladder
    if ladder is None or not ladder.next_choices or ladder.expected_cost_usd < plan.cost_usd.expected * LEAST_RISE:
        return None
    return ladder.expected_cost_usd


def _deadline(plan: Plan) -> str | None:
    """The deadline and the probability of meeting it; None without a deadline."""
    due = deadline_at(plan)
    if due is None or plan.deadline_probability is None:
        return None
    by, stated = when(due), chance(plan.deadline_probability)
    if not _is_spot_without_waits(plan):
        return f"{by}, met with a probability of {stated}"
    # In words that fit a line; the assumptions say more.
    likely = stated.replace("more than ", ">").replace("less than ", "<")
    return f"{by}, {likely} likely if spot is replaced at once"


def _is_spot_without_waits(plan: Plan) -> bool:
    """Whether the plan is on spot under settings that state no wait for machines that replace preempted ones."""
    on_spot = any(price_kinds()[phase.price_kind].interruptible for phase in plan.phases if not phase.is_standby)
    return on_spot and (plan.settings or {}).get("spot_wait_hours") == 0


def _next(plan: Plan) -> Section:
    """The chance of obtaining the machines, and what to try next, a line each; empty where they are certain."""
    ladder = plan.capacity_ladder
    if ladder is None or not (ladder.next_choices or plan.live_capacity or ladder.chance < 1.0):
        return section("next", "")
    minutes, chance_now = f"{ladder.try_minutes:g} min", _chance(ladder)
    order = "order" if ladder.last_choice_by is None else "turn"
    title = (
        f"If not obtained within {minutes} (chance {chance_now}) or lost, try in {order}"
        if ladder.next_choices
        else f"Obtained within {minutes} with a chance of {chance_now}"
    )
    choices = shown_choices(plan)
    names = Counter(configuration(choice) for choice in (*plan.phases, *choices))
    lines = [_step(plan, choice, names[configuration(choice)] > 1) for choice in choices]
    if lines and ladder.last_choice_by is not None:
        lines[-1] += f", not before {when(ladder.last_choice_by.isoformat())}"
    lines += _cheaper(plan, ladder)
    if not lines and ladder.chance < 1.0:
        late = "" if plan.deadline_probability is None else " that late"
        lines.append(f"if not, no other machines meet the requirements{late}")
    if missing := not_learned(plan.live_capacity):
        others = f"; {len(missing) - 1} more with --details" if len(missing) > 1 else ""
        lines.append(f"not learned, so modelled: {missing[0]}{others}")
    return section("next", title, notes(lines))


def shown_choices(plan: Plan) -> tuple[NextChoice, ...]:
    """The next choices of a short answer: the first ones, and the last, which is the most certain; none without a ladder."""
    choices = () if plan.capacity_ladder is None else plan.capacity_ladder.next_choices
    return choices if len(choices) <= MOST_NEXT else (*choices[: MOST_NEXT - 1], choices[-1])


def _cheaper(plan: Plan, ladder: CapacityLadder) -> list[str]:
    """What is cheaper if obtained but not tried first."""
    cheapest = ladder.cheapest_if_obtained
    if cheapest is not None:
        tried = {
            replace(one, after_minutes=0.0, chance_when_tried=cheapest.chance_when_tried) for one in shown_choices(plan)
        }
        return [] if cheapest in tried else [f"cheaper if obtained: {_step(plan, cheapest, names_zone=False)}"]
    changing = ladder.changing_machines
    if changing is None:
        return []
    first, second = changing.phases
    where = configuration_beside(plan, first, names_zone=False)
    later = f"{rented(second)} {kind(second)}"
    later = f"with {later} standing by" if second.is_standby else f"then {later}"
    share = _share(changing.chance, is_live=changing.chance_source is not None)
    return [f"cheaper if obtained: {where}, {later}: {usd(changing.cost_usd.expected)}, chance {share}"]


def ladder_lines(plan: Plan) -> int:
    """The next choices of a plan; one more line, as a rule, where the last has a time, and two for what is cheaper."""
    ladder = plan.capacity_ladder
    if ladder is None:
        return 0
    return len(ladder.next_choices) + (ladder.last_choice_by is not None) + 2 * len(_cheaper(plan, ladder))


def _step(plan: Plan, choice: NextChoice, names_zone: bool) -> str:
    """`2 x a3-highgpu-8g, gcp us-central1, on demand: $1,203.45, chance 93 %`; `, live` for a cloud's own answer."""
    live = "" if choice.chance_source is None else ", live"
    chance_then = _share(choice.chance_when_tried, is_live=bool(live))
    where = configuration_beside(plan, choice, names_zone=names_zone)
    return f"{where}: {usd(choice.cost_usd)}, chance {chance_then}{live}"


def _chance(ladder: CapacityLadder) -> str:
    """`42 %, modelled`, or `42 %, live 2026-11-27 12:00 UTC`."""
    return f"{_share(ladder.chance, is_live=ladder.chance_source is not None)}, {chance_basis(ladder)}"


def chance_basis(ladder: CapacityLadder) -> str:
    """Where the chance of the plan's own machines comes from: `modelled`, or `live` with the time of the cloud's answer."""
    source = ladder.chance_source
    return "modelled" if source is None else f"live {when(source.asked_at)}"


def obtained_note(plan: Plan, ladder: CapacityLadder) -> str:
    """What stands beside the chance of a plan's machines: its basis, and the average cost with refusals."""
    average = average_with_refusals(plan)
    return chance_basis(ladder) + ("" if average is None else f"; {usd(average)} on average with refusals")


def _share(value: float, *, is_live: bool) -> str:
    """A modelled chance is never rounded to certain or impossible; a cloud may say so."""
    return percent(value if is_live else min(max(value, 0.01), 0.99))


def _behind(plan: Plan) -> Section:
    """What to do if the run falls behind its deadline; empty without a deadline."""
    key, title = "behind", "If it falls behind"
    standby = next((phase for phase in plan.phases if phase.is_standby), None)
    if standby is not None and standby.switch_by is not None:
        standby_note = _switch(standby, standby.switch_by, standby.switch_share)
        used = f"Needed in {chance(standby.probability)} of runs; counted above."
        return section(key, title, notes([f"{standby_note} {used}"]))
    back = plan.fallback
    if back is not None:
        standby_note = _switch(back, back.switch_by, back.switch_share)
        return section(key, title, notes([f"{standby_note} Needed in {chance(back.probability)} of runs."]))
    if plan.deadline_probability is None:
        return section(key, title)
    return section(key, title, notes(["Plan the rest again: gpuplan replan JOB.yaml --done SHARE"]))


def _switch(to: Machines, by: datetime, share: float | None) -> str:
    done = done_below(share).replace("less than", "Below").capitalize()
    return f"{done} done by {when(by)}, switch to {configuration(to)}."


def _alternatives(plan: Plan) -> Section:
    return section(
        "alternatives",
        "Alternatives, with change of cost and time",
        table(("", "", "", ""), other_ways(plan), figures=(1, 2)),
    )


def other_ways(plan: Plan, most: int | None = None) -> list[tuple[str, str, str, str]]:
    """Rows of label, change of cost, change of time and configuration; the last one is for code of another framework.

    `most` as in `different_alternatives`.
    """
    rows = [
        (
            label,
            usd_more(alternative.extra_usd),
            hours_more(alternative.hours - plan.hours.expected),
            configuration_beside(plan, alternative),
        )
        for label, alternative in different_alternatives(plan, most)
    ]
    if (other := plan.other_framework) is not None:
        hours = hours_more(other.hours - plan.hours.expected)
        rows.append(
            (f"for {other.framework} code", usd_more(other.extra_usd), hours, configuration_beside(plan, other))
        )
    return rows


def different_alternatives(plan: Plan, most: int | None = None) -> list[tuple[str, Alternative]]:
    """Configurations of another kind that meet the requirements, with all their labels.

    At most `most`, by default three, and fewer beside a ladder.
    """
    most = MOST_ALTERNATIVES - ladder_lines(plan) // 2 if most is None else most
    planned = {identity(phase) for phase in plan.phases} if len(plan.phases) == 1 else set[object]()
    chosen: dict[object, tuple[list[str], Alternative]] = {}
    for label, alternative in _kinds(plan):
        if alternative is not None and (key := identity(alternative)) not in planned:
            chosen.setdefault(key, ([], alternative))[0].append(label)
    for label, alternative in _others(plan):
        if alternative is not None and (key := identity(alternative)) not in planned and len(chosen) < most:
            chosen.setdefault(key, ([label], alternative))
    return [(", ".join(labels), alternative) for labels, alternative in [*chosen.values()][:most]]


def _kinds(plan: Plan) -> Iterator[tuple[str, Alternative | None]]:
    """The most common alternatives with labels; None where no configuration of that kind meets the requirements."""
    chips, kinds = accelerators(), price_kinds()
    if plan.certificate.objective.of != "cost":
        yield "least cost", _cheapest(plan, lambda alternative: True)
    if any(chips[phase.accelerator].stack != USUAL_STACK for phase in plan.phases):
        usual = _cheapest(plan, lambda alternative: chips[alternative.accelerator].stack == USUAL_STACK)
        yield (f"on {chips[usual.accelerator].vendor}" if usual else ""), usual
    if not all(kinds[phase.price_kind].is_plain or kinds[phase.price_kind].owned for phase in plan.phases):
        yield "on demand", _cheapest(plan, lambda alternative: kinds[alternative.price_kind].is_plain)
    if len(plan.phases) > 1:
        label = "no standby" if any(phase.is_standby for phase in plan.phases) else "no move"
        yield label, _cheapest(plan, lambda alternative: True)


def _others(plan: Plan) -> Iterator[tuple[str, Alternative | None]]:
    """Further alternatives if fewer than three differ: another provider, the fastest."""
    providers = {phase.provider for phase in plan.phases}
    other = _cheapest(plan, lambda alternative: alternative.provider not in providers)
    yield (f"on {plain(other.provider, limit=12)}" if other else ""), other
    yield "fastest", min(_within(plan), key=lambda alternative: alternative.hours_confident, default=None)


def _within(plan: Plan) -> list[Alternative]:
    """The alternatives that meet deadline and budget."""
    return [alternative for alternative in plan.alternatives if alternative.meets_deadline and alternative.meets_budget]


def _cheapest(plan: Plan, wanted: Callable[[Alternative], bool]) -> Alternative | None:
    return min(
        (alternative for alternative in _within(plan) if wanted(alternative)),
        key=lambda alternative: alternative.cost_usd,
        default=None,
    )


def usd_more(extra: Decimal) -> str:
    """A difference in dollars with its sign: `+$12.30`, `-$4.00`."""
    text = usd(extra)
    return text if text.startswith(("-", ">-")) else f"+{text}"


def hours_more(hours: float) -> str:
    """A time difference with its sign: `+2 d`, `-5.2 h`; `same` below three minutes."""
    if abs(hours) < _SAME_HOURS:
        return "same"
    return f"{'+' if hours > 0 else '-'}{duration(abs(hours))}"


def _first(plan: Plan) -> Section:
    """Actions before the start, most important first; warnings for an answer that lists no actions."""
    actions = plan.warnings if plan.actions is None else plan.actions
    shown = [plain(action) for action in actions[:MOST_ACTIONS]]
    if left_out := len(actions) - len(shown):
        shown.append(f"and {left_out} more, listed with --details")
    return section("first", "Before you start", notes(shown, Tone.WARNING))
