"""The short answer for an infeasible job: conflicts and the cheapest relaxations."""

import re

from gpuplan.api.presentation.infeasibility import in_the_way, no_way_out
from gpuplan.api.presentation.phrases import configuration, job_name
from gpuplan.api.presentation.sections import Headline, Section, Tone, notes, section
from gpuplan.api.presentation.short_plan import NAME_LENGTH
from gpuplan.api.presentation.text_formatting import duration, number, plain, usd
from gpuplan.planner.model.job import MAX_NODES
from gpuplan.planner.model.plan import Infeasible, Relaxation

#: Most relaxations shown, cheapest first.
MOST_WAYS_OUT = 3
MOST_CONFLICTS = 3
#: Of so many hours nobody sees at once how many days they are.
LEAST_HOURS_IN_DAYS = 72
_VALUE_LENGTH = 60
_REASON_LENGTH = 300


def short_infeasible(answer: Infeasible) -> tuple[Section, ...]:
    """The sections of a short answer, without empty ones."""
    sections = (_answer(answer), _conflicts(answer), _ways_out(answer))
    return tuple(part for part in sections if part.parts)


def _answer(answer: Infeasible) -> Section:
    return section(
        "answer",
        "",
        Headline(text=f"No plan meets the requirements of {job_name(answer.job, limit=NAME_LENGTH)}", tone=Tone.BAD),
    )


def _conflicts(answer: Infeasible) -> Section:
    conflicts = [in_the_way(names, answer.searched_nodes) for names in answer.conflicts[:MOST_CONFLICTS]]
    if left_out := len(answer.conflicts) - len(conflicts):
        conflicts.append(f"and {left_out} more, listed with --details")
    conflicts += [
        plain(warning, limit=_REASON_LENGTH) for warning in answer.warnings if warning.startswith("constraints.")
    ]
    return section("conflicts", "What conflicts", notes(conflicts))


def _ways_out(answer: Infeasible) -> Section:
    least = sorted(answer.relaxations, key=lambda relaxation: relaxation.cost_usd)[:MOST_WAYS_OUT]
    if not least:
        reason = f"{no_way_out(answer.searched_nodes)}."
        return section("ways_out", "Ways out", notes([reason, *map(plain, answer.warnings[:1])]))
    # Two phases or a standby may need a smaller budget than the single configurations of the relaxations.
    smaller = [
        plain(warning, limit=_REASON_LENGTH) for warning in answer.warnings if warning.startswith("budget_usd of")
    ]
    title = "Cheapest relaxation" if len(least) + len(smaller) == 1 else "Cheapest relaxations"
    return section("ways_out", title, notes([*smaller, *map(_way_out, least), *_more_nodes(answer)]))


def _more_nodes(answer: Infeasible) -> tuple[str, ...]:
    """A sentence where time is short and more nodes than were searched may be asked for."""
    searched = answer.searched_nodes
    if searched >= MAX_NODES or not any("deadline" in names for names in answer.conflicts):
        return ()
    return (f"or set max_nodes to more than {searched:,} (up to {MAX_NODES:,}): more nodes were not searched",)


def _way_out(way: Relaxation) -> str:
    """`set deadline to 206.2 h, which is 8.59 d (now 48 h): then $783,885.15 and 7 d 4 h on 32 x p6-b300.48xlarge, ...`."""
    names, asked, needed = way.requirement.split(" + "), way.from_.split("; "), way.to.split("; ")
    parts = [
        f"{plain(name)} to {plain(then, limit=_VALUE_LENGTH)}{_in_days(then)} (now {plain(now, limit=_VALUE_LENGTH)})"
        for name, now, then in zip(names, asked, needed, strict=True)
    ]
    then = f"{usd(way.cost_usd)} and {duration(way.plan.hours)} on {configuration(way.plan)}"
    return f"set {' and '.join(parts)}: then {then}"


def _in_days(value: str) -> str:
    """`, which is 12 d 3 h` behind many hours."""
    hours = re.fullmatch(r"([\d.]+) h", value)
    return f", which is {number(float(hours[1]) / 24)} d" if hours and float(hours[1]) >= LEAST_HOURS_IN_DAYS else ""
