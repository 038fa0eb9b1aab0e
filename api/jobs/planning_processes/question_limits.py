"""Limits of one planning request in a service, and the errors when it exceeds them."""

import math
import os
from dataclasses import dataclass

from gpuplan.catalog.runtime.errors import UnusableInput

#: Thousands of times the usual time of a plan.
MOST_SECONDS = 30.0
SECONDS_VARIABLE = "GPUPLAN_MOST_SECONDS_PER_PLAN"
#: In addition to the memory of a process that has not answered anything. A plan over 100,000 offers takes about 50 MiB.
MOST_MIB = 1024
MIB_VARIABLE = "GPUPLAN_MOST_MIB_PER_PLAN"
PROCESSES_VARIABLE = "GPUPLAN_PLANNING_PROCESSES"
#: Each process takes about 50 MiB, and in a container `os` counts the cores of the whole machine; more processes only
#: by configuration.
MOST_PROCESSES_UNLESS_SET = 6
#: One for requests that take seconds, one for each of two users.
FEWEST_PROCESSES = 3
#: One for requests of kinds that take seconds, one for a user other than the one whose requests are running, and two
#: for the few plans that take seconds: otherwise each of these would delay all short requests of its user.
_BESIDE_CORES = 4


class OutOfMemory(Exception):
    """The request needed more memory than its limit and has no result."""

    def __init__(self, mib: int) -> None:
        """`mib` is the limit in MiB."""
        super().__init__(
            f"this request needs more than the limit of {mib} MiB ({MIB_VARIABLE}) and was stopped;"
            " ask for less, such as fewer nodes or regions, or `max_phases: 1`"
        )
        self.mib = mib


class ProcessEnded(Exception):
    """The process that worked on the request ended and was replaced; the request has no result."""

    def __init__(self, signal_or_code: str) -> None:
        """`signal_or_code` is how the process ended."""
        super().__init__(
            f"the process that worked on this request ended ({signal_or_code}) and was replaced, most likely because it needed more"
            " memory than the machine has; if that happens again, ask for less, such as fewer nodes or regions"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Seconds and MiB of one request, and the number of planning processes."""

    seconds: float = MOST_SECONDS
    mib: int = MOST_MIB
    processes: int = FEWEST_PROCESSES


def budget() -> Budget:
    """The budget from the environment. Raises `UnusableInput` at a variable with an invalid limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Budget(
        seconds=most_seconds_per_plan(),
        mib=round(_number(MIB_VARIABLE, MOST_MIB, 64, 1_048_576, "MiB")),
        processes=round(
            _number(
                PROCESSES_VARIABLE,
                min(cores + _BESIDE_CORES, MOST_PROCESSES_UNLESS_SET),
                FEWEST_PROCESSES,
                256,
                "processes",
                whole=True,
            )
        ),
    )


def most_seconds_per_plan() -> float:
    """The value of `GPUPLAN_MOST_SECONDS_PER_PLAN`, by default `MOST_SECONDS`. Raises `UnusableInput` if it is not a
    valid time.
    """
    return _number(SECONDS_VARIABLE, MOST_SECONDS, 0.1, 3600, "seconds")


def _number(name: str, otherwise: float, least: float, most: float, unit: str, *, whole: bool = False) -> float:
    text = os.environ.get(name, "").strip()
    try:
        value = float(text or otherwise)
    except ValueError:
        value = math.nan
    if not least <= value <= most or (whole and value != round(value)):
        raise UnusableInput.at(
            name, message=f"{text[:40]!r} is not a valid limit; accepted: {least:g} to {most} {unit}"
        )
    return value
