"""Sections for the capacity ladder of a plan: the chance of its machines, and what to try next."""

from gpuplan.api.presentation.live_capacity import not_learned, source_of
from gpuplan.api.presentation.phrases import offer
from gpuplan.api.presentation.sections import Block, Heading
from gpuplan.api.presentation.text_formatting import duration, number, percent, usd, when
from gpuplan.api.presentation.text_tables import bullets, heading, listing
from gpuplan.planner.model.capacity_ladder import CapacityLadder, ChangingMachines, NextChoice
from gpuplan.planner.model.plan import Plan


def render_capacity_ladder(plan: Plan) -> list[Block | Heading]:
    """The ladder with its proof; empty for plans of releases without ladders, and where the machines are certain."""
    ladder = plan.capacity_ladder
    missing = [f"not learned, so modelled: {line}" for line in not_learned(plan.live_capacity)]
    if not ladder or (ladder.chance >= 1.0 and not plan.live_capacity):
        return []
    sentences = [
        (
            f"the plan's machines are obtained within {number(ladder.try_minutes)} min with a chance of "
            f"{percent(ladder.chance)} (80 % of places and times: {_band(ladder)}; {source_of(ladder)})"
        )
    ]
    if ladder.next_choices:
        sentences.append(
            f"following the ladder once costs {usd(ladder.expected_cost_usd)} on average; with a probability of "
            f"{percent(ladder.nothing_obtained, 1)} every choice is refused at first, and the last is waited for"
        )
        sentences += _again(ladder)
    sentences += _cheapest(ladder) + _changing(ladder)
    titles = ["after", "machines and place", "cost", "time", "chance when tried", "by itself"]
    titles += ["read from"] if plan.live_capacity else []
    rows = [
        (
            f"{number(choice.after_minutes)} min",
            offer(choice),
            usd(choice.cost_usd),
            duration(choice.hours),
            percent(choice.chance_when_tried),
            f"{percent(choice.chance)} ({_band(choice)})",
            *((source_of(choice),) if plan.live_capacity else ()),
        )
        for choice in ladder.next_choices
    ]
    table = [listing(titles, rows, right=(2, 3, 4, 5))] if rows else []
    return [
        heading("If the machines are not obtained", "ladder"),
        *table,
        *bullets([*sentences, ladder.covers, *missing]),
    ]


def _again(ladder: CapacityLadder) -> list[str]:
    """What to do while there is time, and after a preemption."""
    if ladder.last_choice_by is None:
        return []
    return [
        (
            f"until {when(ladder.last_choice_by)} all but the last choice are asked for again in turn, from the top and also "
            "after a preemption: on public traces that costs least. Then the last is asked for, while there is a try's time "
            "to spare; work that is done moves this moment later. The cost of the ladder does not count these savings"
        )
    ]


def _cheapest(ladder: CapacityLadder) -> list[str]:
    """The cheapest configuration if obtained, where another one comes first."""
    cheapest = ladder.cheapest_if_obtained
    if cheapest is None:
        return []
    return [
        (
            f"cheapest if obtained: {offer(cheapest)}, {usd(cheapest.cost_usd)}, chance {percent(cheapest.chance)} "
            f"({_band(cheapest)}; {source_of(cheapest)}); beginning with it is expected to cost more, or as much where it "
            "has no chance"
        )
    ]


def _changing(ladder: CapacityLadder) -> list[str]:
    """The plan that changes machines and is cheapest if obtained, where another choice comes first."""
    changing = ladder.changing_machines
    if changing is None:
        return []
    first, *others = changing.phases
    later = "; ".join(f"{'standing by' if phase.is_standby else 'then'} {offer(phase)}" for phase in others)
    return [
        (
            f"cheapest if obtained: {offer(first)}; {later}: {usd(changing.cost_usd.expected)}, chance "
            f"{percent(changing.chance)} ({_band(changing)}; {source_of(changing)}) of the first machines; beginning with it "
            "is expected to cost more, counted with what a move has to save, or as much where it has no chance"
        )
    ]


def _band(part: CapacityLadder | ChangingMachines | NextChoice) -> str:
    return f"{percent(part.chance_low)} to {percent(part.chance_high)}"
