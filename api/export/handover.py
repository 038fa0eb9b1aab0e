"""What of a plan the other tools are told: where and when each phase runs, on what, in which layout."""

import math
from dataclasses import dataclass
from datetime import datetime

from api.checkpoint_location import CheckpointLocation
from catalog.accelerators import Accelerator
from catalog.price_kinds import PriceKind
from planner.answer import ordered
from planner.run_limit import p95_of_phase

#: The providers whose machines gpuplan starts through a cloud's own interface.
CLOUDS = {"aws": "Amazon Web Services", "gcp": "Google Cloud", "azure": "Microsoft Azure"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase as it is to be started: `number` counts from 1.

    Names of cloud machines and places hold no character that a shell or a label could mistake; those of own machines
    are the user's text. `usd_per_node_hour` is a decimal string, costs by part are in micro-dollars. `ends_at` is
    expected: hours count from the end of the phase before, waits for machines included. `hands_over_at` is the same,
    where another phase surely follows. Where it stands by, it is taken by `switch_by` if less than
    `switch_share` of the work is saved; both phases know that.
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
    layout: dict[str, int | str]
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
        """Whether its machines are taken only if the phases before it come late."""
        return self.role == "standby"

    @property
    def devices(self) -> int:
        """Processes that the launcher starts on one node: one for each device that a framework sees."""
        return max(1, int(self.accelerators_per_node))

    @property
    def is_slice(self) -> bool:
        """Whether the nodes are hosts of one TPU slice, which is had only as a whole."""
        return self.accelerator.stack == "xla"

    @property
    def machines(self) -> str:
        """What is ordered: nodes one by one, or a slice with its hosts."""
        return ordered(self.instance_type, self.nodes, self.slice_hosts)

    @property
    def place(self) -> str:
        """Provider, region and, where the price is that of one, the zone."""
        return " ".join(part for part in (self.provider, self.region, self.zone) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A plan for other tools; `job` is its name as one harmless line, hours are those of the whole plan.

    `deadline_hours` counts from `start`, None without a deadline; `checkpoints` is the job's place for them, if it names
    one. `document` is the answer as it was given.
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
    document: dict[str, object]

    def p95_hours_of(self, phase: Phase) -> int:
        """Whole hours that hold the phase in 19 of 20 runs, if it is late as the plan is."""
        switches = phase.switch_by is not None
        hours = p95_of_phase(hours=phase.hours, expected=self.expected_hours, p95=self.p95_hours, switches=switches)
        return max(1, math.ceil(hours))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is not in a plan: the words that start the training, its image, and what was booked.

    `command` is words, never shell. `image` None is the one that goes with the accelerator; `reservation` names what
    was bought for a kind that is booked. `run_limit_hours` and `checkpoints` take the place of the plan's.
    """

    command: tuple[str, ...] = ("python", "train.py")
    image: str | None = None
    reservation: str | None = None
    run_limit_hours: float | None = None
    checkpoints: CheckpointLocation | None = None
