"""The job document: what to train, by when, for how much, on what; read strictly into a `TrainingJob`."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, JsonValue

from api.documents.canonical import canonical
from api.documents.constraints import ConstraintsDocument, DataDocument
from api.documents.transformer import transformer_of
from api.documents.words import (
    ADAPTERS,
    CHECKPOINTING,
    METHODS,
    OBJECTIVE_ALIASES,
    OBJECTIVES,
    OFFLOAD,
    OPTIMIZER_ALIASES,
    OPTIMIZERS,
    PRECISION_ALIASES,
    PRECISIONS,
    SOFTWARE,
    STATES,
)
from api.documents.workload import (
    AnyWorkload,
    ExplicitDocument,
    PresetDocument,
    ProfileDocument,
    TransformerDocument,
    WorkloadDocument,
)
from catalog.document_fields import Document, Label, Reads, choice, quantity, read_as, whole_number
from catalog.errors import Fault, UnusableInput
from catalog.quantities import MAX_HOURS, fraction, hours, looks_like_time, moment, usd
from planner.job import Explicit, Preset, Profile, Training, TrainingJob, Workload
from planner.workload.methods import ADAPTER_PLACES
from planner.workload.presets import find_preset, planned_as

__all__ = ["JobDocument", "canonical", "parse_job"]


def _deadline(value: object) -> float | datetime:
    """Hours after the start (7d, 36h, 168), or a point in time (2026-12-01T09:00Z)."""
    return moment(value) if looks_like_time(value) else hours(value)


#: Fields that say something of adapters only.
_OF_ADAPTERS = ("rank", "adapters_on")


#: What is said where many jobs share machines or money, and so one objective.
COST_ALONE = "many jobs together are planned for least cost: leave objective out, or cap constraints.carbon_budget_kg"


class TrainingDocument(Document):
    """How the weights are trained."""

    method: Annotated[str, choice(METHODS)] = "full"
    rank: Annotated[int, whole_number(1, 65_536, "of the adapters, with lora or qlora")] | None = None
    adapters_on: Annotated[str, choice(ADAPTER_PLACES)] | None = None
    precision: Annotated[str, choice(PRECISIONS, PRECISION_ALIASES)] = "auto"
    optimizer: Annotated[str, choice(OPTIMIZERS, OPTIMIZER_ALIASES)] = "adamw"
    activation_checkpointing: Annotated[str, choice(CHECKPOINTING)] = "auto"
    states: Annotated[str, choice(STATES)] = "mixed"
    offload: Annotated[str, choice(OFFLOAD)] = "none"
    software: Annotated[str, choice(SOFTWARE)] = "fused"
    micro_batch: Annotated[int, whole_number(1, 1_048_576)] | None = None

    def training(self) -> Training:
        """As the planner takes it."""
        return Training(**{name: value for name, value in self if name not in _OF_ADAPTERS or value is not None})


Deadline = Annotated[
    float | datetime,
    quantity(_deadline, "hours after start as a number, 7d, 36h, P7D, or an ISO 8601 time with its zone", "7d", 168),
]
Start = Annotated[datetime, Reads(moment, {"type": "string", "format": "date-time"})]

_EXAMPLES: list[JsonValue] = [
    {
        "name": "resnet-50",
        "workload": {"kind": "preset", "model": "resnet-50", "samples": "115M"},
        "deadline": "36h",
    },
    {
        "name": "llama-3-8b",
        "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "300B"},
        "training": {"precision": "bf16"},
        "deadline": "14d",
        "budget_usd": 2_000_000,
        "confidence": 0.95,
        "constraints": {"geography": ["us", "eu"], "max_nodes": 64},
        "data": {"location": "aws:us-east-1", "dataset_gb": 4000},
    },
]


class JobDocument(Document):
    """A training job as users write it, in YAML or JSON; quantities may carry units."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})

    name: Annotated[str, Label] | None = None
    workload: WorkloadDocument
    training: TrainingDocument = Field(default_factory=TrainingDocument)
    start: Start | None = None
    deadline: Deadline | None = None
    budget_usd: Annotated[float, quantity(usd, "US dollars: 250000, $250,000, 250k", 250_000, "$250k")] | None = None
    confidence: Annotated[float, quantity(fraction, "probability to finish by the deadline", 0.95, "95%")] = 0.9
    objective: Annotated[str, choice(OBJECTIVES, OBJECTIVE_ALIASES, "what is least within the requirements")] = "cost"
    constraints: ConstraintsDocument = Field(default_factory=ConstraintsDocument)
    data: DataDocument = Field(default_factory=DataDocument)

    def job(self, *, now: datetime) -> TrainingJob:
        """The job, complete, with `start` at `now` unless given.

        Raises `UnusableInput` with every contradiction between fields.
        """
        training = self.training.training()
        workload, faults, notes = _workload(self.workload, training)
        faults += [
            Fault(("training", name), f"belongs to method {' or '.join(ADAPTERS)}; leave it out otherwise")
            for name in _OF_ADAPTERS
            if getattr(self.training, name) is not None and training.method not in ADAPTERS
        ]
        start = self.start or now.astimezone(UTC)
        deadline_hours, late = _deadline_hours(self.deadline, start, stated=self.start is not None)
        faults += late
        if faults or workload is None:
            raise UnusableInput(*faults)
        return TrainingJob(
            name=self.name or _default_name(self.workload),
            workload=workload,
            training=training,
            start=start,
            deadline_hours=deadline_hours,
            budget_usd=self.budget_usd,
            confidence=self.confidence,
            objective=self.objective,
            constraints=self.constraints.constraints(),
            data=self.data.source(),
            assumptions=(*notes, *self.constraints.notes()),
        )


def parse_job(document: dict[str, Any], *, now: datetime) -> TrainingJob:
    """The job that `document` describes; `now` (aware) is its start unless it names one.

    Raises `UnusableInput` with all faults, each at its field and with what would be accepted.
    """
    return read_as(JobDocument, document).job(now=now)


def _workload(given: AnyWorkload, training: Training) -> tuple[Workload | None, list[Fault], list[str]]:
    """(workload, faults, what was assumed)."""
    if isinstance(given, TransformerDocument):
        return transformer_of(given, training)
    if isinstance(given, ProfileDocument):
        return Profile(**given.filled_in()), [], []
    # All of its fields are plain values or tuples of such.
    stated = {name: value for name, value in given if name != "kind"}
    if isinstance(given, PresetDocument):
        said = planned_as(given.model)
        preset = Preset(**stated | {"model": find_preset(given.model).name})
        return preset, _preset_faults(given), [] if said is None else [said]
    return Explicit(**stated), _explicit_faults(given), []


def _preset_faults(given: PresetDocument) -> list[Fault]:
    faults = []
    if (given.tokens is None) == (given.samples is None):
        what = "is missing" if given.tokens is None else "is given beside samples"
        faults.append(Fault(("workload", "tokens"), f"{what}; give either tokens or samples: how much to train on"))
    if given.global_batch_tokens is not None and given.global_batch_samples is not None:
        faults.append(
            Fault(("workload", "global_batch_tokens"), "is given beside global_batch_samples; give one of the two")
        )
    for unit in ("tokens", "samples"):
        total, batch = getattr(given, unit), getattr(given, f"global_batch_{unit}")
        if total is not None and batch is not None and batch > total:
            message = f"{batch:g} is more than all {unit} ({total:g}); give at most that"
            faults.append(Fault(("workload", f"global_batch_{unit}"), message))
    return faults


def _explicit_faults(given: ExplicitDocument) -> list[Fault]:
    if given.min_memory_gib_per_accelerator > given.memory_gib:
        message = (
            f"{given.min_memory_gib_per_accelerator:g} GiB is more than memory_gib ({given.memory_gib:g}), "
            "which is all that the job holds; give at most that"
        )
        return [Fault(("workload", "min_memory_gib_per_accelerator"), message)]
    return []


def _deadline_hours(
    deadline: float | datetime | None, start: datetime, *, stated: bool
) -> tuple[float | None, list[Fault]]:
    """Hours from start to deadline. A deadline that has passed when the job starts is a fault."""
    if not isinstance(deadline, datetime):
        return deadline, []
    left = (deadline - start).total_seconds() / 3600
    begin = f"the start, {start:%Y-%m-%dT%H:%MZ}" if stated else f"now, {start:%Y-%m-%dT%H:%MZ}"
    if left <= 0:
        return None, [
            Fault(("deadline",), f"{deadline:%Y-%m-%dT%H:%MZ} is in the past: not after {begin}; give a later time")
        ]
    if left > MAX_HOURS:
        return None, [
            Fault(("deadline",), f"{deadline:%Y-%m-%dT%H:%MZ} is more than ten years after {begin}; give less")
        ]
    return left, []


def _default_name(given: AnyWorkload) -> str:
    return find_preset(given.model).name if isinstance(given, PresetDocument) else "job"
