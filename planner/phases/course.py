"""A way to run a job from start to finish, whatever it is made of: phases in order, cost, hours, and how sure it is.

Every kind of plan ends as a `Course`: one configuration, several phases, and whatever else can be added to `kinds` in
`planner.phases.cheapest`. Costs of phases add up to the cost of the course, to the micro-dollar.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from catalog.owned import OwnedMachine
from planner.answer import Cost, Hours, Moved, Phase
from planner.candidates.configurations import Configurations, before_work, run_of
from planner.candidates.gather import Candidates
from planner.candidates.places import copied
from planner.cost.bill import deadline_probability
from planner.phase import phase
from planner.phases.lines import windowed_machines
from planner.phases.price import elapsed, expected_elapsed, phase_bill
from planner.phases.search import Phased
from planner.phases.straight import STEPS

Floats = NDArray[np.float64]

#: Halvings of the common factor of all hours when the chance to be in time is looked for, from +-8 sigma.
_HALVINGS = 50
_MOST_SIGMA = 8.0
#: A moment of work, in hours, to see when a window opens.
_MOMENT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Phases in the order of their start, their cost and hours together, and the chance to be done by the deadline.

    `notes` are sentences on what this kind of plan takes for granted.
    """

    phases: tuple[Phase, ...]
    cost: Cost
    hours: Hours
    deadline_probability: float | None
    notes: tuple[str, ...] = ()

    @property
    def kept_micros(self) -> int:
        """What the course costs, as kinds are compared."""
        return self.cost.expected


def on_one_configuration(found: Candidates, chosen: int) -> Course:
    """The whole job on configuration `chosen`."""
    question, table = found.question, found.table
    alone, deadline = table.take(np.array([chosen])), question.job.deadline_hours
    opens = _opens(windowed_machines(found, alone).get(0), question.start, 0.0)
    only = replace(phase(found, table, chosen), begins_hours=opens)
    before = question.settings.setup_hours
    if question.origin is not None:
        run = run_of(question, alone, found.estimated, found.costs)
        before = before_work(run, 0, before)
    return Course(
        phases=(only,),
        cost=only.choice.cost,
        hours=only.choice.hours,
        deadline_probability=None
        if deadline is None
        else deadline_probability(table.bill, chosen, deadline, question.settings, before_hours=before),
    )


def in_phases(found: Candidates, phased: Phased) -> Course:
    """The plan of several phases as a course."""
    shares = [steps / STEPS for steps in phased.found.steps]
    table = _table(phased)
    planned: list[Phase] = []
    for i, share in enumerate(shares):
        each = phase(found, table, i, share)
        each = replace(each, begins_hours=_begins(phased, table, i))
        planned.append(replace(each, moved=_moved(found, phased, planned[-1], each)) if planned else each)
    return Course(
        phases=tuple(planned),
        cost=total_cost([each.choice.cost for each in planned]),
        hours=total_hours([each.choice.hours for each in planned]),
        deadline_probability=_in_time(found, phased, table),
        notes=_notes(found, planned),
    )


def total_cost(costs: list[Cost]) -> Cost:
    """The sum of phases, part by part; at the median and at 95 % too, since all phases are taken to be late together."""
    names = ("compute", "storage", "egress", "power", "setup", "median", "p95")
    return Cost(**{name: sum(getattr(each, name) for each in costs) for name in names})


def total_hours(hours: list[Hours]) -> Hours:
    """The sum of phases, of the mean and quantile by quantile."""
    names = ("expected", "median", "confident", "p95")
    return Hours(**{name: sum(getattr(each, name) for each in hours) for name in names})


def _row(phased: Phased) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The plan as the one row that pricing takes."""
    return np.array([phased.found.sequence]), np.array([phased.found.steps])


def _table(phased: Phased) -> Configurations:
    """One configuration per phase, its bill that of the phase, its hours from the end of the phase before."""
    columns, moving = phased.columns, phased.moving
    sequence, steps = _row(phased)
    paid = phase_bill(columns, moving, sequence, steps)
    clock = {
        name: elapsed(columns, moving, sequence, getattr(paid, name)[None, :])[0]
        for name in ("hours_median", "hours_kept", "hours_p95")
    }
    clock["hours"] = expected_elapsed(columns, moving, sequence, paid)
    whole = columns.table.take(sequence[0])
    ran = np.divide(paid.run_hours, whole.bill.run_hours)
    return replace(whole, bill=replace(paid, **clock), carbon_kg=whole.carbon_kg * ran)


def _begins(phased: Phased, table: Configurations, position: int) -> float:
    """Expected hours from the start until the machines of a phase start: after the move, and when a window opens."""
    column = phased.found.sequence[position]
    begun = float(table.bill.hours[:position].sum())
    if not position:
        begun = float(phased.columns.first_hours[column])
    else:
        before = np.array([phased.found.sequence[position - 1]])
        begun += float(phased.moving.hours(before, np.array([column]))[0])
    return begun + _opens(phased.columns.machine[column], phased.columns.start, begun)


def _opens(machine: OwnedMachine | None, start: datetime, begun: float) -> float:
    """Hours until a machine is free that is asked for `begun` hours after the start; None: at any time."""
    if machine is None:
        return 0.0
    return max(machine.elapsed_hours(start, _MOMENT, after_hours=begun) - _MOMENT, 0.0)


def _moved(found: Candidates, phased: Phased, before: Phase, after: Phase) -> Moved:
    origin, offer, data = before.choice.offer, after.choice.offer, found.question.job.data
    stays = (origin.provider, origin.region) == (offer.provider, offer.region)
    return Moved(
        origin=origin,
        checkpoint_gb=phased.columns.checkpoint_gb,
        data_gb=0.0 if stays else copied(data, offer.provider, offer.region),
        egress=after.choice.cost.egress,
    )


def _in_time(found: Candidates, phased: Phased, table: Configurations) -> float | None:
    """The chance to be done by the deadline: how far the common factor may go before the plan is late."""
    deadline = found.question.job.deadline_hours
    if deadline is None:
        return None
    sequence, steps = _row(phased)
    paid = phase_bill(phased.columns, phased.moving, sequence, steps)
    expected_work = paid.run_hours + paid.waiting_hours
    work, fixed = expected_work / paid.mean_factor, paid.hours - expected_work
    low, high = -_MOST_SIGMA, _MOST_SIGMA
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        busy = fixed + work * np.exp(middle * paid.sigma)
        late = elapsed(phased.columns, phased.moving, sequence, busy[None, :]).sum() > deadline
        low, high = (low, middle) if late else (middle, high)
    return NormalDist().cdf(low)


def _notes(found: Candidates, planned: list[Phase]) -> tuple[str, ...]:
    settings = found.question.settings
    said = [
        (
            f"shares of the work are planned in steps of {100 / STEPS:g} % (the certificate says what finer ones might save), "
            "and each phase does its own whatever the others take"
        ),
        "estimates of all phases are late or early together: hours at a confidence are the sum of those of the phases",
        "phases follow each other in the order that costs least, own machines as their windows allow",
        "a run moves between machines of the same software stack at the same precision only; its layout may change",
        "at a move the old machines are paid until the checkpoint is written, the new ones from their own set-up on",
    ]
    places = {(each.choice.offer.provider, each.choice.offer.region) for each in planned}
    if len(places) > 1:
        said.append(
            f"between regions a checkpoint travels at {settings.move_gbs:g} GB/s with no machine waiting for it; data "
            "are brought to each new region before its phase begins"
        )
    return tuple(said)
