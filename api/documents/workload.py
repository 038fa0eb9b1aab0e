"""The workload part of a job document: a transformer by its dimensions, a preset, or explicit FLOPs."""

from typing import Annotated, Literal

from pydantic import Field

from catalog.document_fields import Document, Reads, YesNo, label, quantity, whole_number
from catalog.errors import UnusableInput
from catalog.quantities import MAX_FLOPS, count, gib
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


def preset_name(value: object) -> str:
    """The table's name for a known model; `ValueError` with the nearest names."""
    model = label(value)
    try:
        return find_preset(model).name
    except UnusableInput as error:
        raise ValueError(error.faults[0].message) from None


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


AnyWorkload = TransformerDocument | PresetDocument | ExplicitDocument
WorkloadDocument = Annotated[AnyWorkload, Field(discriminator="kind")]
