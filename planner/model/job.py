"""A training job and its parts, parsed and checked, in fixed units."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from gpuplan.catalog.parsing.checkpoint_location import ACCEPTED, EXAMPLES, checkpoint_location
from gpuplan.catalog.parsing.document_fields import Label, Reads, choice, quantity
from gpuplan.catalog.parsing.place_names import data_location
from gpuplan.catalog.parsing.quantities import fraction, gb, hours, looks_like_time, moment, usd
from gpuplan.planner.model.job_constraints import MAX_ACCELERATORS, MAX_NODES, MAX_PHASES, REQUIREMENTS, Constraints
from gpuplan.planner.model.job_field import JobField
from gpuplan.planner.model.training import (
    ADAPTER_PLACES,
    ADAPTERS,
    CHECKPOINTING,
    CROSS_ENTROPY,
    MOMENT_BYTES,
    OFFLOADED,
    SOFTWARE,
    STAGES,
    TENSOR_OVERLAPS,
    XLA_FRAMEWORKS,
    Training,
)
from gpuplan.planner.model.workloads import Explicit, Preset, Profile, Transformer, Workload

__all__ = [
    "ADAPTERS",
    "ADAPTER_PLACES",
    "CHECKPOINTING",
    "CROSS_ENTROPY",
    "MAX_ACCELERATORS",
    "MAX_NODES",
    "MAX_PHASES",
    "MOMENT_BYTES",
    "OFFLOADED",
    "REQUIREMENTS",
    "SOFTWARE",
    "STAGES",
    "TENSOR_OVERLAPS",
    "XLA_FRAMEWORKS",
    "Constraints",
    "Explicit",
    "Preset",
    "Profile",
    "Training",
    "TrainingJob",
    "Transformer",
    "Workload",
]

#: The name of a job without a name of its own and without a preset.
UNNAMED = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Where the training data lies (None: everywhere) and its size, and where checkpoints are stored.

    Exports use `checkpoints`; prices do not.
    """

    location: Annotated[
        str | None,
        JobField(
            Reads(data_location, {"type": "string", "examples": ["aws:us-east-1", "local"]}),
            "`provider:region`, or `local`; egress and storage follow from it",
            label="Data location",
            group="machines",
            suggests="places",
        ),
    ] = None
    dataset_gb: Annotated[
        float,
        JobField(
            quantity(lambda value: gb(value, zero=True), "GB, or 4 TB, 500 GiB", 4000, "4 TB"),
            "how large it is, in GB or with a unit",
            label="Data size",
            group="machines",
        ),
    ] = 0.0
    checkpoints: Annotated[
        str | None,
        JobField(
            Reads(checkpoint_location, {"type": "string", "description": ACCEPTED, "examples": list(EXAMPLES)}),
            "where checkpoints are stored; exported jobs save to it and resume from it",
            label="Checkpoint location",
            group="machines",
        ),
    ] = None

    @property
    def provider(self) -> str:
        """The provider of the location; empty if the data is everywhere."""
        return (self.location or "").partition(":")[0]

    @property
    def region(self) -> str:
        """The region of the location; empty for own machines, or if the data is everywhere."""
        return (self.location or "").partition(":")[2]


def _deadline(value: object) -> float | datetime:
    """Hours after the start (7d, 36h, 168), or a point in time (2026-12-01T09:00Z)."""
    return moment(value) if looks_like_time(value) else hours(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """One job, checked: times in hours from `start`, money in dollars.

    `assumptions` are sentences on values that were filled in for the user.
    """

    name: Annotated[
        str,
        JobField(
            Label,
            "what answers call it; the preset's name, else `job`",
            optional=True,
            label="Name of the job",
            example="my run",
            group="places",
            in_modal=True,
        ),
    ]
    workload: Annotated[Workload, JobField(None, "what is trained")]
    team: Annotated[str | None, JobField(Label, "who pays for it", example="research", group="places")] = None
    project: Annotated[str | None, JobField(Label, "what it is for", example="search", group="places")] = None
    training: Annotated[Training, JobField(None, "how")] = field(default_factory=Training)
    start: Annotated[
        datetime | None,
        JobField(
            Reads(moment, {"type": "string", "format": "date-time"}),
            "when it may start; now unless given",
            example="2026-12-01T09:00Z",
            group="deadline",
        ),
    ] = None
    deadline_hours: Annotated[
        float | None,
        JobField(
            quantity(
                _deadline, "hours after the start, as 168, 7d, 36h or P7D, or an ISO 8601 time with a zone", "7d", 168
            ),
            "by when, after the start (14d, 36h) or as a time (2026-12-24T09:00Z); none: the cheapest at any speed",
            key="deadline",
            group="deadline",
            in_modal=True,
            words=("by",),
        ),
    ] = None
    budget_usd: Annotated[
        float | None,
        JobField(
            quantity(usd, "US dollars: 250000, $250,000, 250k", 250_000, "$250k"),
            "the most that the expected cost may be",
            label="Budget in US dollars",
            group="deadline",
            in_modal=True,
            words=("max", "budget"),
        ),
    ] = None
    confidence: Annotated[
        float,
        JobField(
            quantity(fraction, "probability of finishing by the deadline", 0.95, "95%"),
            "the least probability of finishing by the deadline",
            group="deadline",
            in_modal=True,
        ),
    ] = 0.9
    objective: Annotated[
        str,
        JobField(
            choice(
                ("cost", "carbon", "time"),
                {"price": "cost", "money": "cost", "co2": "carbon", "emissions": "carbon", "speed": "time"},
                "the objective to minimise within the requirements",
            ),
            "what is least within the requirements; the other two can be limited by constraints",
            label="Make least",
            example="cost",
            group="places",
        ),
    ] = "cost"
    constraints: Annotated[Constraints, JobField(None, "what may be chosen")] = field(default_factory=Constraints)
    data: Annotated[DataSource, JobField(None, "where the data lies")] = field(default_factory=DataSource)
    assumptions: tuple[str, ...] = ()
