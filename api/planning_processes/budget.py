"""What a question may take of a service, and what is raised for one that takes more."""

import math
import os
from dataclasses import dataclass

from catalog.errors import UnusableInput

#: Thousands of times what a plan usually takes.
MOST_SECONDS = 30.0
SECONDS_VARIABLE = "GPUPLAN_MOST_SECONDS_PER_PLAN"
#: Beyond what a process takes that has answered nothing yet. A plan over 100,000 offers takes some 50 MiB.
MOST_MIB = 1024
MIB_VARIABLE = "GPUPLAN_MOST_MIB_PER_PLAN"
PROCESSES_VARIABLE = "GPUPLAN_PLANNING_PROCESSES"
#: Each takes some 50 MiB, and in a container `os` counts the cores of the whole machine: more only where that is asked for.
MOST_PROCESSES_UNLESS_SET = 6
#: One for questions that take seconds, one for each of two users.
FEWEST_PROCESSES = 3


class OutOfMemory(Exception):
    """The question needed more memory than it may take; nothing came of it."""

    def __init__(self, mib: int) -> None:
        """With what it might have taken."""
        super().__init__(
            f"this needs more than the {mib} MiB that the service gives a question ({MIB_VARIABLE}), and was stopped;"
            " ask for less, such as fewer nodes or regions, or `max_phases: 1`"
        )
        self.mib = mib


class ProcessEnded(Exception):
    """The process that worked on the question ended; another has taken its place, and nothing came of the question."""

    def __init__(self, signal_or_code: str) -> None:
        """With how it ended."""
        super().__init__(
            f"the process that worked on this ended ({signal_or_code}) and was replaced, most likely since it needed more"
            " memory than there is; where that happens again, ask for less, such as fewer nodes or regions"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Seconds and MiB of one question, and how many processes answer questions at once."""

    seconds: float = MOST_SECONDS
    mib: int = MOST_MIB
    processes: int = FEWEST_PROCESSES


def budget() -> Budget:
    """As the environment says. Raises `UnusableInput` at the variable for what is no such limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Budget(
        seconds=most_seconds_per_plan(),
        mib=round(_number(MIB_VARIABLE, MOST_MIB, 64, 1_048_576, "MiB")),
        # One for questions that take seconds, and one more than cores for the others: while one user's questions keep every
        # core busy, another's still begin.
        processes=round(
            _number(
                PROCESSES_VARIABLE,
                min(cores + 2, MOST_PROCESSES_UNLESS_SET),
                FEWEST_PROCESSES,
                256,
                "processes",
                whole=True,
            )
        ),
    )


def most_seconds_per_plan() -> float:
    """What `GPUPLAN_MOST_SECONDS_PER_PLAN` says, or else `MOST_SECONDS`. Raises `UnusableInput` for what is no such time."""
    return _number(SECONDS_VARIABLE, MOST_SECONDS, 0.1, 3600, "seconds")


def _number(name: str, otherwise: float, least: float, most: float, unit: str, *, whole: bool = False) -> float:
    text = os.environ.get(name, "").strip()
    try:
        value = float(text or otherwise)
    except ValueError:
        value = math.nan
    if not least <= value <= most or (whole and value != round(value)):
        raise UnusableInput.at(name, message=f"{text[:40]!r} is no limit; accepted: {least:g} to {most} {unit}")
    return value
