"""The places of a plan's capacity ladder in a script: asked for in order, each for the minutes of the ladder.

Until the ladder's last choice is due, all others are asked for again in turn. If a cloud takes interruptible machines back,
the script starts again.
They have the plan's own machines, so that its layout holds. A place that the account cannot use (it names no security
group there, say) ends its start with status 78 and is left out at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files

from gpuplan.api.exports.file_comments import again
from gpuplan.api.exports.plan_handover import Handover, NextPlace, Phase, Wishes
from gpuplan.api.exports.run_limit import cost_at_limit
from gpuplan.api.exports.shell_script import words
from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.planner.serialization.rounded_figures import moment

OBTAIN = files("gpuplan.api.exports").joinpath("try-in-order.sh").read_text(encoding="utf-8").splitlines()
#: Exit status of a place that the account is not set up for: EX_CONFIG of sysexits.h.
NOT_SET_UP = 78


def places_to_try(handover: Handover, phase: Phase) -> tuple[NextPlace, ...]:
    """The next places that start as the phase does: machines at once, and spot only where the phase is spot itself."""
    if phase.number != 1 or phase.kind.max_run_hours is not None:
        return ()
    return tuple(
        place
        for place in handover.next_places
        if place.kind.max_run_hours is None and (phase.kind.interruptible or not place.kind.interruptible)
    )


def phases_to_try(handover: Handover, phase: Phase) -> tuple[Phase, ...]:
    """The phase in its own place and in each next one; only itself where there is none."""
    first = NextPlace(region=phase.region, zone=phase.zone, kind=phase.kind, usd_per_node_hour=phase.usd_per_node_hour)
    places = dict.fromkeys((first, *places_to_try(handover, phase)))
    return tuple(
        replace(phase, region=place.region, zone=place.zone, kind=place.kind, usd_per_node_hour=place.usd_per_node_hour)
        for place in places
    )


def asks_in_order(handover: Handover, phase: Phase) -> bool:
    """Whether a script asks for several places, or for one again until the ladder's last choice is due."""
    in_turn = phase.number == 1 and phase.kind.max_run_hours is None and handover.last_choice is not None
    return in_turn or len(phases_to_try(handover, phase)) > 1


def _terms(handover: Handover, phase: Phase) -> list[str]:
    """When the last choice is due, and what of a run that is taken back counts as work of the last choice."""
    last = handover.last_choice
    by, percent = (
        (0, 100) if last is None else (int(last.by.timestamp()), int(100 * last.hours / max(phase.hours, 1e-9)))
    )
    lost = 0.0 if last is None else last.lost_hours
    return [
        f"TRY_SECONDS={60 * round(handover.try_minutes)}",
        f"LAST_BY={by}",
        f"LOST_SECONDS={round(3600 * lost)}",
        f"KEPT_PERCENT={min(percent, 100)}",
    ]


def _last(handover: Handover, phases: Sequence[Phase]) -> int:
    """The number of the place that is the ladder's last choice; 0 where that has other machines."""
    places = places_to_try(handover, phases[0])
    return len(phases) if places and places[-1].is_last else 0


def start_in_order(
    handover: Handover,
    phases: Sequence[Phase],
    wishes: Wishes,
    *,
    where: Callable[[Phase], Sequence[str]],
    start: Callable[[Phase], Sequence[str]],
) -> list[str]:
    """Lines that obtain the machines of the first phase that is had.

    `where` gives assignments of the place, which the functions of the script read, `start` the lines that start machines.
    """
    lines = [*_terms(handover, phases[0]), *OBTAIN, "use_place() {", '  case "$1" in']
    for number, phase in enumerate(phases, start=1):
        hourly = usd_text(usd_micros(phase.usd_per_node_hour) * phase.nodes)
        limit = usd_text(cost_at_limit(handover, phase, wishes))
        named = f"PLACE={words([in_words(phase)])}"
        report = f"REPORT={words([report_command(phase)])}"
        lines.append(f"    {number})")
        spot = f"INTERRUPTIBLE={'yes' if phase.kind.interruptible else ''}"
        lines += [
            f"      {line}"
            for line in (named, spot, report, f"USD_PER_HOUR={hourly}", f"USD_AT_LIMIT={limit}", *where(phase))
        ]
        lines.append("      ;;")
    lines += ["  esac", "}"]
    for number, phase in enumerate(phases, start=1):
        lines += ["# shellcheck disable=SC2329", f"start_{number}() {{", *start(phase), "}"]
    return [*lines, f"obtain {len(phases)} {_last(handover, phases)}", "watch_run"]


def in_words(phase: Phase) -> str:
    """`spot in aws us-east-1 use1-az4`."""
    return f"{phase.kind.name.replace('_', ' ')} in {phase.place}"


def report_command(phase: Phase) -> str:
    """The command that tells gpuplan what a place gave, without its outcome."""
    place = ["--region", phase.region, *(["--zone", phase.zone] if phase.zone else [])]
    machines = ["--machine", phase.instance_type, "--nodes", str(phase.nodes), "--kind", phase.kind.name]
    return words(["gpuplan", "capacity", *machines, *place])


def order_notes(handover: Handover, phases: Sequence[Phase]) -> list[str]:
    """Comments on the order and on preemptions, for a script that asks for places in order."""
    if not asks_in_order(handover, phases[0]):
        return again(phases[0])
    last, minutes = handover.last_choice, f"{handover.try_minutes:g} min"
    end = "before it gives up with status 69:"
    if last is None:
        order = [f"Tried in order, each for {minutes}, {end}"]
    else:
        order = [
            f"Tried in order, each for {minutes}, and again in turn until {moment(last.by)}; work that is done by then"
        ]
        order += [
            f"moves that later. Then the last is asked for, {end}"
            if _last(handover, phases)
            else "moves that later. Then it gives up with status 69: the ladder's last choice has other machines"
        ]
    rows = [f"  {in_words(phase)}, {phase.usd_per_node_hour} USD per node-hour" for phase in phases]
    return [*order, *rows, *_taken_back(phases[0])]


def _taken_back(phase: Phase) -> list[str]:
    """What the script does after a preemption."""
    if not phase.kind.interruptible:
        return []
    count = f"{phase.expected_preemptions:.2g}"
    return [
        f"About {count} preemptions are expected in this phase: after one it ends the rest, asks again from the first place,",
        "and resumes from the newest checkpoint, up to the run limit in all",
    ]


def other_place(variable: str, phase: Phase) -> str:
    """The variable of the account for another region: SECURITY_GROUP_ID_US_WEST_2."""
    return f"{variable}_{phase.region.upper().replace('-', '_')}"


def left_out(variable: str, phase: Phase) -> str:
    """A line that leaves a place out whose variable is not named."""
    message = words([f"{phase.region} is left out: name {other_place(variable, phase)}"])
    return f'if [ -z "${{{variable}}}" ]; then say {message}; exit {NOT_SET_UP}; fi'
