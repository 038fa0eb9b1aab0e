"""The workload part of a job document: a transformer by its dimensions, a preset, a counted module, or explicit FLOPs."""

from typing import Annotated, Any, Literal

from pydantic import Field

from catalog.document_fields import Document, Label, Listed, Reads, YesNo, label, quantity, whole_number
from catalog.errors import UnusableInput
from catalog.quantities import MAX_FLOPS, count, gib, shown
from planner.workload.presets import find_preset

#: Far above every published model, far below what overflows: 10,000 layers, a hidden size of a million.
Layers = Annotated[int, whole_number(1, 10_000)]
SomeLayers = Annotated[int, whole_number(0, 10_000)]
Size = Annotated[int, whole_number(1, 1_048_576)]
SomeSize = Annotated[int, whole_number(0, 1_048_576)]
Heads = Annotated[int, whole_number(1, 16_384)]
Experts = Annotated[int, whole_number(0, 65_536)]
Vocabulary = Annotated[int, whole_number(1, 100_000_000)]
#: 100 million tokens of context, 65,536 pixels of edge: beyond anything trained.
SequenceLength = Annotated[int, whole_number(1, 100_000_000)]
Pixels = Annotated[int, whole_number(1, 65_536)]
Flag = Annotated[bool, YesNo]

Count = Annotated[float, quantity(count, "a number, or text such as 300B, 4M, 2T", 300e9, "300B")]
Flops = Annotated[float, quantity(lambda value: count(value, top=MAX_FLOPS), "FLOPs of the whole run", 1.2e21)]
Bytes = Annotated[float, quantity(lambda value: count(value, top=MAX_FLOPS), "bytes moved, all steps", 5e18)]
Gib = Annotated[float, quantity(gib, "GiB as a number, or text such as 80 GiB or 80 GB", "80 GiB")]
SomeGib = Annotated[float, quantity(lambda value: gib(value, zero=True), "as memory; 0 for none", "8 GiB")]

LONGEST_NOTE = 500


def preset_name(value: object) -> str:
    """The name of a known model as it is written; `ValueError` with the names that are near."""
    model = label(value)
    try:
        find_preset(model)
        return model
    except UnusableInput as error:
        raise ValueError(error.faults[0].message) from None


def note(value: object) -> str:
    """A sentence on one printable line."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_NOTE or not value.isprintable():
        raise ValueError(
            f"{shown(value)} is not accepted; write one printable line of at most {LONGEST_NOTE} characters"
        )
    return value.strip()


class TransformerDocument(Document):
    """A transformer by its dimensions; what is left out is filled in and said."""

    kind: Literal["transformer"]
    layers: Layers
    hidden_size: Size
    ffn_size: Size | None = None
    attention_heads: Heads
    kv_heads: Heads | None = None
    head_size: Size | None = None
    vocabulary_size: Vocabulary
    sequence_length: SequenceLength
    gated_mlp: Flag | None = None
    causal: Flag = True
    experts: Experts = 0
    active_experts: Experts = 0
    shared_experts: Experts = 0
    expert_ffn_size: SomeSize | None = None
    decoder_layers: SomeLayers = 0
    dense_layers: SomeLayers = 0
    tied_embeddings: Flag = False
    parameters: Count | None = None
    tokens: Count
    global_batch_tokens: Count | None = None


class PresetDocument(Document):
    """A known model by name, and how many tokens or samples to train it on."""

    kind: Literal["preset"]
    model: Annotated[str, Reads(preset_name, {"type": "string", "examples": ["llama-3-8b", "resnet-50", "bert-large"]})]
    tokens: Count | None = None
    samples: Count | None = None
    sequence_length: SequenceLength | None = None
    image_size: Pixels | None = None
    global_batch_tokens: Count | None = None
    global_batch_samples: Count | None = None


class ExplicitDocument(Document):
    """Work that the user has counted: FLOPs of the whole run, and memory."""

    kind: Literal["explicit"]
    total_flops: Flops
    memory_gib: Gib
    min_memory_gib_per_accelerator: SomeGib = 0.0
    bytes_moved: Bytes | None = None
    parameters: Count | None = None
    steps: Count | None = None


def _some(description: str, example: float) -> Reads:
    """A counted quantity that may be 0."""
    return quantity(lambda value: count(value, top=MAX_FLOPS, zero=True), description, example)


#: Far longer than any sequence that a recurrence was trained on.
Steps = Annotated[int, whole_number(1, 1_000_000_000, "length of a recurrence; 1 if there is none")]
Notes = Annotated[tuple[Annotated[str, Reads(note, {"type": "string", "maxLength": LONGEST_NOTE})], ...], Listed()]


class ProfileDocument(Document):
    """A module whose training step `gpuplan profile` counted, and how many samples to train it on."""

    kind: Literal["profile"]
    model: Annotated[str, Label]
    samples: Count
    global_batch_samples: Count
    parameters: Count
    trainable_parameters: Count | None = None
    flops_per_sample: Annotated[float, _some("FLOPs of a sample, forward and backward", 24.3e9)]
    convolution_flops_per_sample: Annotated[float, _some("those of convolutions", 24.3e9)] = 0.0
    attention_flops_per_sample: Annotated[float, _some("those of attention scores and values", 1e9)] = 0.0
    attention_scores_per_sample: Annotated[float, _some("attention scores of a sample, all heads and layers", 1e6)] = (
        0.0
    )
    bytes_per_sample: Annotated[float, _some("bytes through device memory, one operation after the other", 4e8)]
    fused_bytes_per_sample: (
        Annotated[float, _some("the same where element-wise operations are fused", 2.5e8)] | None
    ) = None
    bytes_per_pass: Annotated[float, _some("bytes of a pass whatever its batch: weights", 2e8)] = 0.0
    fused_bytes_per_pass: Annotated[float, _some("the same where element-wise operations are fused", 2e8)] | None = None
    kernels: Annotated[float, _some("kernels of a pass; 0 if not known", 900)] = 0.0
    fused_kernels: Annotated[float, _some("the same where element-wise operations are fused", 500)] | None = None
    activation_bytes_per_sample: Annotated[float, _some("bytes kept for the backward pass", 9e7)]
    selective_activation_bytes_per_sample: Annotated[float, _some("with selective checkpointing", 5e7)] | None = None
    full_activation_bytes_per_sample: Annotated[float, _some("with full checkpointing", 2e7)] | None = None
    buffer_bytes: Annotated[float, _some("bytes held beside parameters whatever the batch", 2e5)] = 0.0
    optimizers: Annotated[int, whole_number(1, 1000, "modules with an optimizer each")] = 1
    sequential_steps: Steps = 1
    notes: Notes = ()

    def filled_in(self) -> dict[str, Any]:
        """Every field; what was left out is what it would be at most."""
        stated = self.model_dump(exclude={"kind"})
        for name, otherwise in _AT_MOST:
            if stated[name] is None:
                stated[name] = stated[otherwise]
        return stated


#: What stands for a field that was left out, in an order in which each is known by then.
_AT_MOST = (
    ("trainable_parameters", "parameters"),
    ("fused_bytes_per_sample", "bytes_per_sample"),
    ("fused_bytes_per_pass", "bytes_per_pass"),
    ("fused_kernels", "kernels"),
    ("selective_activation_bytes_per_sample", "activation_bytes_per_sample"),
    ("full_activation_bytes_per_sample", "selective_activation_bytes_per_sample"),
)

AnyWorkload = TransformerDocument | PresetDocument | ExplicitDocument | ProfileDocument
WorkloadDocument = Annotated[AnyWorkload, Field(discriminator="kind")]
