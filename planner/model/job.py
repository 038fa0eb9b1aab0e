"""A training job and its parts, parsed and checked, in fixed units."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from gpuplan.catalog.model.provider_names import CLOUD, NEOCLOUD, PROVIDER_KINDS
from gpuplan.catalog.model.regions import GEOGRAPHIES
from gpuplan.catalog.parsing.accelerator_names import accelerator_family_text
from gpuplan.catalog.parsing.checkpoint_location import ACCEPTED, EXAMPLES, checkpoint_location
from gpuplan.catalog.parsing.document_fields import Label, Reads, YesNo, choice, quantity, whole_number
from gpuplan.catalog.parsing.place_names import (
    PARTITIONS,
    PROVIDER_KIND_ALIASES,
    PROVIDER_LABELS,
    ProviderField,
    data_location,
    geography_name,
    price_kind_labels,
    price_kind_name,
    region_glob,
    type_glob,
    vendor_name,
)
from gpuplan.catalog.parsing.quantities import carbon_kg, fraction, gb, hours, looks_like_time, moment, usd
from gpuplan.planner.model.job_field import JobField
from gpuplan.planner.model.quota import KNOWN, QUOTA_CHOICES
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
    "MOMENT_BYTES",
    "OFFLOADED",
    "SOFTWARE",
    "STAGES",
    "TENSOR_OVERLAPS",
    "XLA_FRAMEWORKS",
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
#: Requirements that can be relaxed, by field name; an offer that breaks several counts under the first.
REQUIREMENTS = (
    "constraints.providers",
    "constraints.provider_kinds",
    "constraints.accelerators",
    "constraints.vendors",
    "constraints.instance_types",
    "constraints.regions",
    "constraints.geography",
    "constraints.price_kinds",
    "constraints.max_nodes",
    "constraints.max_accelerators",
    "constraints.carbon_budget_kg",
    "objective",
    "training.framework",
    "training.precision",
    "deadline",
    "budget_usd",
    "constraints.quotas",
)

#: The most that `max_nodes` may be: the largest published training clusters have about 4,000 nodes of 8 accelerators.
MAX_NODES = 4096
MAX_ACCELERATORS = 262_144
#: Plans have at most two phases: over 400 varied jobs no plan of three phases was cheaper. Three, a former default, is
#: read as two.
MAX_PHASES, _MOST_PHASES_READ = 2, 3
_NAME = {"type": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The requirements on machines and places. Empty means no restriction (for `price_kinds`: the default kinds).

    With a `carbon_budget_kg`, machines of unknown carbon are out.
    """

    providers: Annotated[
        tuple[str, ...],
        JobField(
            ProviderField,
            "all unless given; `own-NAME` is a list of your own rates",
            example="aws,gcp",
            group="machines",
            in_modal=True,
            choices=lambda: PROVIDER_LABELS,
            words=("providers", "provider"),
        ),
    ] = ()
    provider_kinds: Annotated[
        tuple[str, ...],
        JobField(
            choice(tuple(PROVIDER_KINDS), PROVIDER_KIND_ALIASES),
            "kinds of sellers: marketplaces rent machines of third parties and are opt-in; own machines are exempt",
            example="cloud,neocloud,marketplace",
            group="machines",
            choices=lambda: PROVIDER_KINDS,
            words=("sellers",),
        ),
    ] = (CLOUD, NEOCLOUD)
    regions: Annotated[
        tuple[str, ...],
        JobField(
            Reads(region_glob, _NAME),
            "globs over the providers' names, may be qualified: `azure:east*`; own machines are exempt",
            example="us-east-1,azure:east*",
            group="places",
            in_modal=True,
            words=("in", "region"),
        ),
    ] = ()
    geography: Annotated[
        tuple[str, ...],
        JobField(
            Reads(geography_name, _NAME),
            "`us`, `eu`, `asia`, ...: what people mean by it; anywhere unless given",
            example="us,eu",
            group="places",
            choices=lambda: GEOGRAPHIES,
            words=("in",),
        ),
    ] = ()
    price_kinds: Annotated[
        tuple[str, ...],
        JobField(
            Reads(price_kind_name, _NAME),
            "on demand, spot and own machines unless given; kinds with a term cost the whole term",
            example="spot,on_demand",
            group="places",
            in_modal=True,
            choices=price_kind_labels,
            words=("kinds", "kind"),
        ),
    ] = ()
    accelerators: Annotated[
        tuple[str, ...],
        JobField(
            Reads(accelerator_family_text, _NAME),
            "names or usual aliases: `H100`, `RTX 3090`; `gpuplan accelerators` lists them",
            example="H100,A100",
            group="machines",
            in_modal=True,
            suggests="accelerators",
            words=("on", "accelerator"),
        ),
    ] = ()
    vendors: Annotated[tuple[str, ...], JobField(Reads(vendor_name, _NAME), "of accelerators", example="nvidia")] = ()
    instance_types: Annotated[tuple[str, ...], JobField(Reads(type_glob, _NAME), "globs: `p5*`", example="p5*")] = ()
    max_nodes: Annotated[
        int,
        JobField(
            whole_number(1, MAX_NODES),
            "the most machines at once",
            label="Most nodes",
            example="16",
            group="machines",
            in_modal=True,
            words=("nodes",),
        ),
    ] = 32
    max_accelerators: Annotated[
        int | None, JobField(whole_number(1, MAX_ACCELERATORS), "the most accelerators at once", example="64")
    ] = None
    max_phases: Annotated[
        int,
        JobField(
            whole_number(1, _MOST_PHASES_READ, "1: the same machines throughout; 2: may migrate once; 3 is read as 2"),
            "1 forbids moves; 3 is read as 2",
            example="1",
        ),
    ] = MAX_PHASES
    carbon_budget_kg: Annotated[
        float | None,
        JobField(
            quantity(carbon_kg, "kg of CO2 equivalents; 500, 500 kg, 2 t", 500, "2 t"), "the most CO2 equivalents"
        ),
    ] = None
    unverified_availability: Annotated[bool, JobField(YesNo, "also offers whose availability nobody verified")] = False
    quotas: Annotated[
        str,
        JobField(
            choice(QUOTA_CHOICES),
            "known: keep to the quotas that are known; respect: refuse the job if none is; ignore: as if there were none",
            example="ignore",
        ),
    ] = KNOWN
    partitions: Annotated[
        tuple[str, ...],
        JobField(choice(PARTITIONS), "government and Chinese regions are opt-in", example="commercial,gov"),
    ] = ("commercial",)


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
