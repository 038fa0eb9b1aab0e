"""The job document: workload, deadline, budget and constraints, read strictly into a `TrainingJob`."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from gpuplan.api.schemas.canonical_job import canonical
from gpuplan.api.schemas.constraints import ConstraintsDocument
from gpuplan.api.schemas.job_fields import DerivedDocument
from gpuplan.api.schemas.transformer_dimensions import transformer_of
from gpuplan.api.schemas.workload import (
    AnyWorkload,
    ExplicitDocument,
    MeasuredDocument,
    PresetDocument,
    ProfileDocument,
    TransformerDocument,
    WorkloadDocument,
)
from gpuplan.catalog.model.accelerators import find_accelerator
from gpuplan.catalog.parsing.accelerator_names import accelerators_and_count
from gpuplan.catalog.parsing.document_fields import Reads, read_as
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import MAX_HOURS, moment
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.frameworks import framework_of_stack, implied_framework
from gpuplan.planner.model.job import (
    ADAPTERS,
    UNNAMED,
    Constraints,
    DataSource,
    Explicit,
    Preset,
    Profile,
    Training,
    TrainingJob,
    Workload,
)
from gpuplan.planner.workload.presets import find_preset, planned_as

__all__ = ["JobDocument", "canonical", "parse_job", "planned_job"]

Start = Annotated[datetime, Reads(moment, {"type": "string", "format": "date-time"})]

#: Fields that apply only to adapters.
_OF_ADAPTERS = ("rank", "adapters_on")
#: Fields that have a value in every job, and are filled in where a document has none.
_FILLED_IN = (*_OF_ADAPTERS, "framework")


#: Advice where many jobs share one objective.
COST_ALONE = (
    "jobs planned together are planned for least cost: leave objective out, or limit constraints.carbon_budget_kg"
)


class TrainingDocument(DerivedDocument, of=Training):
    """The training method."""

    def training(self) -> Training:
        """The planner's type of this part."""
        return Training(**{name: value for name, value in self if name not in _FILLED_IN or value is not None})


class DataDocument(DerivedDocument, of=DataSource):
    """Location and size (GB, 10^9 bytes) of the training data, and the checkpoint location."""


#: A job that is cheap to plan, with a deadline that leaves a choice.
JOB_EXAMPLE: dict[str, JsonValue] = {
    "name": "llama-3-8b-lora",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "rank": 16, "precision": "bf16"},
    "deadline": "36h",
    "constraints": {"price_kinds": ["on_demand", "spot"], "max_nodes": 8},
}
_EXAMPLES: list[JsonValue] = [
    JOB_EXAMPLE,
    {
        "name": "counted-by-hand",
        "workload": {"kind": "explicit", "total_flops": "1.2e21", "memory_gib": "320 GiB"},
        "deadline": "7d",
        "budget_usd": 20000,
    },
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


class JobDocument(DerivedDocument, of=TrainingJob):
    """A training job as users write it, in YAML or JSON; quantities may carry units."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})

    workload: WorkloadDocument
    training: TrainingDocument = Field(default_factory=TrainingDocument)
    constraints: ConstraintsDocument = Field(default_factory=ConstraintsDocument)
    data: DataDocument = Field(default_factory=DataDocument)

    def job(self, *, now: datetime) -> TrainingJob:
        """The complete job, with `start` at `now` unless given.

        Raises `UnusableInput` with every contradiction between fields.
        """
        training = self.training.training()
        workload: Workload | None
        faults: list[Fault]
        if isinstance(self.workload, MeasuredDocument):
            from gpuplan.planner.performance.measured_workload import equivalent_of

            equivalent = equivalent_of(self.workload.measured(), training)
            workload, training, faults, notes = equivalent.workload, equivalent.training, [], list(equivalent.notes)
        else:
            workload, faults, notes = _workload(self.workload, training)
        constraints = self.constraints.constraints()
        training = replace(training, framework=self.training.framework or self._framework(constraints))
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
        parts = {
            "name": self.name or _default_name(self.workload),
            "workload": workload,
            "training": training,
            "start": start,
            "deadline_hours": deadline_hours,
            "constraints": constraints,
            "data": DataSource(**dict(self.data)),
            "assumptions": (*notes, *self.constraints.notes()),
        }
        plain = {name: getattr(self, name) for name in JobDocument.about if name not in {*parts, "deadline"}}
        return TrainingJob(**plain | parts)

    def _framework(self, constraints: Constraints) -> str:
        """The framework of a job that states none: explicit FLOPs are anyone's, other code is mostly PyTorch on CUDA."""
        usual = "any" if isinstance(self.workload, ExplicitDocument) else "pytorch-cuda"
        if isinstance(self.workload, MeasuredDocument):
            _, name = accelerators_and_count(self.workload.on)
            usual = framework_of_stack(find_accelerator(name).stack)
        return implied_framework(constraints, unless_named=usual)


def planned_job(document: JsonObject) -> JsonObject:
    """The job of a stored plan; plans made before `training.framework` compared machines of every software stack."""
    training = document.get("training", {})
    return document | {"training": {"framework": "any"} | training} if isinstance(training, dict) else document


def parse_job(document: JsonObject, *, now: datetime) -> TrainingJob:
    """The job that `document` describes; `now` (aware) is its start unless it names one.

    Raises `UnusableInput` with all faults, at their fields and with the accepted values.
    """
    return read_as(JobDocument, document).job(now=now)


def _workload(
    given: TransformerDocument | PresetDocument | ExplicitDocument | ProfileDocument, training: Training
) -> tuple[Workload | None, list[Fault], list[str]]:
    """The workload, its faults, and notes on assumptions."""
    if isinstance(given, TransformerDocument):
        return transformer_of(given, training)
    if isinstance(given, ProfileDocument):
        return Profile(**given.filled_in()), [], []
    # All fields are plain values or tuples of them.
    stated = {name: value for name, value in given if name != "kind"}
    if isinstance(given, PresetDocument):
        note = planned_as(given.model)
        preset = Preset(**stated | {"model": find_preset(given.model).name})
        return preset, _preset_faults(given), [] if note is None else [note]
    return Explicit(**stated), _explicit_faults(given), []


def _preset_faults(given: PresetDocument) -> list[Fault]:
    faults = []
    if given.tokens is None and given.samples is None:
        unit = find_preset(given.model).unit
        accepted = "the tokens or samples" if unit == "tokens" else "the samples"
        faults.append(
            Fault(("workload", unit), f"is missing; give {accepted} to train on, those of all epochs together")
        )
    elif given.tokens is not None and given.samples is not None:
        faults.append(Fault(("workload", "tokens"), "contradicts samples; give one of the two"))
    if given.global_batch_tokens is not None and given.global_batch_samples is not None:
        faults.append(
            Fault(("workload", "global_batch_tokens"), "contradicts global_batch_samples; give one of the two")
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
            "the memory of the whole job; give at most that"
        )
        return [Fault(("workload", "min_memory_gib_per_accelerator"), message)]
    return []


def _deadline_hours(
    deadline: float | datetime | None, start: datetime, *, stated: bool
) -> tuple[float | None, list[Fault]]:
    """Hours from start to deadline. A deadline before the start is a fault."""
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
            Fault(
                ("deadline",), f"{deadline:%Y-%m-%dT%H:%MZ} is more than ten years after {begin}; give an earlier time"
            )
        ]
    return left, []


def _default_name(given: AnyWorkload) -> str:
    return find_preset(given.model).name if isinstance(given, PresetDocument) else UNNAMED
