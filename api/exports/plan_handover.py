"""The part of a plan that exports use: place, time, machines and layout of every phase."""

import math
from dataclasses import dataclass
from datetime import datetime

from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.catalog.model.price_kinds import PriceKind
from gpuplan.catalog.model.provider_names import rented_full_names
from gpuplan.catalog.parsing.checkpoint_location import CheckpointLocation
from gpuplan.planner.cost.run_limit import p95_of_phase
from gpuplan.planner.model.outcome import ordered
from gpuplan.planner.model.shared import Layout

#: Minutes for which a place is asked where the plan states none.
TRY_MINUTES = 20.0
#: Full names of the providers whose machines are started through a cloud's own interface.
CLOUDS = rented_full_names()


def seller(provider: str) -> str:
    """The full name of whoever rents the machines; a list of own rates has only its own."""
    return CLOUDS.get(provider, provider)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase to start; `number` counts from 1.

    Names of cloud machines and places are safe for shells and labels; names of owned machines are user input.
    `usd_per_node_hour` is a decimal string, costs by part are in micro-dollars. `ends_at` is expected: hours count from
    the end of the previous phase and include waits for machines. `hands_over_at` is the same time if a planned phase
    follows. A standby takes over by `switch_by` if less than `switch_share` of the work is saved; both phases have
    these values.
    """

    number: int
    role: str
    provider: str
    region: str
    zone: str
    instance_type: str
    accelerator: Accelerator
    accelerators_per_node: float
    nodes: int
    slice_hosts: int | None
    kind: PriceKind
    usd_per_node_hour: str
    starts_at: datetime
    ends_at: datetime
    hours: float
    share: float
    share_before: float
    precision: str
    layout: Layout
    checkpoint_interval_hours: float | None
    expected_preemptions: float
    hands_over_at: datetime | None
    switch_by: datetime | None
    switch_share: float | None
    probability: float | None
    moved_from: str | None
    costs: dict[str, int]

    @property
    def stands_by(self) -> bool:
        """Whether its machines are used only if earlier phases fall behind."""
        return self.role == "standby"

    @property
    def devices(self) -> int:
        """Processes per node: one per device that a framework sees."""
        return max(1, int(self.accelerators_per_node))

    @property
    def is_slice(self) -> bool:
        """Whether the nodes are hosts of one TPU slice, which is rented as a whole."""
        return self.accelerator.stack == "xla"

    @property
    def machines(self) -> str:
        """The order as text: nodes, or a slice with its hosts."""
        return ordered(self.instance_type, self.nodes, self.slice_hosts)

    @property
    def place(self) -> str:
        """Provider, region and, if the price has one, the zone."""
        return " ".join(part for part in (self.provider, self.region, self.zone) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPlace:
    """Where else the first phase's own machines may be asked for, from the capacity ladder; names are safe for shells."""

    region: str
    zone: str
    kind: PriceKind
    usd_per_node_hour: str
    is_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChoice:
    """The last choice of the capacity ladder, asked for at `by` at the latest, and the hours of its work.

    Until then the others are asked for again. Of each run on interruptible machines the work of `lost_hours` is lost.
    """

    by: datetime
    hours: float
    lost_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A plan for other tools; `job`, `team` and `project` are cleaned lines, hours are those of the whole plan.

    `deadline_hours` counts from `start`, None without a deadline; `checkpoints` is the job's location, if any.
    `next_places` are the next choices of the capacity ladder that need no other layout: the same number of the first
    phase's machines; each place is asked for `try_minutes`. `last_choice` is None where all choices are asked for once.
    """

    plan_id: str
    job: str
    snapshot_id: str
    version: str
    start: datetime
    expected_hours: float
    p95_hours: float
    deadline_hours: float | None
    checkpoints: CheckpointLocation | None
    phases: tuple[Phase, ...]
    next_places: tuple[NextPlace, ...] = ()
    try_minutes: float = TRY_MINUTES
    last_choice: LastChoice | None = None
    team: str = ""
    project: str = ""

    def p95_hours_of(self, phase: Phase) -> int:
        """Whole hours that suffice for the phase in 95 % of runs, if it is delayed like the plan."""
        switches = phase.switch_by is not None
        hours = p95_of_phase(hours=phase.hours, expected=self.expected_hours, p95=self.p95_hours, switches=switches)
        return max(1, math.ceil(hours))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The user's options of an export: training command, image, reservation, run limit and checkpoint location.

    `command` is words, never shell code. `image` None is the accelerator's default; `reservation` names the booking of a
    booked price kind. `run_limit_hours` and `checkpoints` override the plan's.
    """

    command: tuple[str, ...] = ("python", "train.py")
    image: str | None = None
    reservation: str | None = None
    run_limit_hours: float | None = None
    checkpoints: CheckpointLocation | None = None
