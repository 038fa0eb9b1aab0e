"""The workload of a job document: transformer dimensions, a preset, a counted module, or explicit FLOPs."""

from typing import Annotated, Literal

from pydantic import Field

from gpuplan.api.schemas.job_fields import DerivedDocument
from gpuplan.catalog.parsing.accelerator_names import accelerator_text, accelerators_and_count
from gpuplan.catalog.parsing.document_fields import Reads, label
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import MAX_ACCELERATORS, Explicit, Preset, Profile, Transformer
from gpuplan.planner.model.workloads import MEASURED_CLASSES, Measured
from gpuplan.planner.workload.presets import find_preset


def preset_name(value: object) -> str:
    """The canonical name of a known model. Raises `ValueError` with the nearest names."""
    model = label(value)
    try:
        find_preset(model)
        return model
    except UnusableInput as error:
        raise ValueError(error.faults[0].message) from None


def measured_on(value: object) -> str:
    """The accelerators of a measured run, such as `8 x A100-40GB-SXM`. Raises `ValueError` with what is accepted."""
    text = label(value)
    count, name = accelerators_and_count(text)
    if not 1 <= count <= MAX_ACCELERATORS:
        raise ValueError(f"{count} is not a number of accelerators from 1 to {MAX_ACCELERATORS:,}")
    return f"{count} x {accelerator_text(name)}"


def measured_like(value: object) -> str:
    """A class of `MEASURED_CLASSES` or a known model. Raises `ValueError` with the classes and the nearest models."""
    text = label(value)
    if text.lower() in MEASURED_CLASSES:
        return text.lower()
    try:
        return preset_name(text)
    except ValueError:
        classes = ", ".join(MEASURED_CLASSES)
        raise ValueError(
            f"{text[:80]!r} is neither a class ({classes}) nor a known model (gpuplan presets WORD finds those)"
        ) from None


class TransformerDocument(DerivedDocument, of=Transformer):
    """A transformer by its dimensions; missing ones are filled in, with a note."""

    kind: Literal["transformer"]


class PresetDocument(DerivedDocument, of=Preset):
    """A known model by name, and the tokens or samples to train on."""

    kind: Literal["preset"]
    model: Annotated[str, Reads(preset_name, {"type": "string", "examples": ["llama-3-8b", "resnet-50", "bert-large"]})]


class ExplicitDocument(DerivedDocument, of=Explicit):
    """Work counted by the user: FLOPs of the whole run, and memory."""

    kind: Literal["explicit"]


class ProfileDocument(DerivedDocument, of=Profile):
    """A module whose training step `gpuplan profile` counted, and how many samples to train it on."""

    kind: Literal["profile"]

    def filled_in(self) -> JsonObject:
        """Every field; a missing one gets its upper bound."""
        stated = self.model_dump(exclude={"kind"})
        for name, otherwise in _AT_MOST:
            if stated[name] is None:
                stated[name] = stated[otherwise]
        return stated


class MeasuredDocument(DerivedDocument, of=Measured):
    """A run that was measured elsewhere: on which accelerators, for how long, and which model or class it was."""

    kind: Literal["measured"]
    on: Annotated[str, Reads(measured_on, {"type": "string", "examples": ["8 x A100-40GB-SXM", "1 x RTX 4090"]})]
    like: Annotated[str, Reads(measured_like, {"type": "string", "examples": ["llm-finetune", "cnn", "qwen2.5-7b"]})]

    def measured(self) -> Measured:
        """The planner's type of this part."""
        return Measured(**{name: value for name, value in self if name != "kind"})


#: Substitutes of missing fields, in order of dependency.
_AT_MOST = (
    ("trainable_parameters", "parameters"),
    ("fused_bytes_per_sample", "bytes_per_sample"),
    ("fused_bytes_per_pass", "bytes_per_pass"),
    ("fused_kernels", "kernels"),
    ("selective_activation_bytes_per_sample", "activation_bytes_per_sample"),
    ("full_activation_bytes_per_sample", "selective_activation_bytes_per_sample"),
)

AnyWorkload = TransformerDocument | PresetDocument | ExplicitDocument | ProfileDocument | MeasuredDocument
WorkloadDocument = Annotated[AnyWorkload, Field(discriminator="kind")]
