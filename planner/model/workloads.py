"""Kinds of workload: a transformer by its dimensions, a preset, counted work, a counted module."""

from dataclasses import dataclass
from typing import Annotated

from gpuplan.catalog.parsing.document_fields import Label, Note, Reads, YesNo, quantity, whole_number
from gpuplan.catalog.parsing.quantities import MAX_FLOPS, count, gib
from gpuplan.catalog.parsing.quantities import hours as hours_of
from gpuplan.planner.model.job_field import JobField

#: Upper limits far above published models and far below overflow: 10,000 layers, a hidden size of a million, 100 million
#: tokens of context, 65,536 pixels of edge.
_LAYERS, _SOME_LAYERS = whole_number(1, 10_000), whole_number(0, 10_000)
_SIZE, _SOME_SIZE = whole_number(1, 1_048_576), whole_number(0, 1_048_576)
_HEADS, _EXPERTS = whole_number(1, 16_384), whole_number(0, 65_536)
_SEQUENCE = whole_number(1, 100_000_000)
_COUNT = quantity(count, "a number, or text such as 300B, 4M, 2T", 300e9, "300B")
_BATCH = "of an optimizer step"


def _amount(description: str, example: float) -> Reads:
    """A quantity that was counted and may be 0."""
    return quantity(lambda value: count(value, top=MAX_FLOPS, zero=True), description, example)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A transformer by its dimensions; `experts` of 0 is a dense model, `decoder_layers` add a decoder (T5)."""

    layers: Annotated[
        int, JobField(_LAYERS, "blocks; with `decoder_layers` those of the encoder", example="32", group="dimensions")
    ]
    hidden_size: Annotated[int, JobField(_SIZE, "width of the model", example="4096", group="dimensions")]
    ffn_size: Annotated[
        int,
        JobField(
            _SIZE,
            "width of the feed-forward part; 4 x `hidden_size` unless given",
            optional=True,
            label="Feed-forward size",
            example="14336",
            group="dimensions",
        ),
    ]
    attention_heads: Annotated[int, JobField(_HEADS, "query heads", example="32", group="dimensions")]
    kv_heads: Annotated[
        int,
        JobField(
            _HEADS,
            "key and value heads (grouped queries); as many as `attention_heads` unless given",
            optional=True,
            label="Key-value heads",
            example="8",
            group="dimensions",
        ),
    ]
    head_size: Annotated[int, JobField(_SIZE, "`hidden_size` / `attention_heads` unless given", optional=True)]
    vocabulary_size: Annotated[
        int, JobField(_SEQUENCE, "tokens of the vocabulary", example="128256", group="dimensions")
    ]
    sequence_length: Annotated[int, JobField(_SEQUENCE, "tokens of a sequence")]
    gated_mlp: Annotated[
        bool, JobField(YesNo, "SwiGLU and the like: three matrices; decided by `ffn_size` unless given", optional=True)
    ]
    causal: Annotated[bool, JobField(YesNo, "false for encoders")] = True
    experts: Annotated[int, JobField(_EXPERTS, "experts of a layer (mixture of experts)", group="dimensions")] = 0
    active_experts: Annotated[int, JobField(_EXPERTS, "experts that a token uses", group="dimensions")] = 0
    shared_experts: Annotated[int, JobField(_EXPERTS, "experts that every token uses")] = 0
    expert_ffn_size: Annotated[
        int, JobField(_SOME_SIZE, "width of one expert; `ffn_size` unless given", optional=True)
    ] = 0
    decoder_layers: Annotated[int, JobField(_SOME_LAYERS, "decoder blocks with cross-attention beside the encoder")] = 0
    dense_layers: Annotated[int, JobField(_SOME_LAYERS, "layers without experts")] = 0
    tied_embeddings: Annotated[bool, JobField(YesNo, "input and output embeddings are one matrix")] = False
    parameters: Annotated[
        float | None, JobField(_COUNT, "the published number; refused where the dimensions give another")
    ] = None
    tokens: Annotated[float, JobField(_COUNT, "how much to train on")]
    global_batch_tokens: Annotated[
        float, JobField(_COUNT, "tokens of an optimizer step; a usual size unless given, and stated", optional=True)
    ]
    #: Whether `global_batch_tokens` was chosen for a job that states none; no field of a job file.
    batch_is_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A known model by name, and how much of it: tokens or samples (one of the two)."""

    model: Annotated[
        str,
        JobField(
            None,
            "a known model; `gpuplan presets [WORD]` lists them",
            example="llama-3-8b",
            group="work",
            suggests="presets",
        ),
    ]
    tokens: Annotated[
        float | None, JobField(_COUNT, "how much to train on, for language models; this or `samples`", group="work")
    ] = None
    samples: Annotated[
        float | None,
        JobField(
            _COUNT,
            "how much to train on, for models of images, audio etc.; this or `tokens`",
            label="or samples",
            example="115M",
            group="work",
        ),
    ] = None
    sequence_length: Annotated[
        int | None,
        JobField(
            _SEQUENCE,
            "tokens; the model's own unless given",
            example="8192",
            group="work",
            in_modal=True,
            words=("sequence",),
        ),
    ] = None
    image_size: Annotated[
        int | None, JobField(whole_number(1, 65_536), "pixels of an edge; the model's own unless given", example="224")
    ] = None
    global_batch_tokens: Annotated[
        float | None, JobField(_COUNT, help=_BATCH, label="Global batch in tokens", example="4M", group="training")
    ] = None
    global_batch_samples: Annotated[
        float | None,
        JobField(_COUNT, f"{_BATCH}, for known models", label="or in samples", example="2048", group="training"),
    ] = None
    #: Whether the amount is what other machines did in measured hours.
    amount_is_measured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explicit:
    """Work that the user has counted: FLOPs of the whole run, and memory."""

    total_flops: Annotated[
        float,
        JobField(
            quantity(lambda value: count(value, top=MAX_FLOPS), "FLOPs of the whole run", 1.2e21), "of the whole run"
        ),
    ]
    memory_gib: Annotated[
        float,
        JobField(
            quantity(gib, "GiB as a number, or text such as 80 GiB or 80 GB", "80 GiB"),
            "states that may be sharded over devices",
        ),
    ]
    min_memory_gib_per_accelerator: Annotated[
        float,
        JobField(
            quantity(lambda value: gib(value, zero=True), "GiB, like memory; 0 for none", "8 GiB"),
            "what no sharding makes smaller",
        ),
    ] = 0.0
    bytes_moved: Annotated[
        float | None,
        JobField(
            quantity(lambda value: count(value, top=MAX_FLOPS), "bytes moved, all steps", 5e18),
            "through device memory, so that bandwidth counts",
        ),
    ] = None
    parameters: Annotated[float | None, JobField(_COUNT, "so that communication counts")] = None
    steps: Annotated[float | None, JobField(_COUNT, "optimizer steps")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A module whose training step was counted, forward and backward, and how many samples to train it on.

    FLOPs, bytes and activation memory are per sample, numbers at 16 bit. Of `flops_per_sample`, those of
    convolutions and of attention (score and value products) are told apart; `attention_scores_per_sample`
    pass through memory where attention is not fused. `bytes_*` move through device memory: `per_sample`, and
    `per_pass` whatever the batch; with `kernels`, as executed one operation after the other, and as a stack
    runs them that fuses element-wise operations. `activation_bytes_per_sample` are kept for the backward
    pass without checkpointing, less of them with `selective_` and `full_` checkpointing. `buffer_bytes` are held
    beside parameters whatever the batch; `optimizers` update one module each; `sequential_steps` is the length
    of a recurrence.
    """

    model: Annotated[str, JobField(Label, "name of the module")]
    samples: Annotated[float, JobField(_COUNT, "how much to train on")]
    global_batch_samples: Annotated[float, JobField(_COUNT, "samples of an optimizer step")]
    parameters: Annotated[float, JobField(_COUNT, "of the module")]
    trainable_parameters: Annotated[float, JobField(_COUNT, "all unless given", optional=True)]
    flops_per_sample: Annotated[float, JobField(_amount("FLOPs per sample, forward and backward", 24.3e9), "counted")]
    convolution_flops_per_sample: Annotated[float, JobField(_amount("FLOPs of convolutions", 24.3e9), "counted")] = 0.0
    attention_flops_per_sample: Annotated[
        float, JobField(_amount("FLOPs of attention scores and values", 1e9), "counted")
    ] = 0.0
    attention_scores_per_sample: Annotated[
        float, JobField(_amount("attention scores per sample, all heads and layers", 1e6), "counted")
    ] = 0.0
    bytes_per_sample: Annotated[
        float, JobField(_amount("bytes moved through device memory, without fusion", 4e8), "counted")
    ]
    fused_bytes_per_sample: Annotated[
        float,
        JobField(
            _amount("the same with fused element-wise operations", 2.5e8),
            "as `bytes_per_sample` unless given",
            optional=True,
        ),
    ]
    bytes_per_pass: Annotated[
        float, JobField(_amount("bytes per pass that do not depend on the batch: weights", 2e8), "counted")
    ] = 0.0
    fused_bytes_per_pass: Annotated[
        float,
        JobField(
            _amount("the same with fused element-wise operations", 2e8),
            "as `bytes_per_pass` unless given",
            optional=True,
        ),
    ] = 0.0
    kernels: Annotated[float, JobField(_amount("kernels per pass; 0 if unknown", 900), "counted")] = 0.0
    fused_kernels: Annotated[
        float,
        JobField(
            _amount("the same with fused element-wise operations", 500), "as `kernels` unless given", optional=True
        ),
    ] = 0.0
    activation_bytes_per_sample: Annotated[float, JobField(_amount("bytes kept for the backward pass", 9e7), "counted")]
    selective_activation_bytes_per_sample: Annotated[
        float,
        JobField(_amount("with selective checkpointing", 5e7), "as without checkpointing unless given", optional=True),
    ]
    full_activation_bytes_per_sample: Annotated[
        float, JobField(_amount("with full checkpointing", 2e7), "as with selective unless given", optional=True)
    ]
    buffer_bytes: Annotated[
        float, JobField(_amount("bytes beside parameters that do not depend on the batch", 2e5), "counted")
    ] = 0.0
    optimizers: Annotated[int, JobField(whole_number(1, 1000, "modules with their own optimizer"), "two for a GAN")] = 1
    #: Far above the length of any trained recurrence.
    sequential_steps: Annotated[
        int, JobField(whole_number(1, 1_000_000_000, "length of a recurrence; 1 if there is none"), "of a recurrence")
    ] = 1
    notes: Annotated[tuple[str, ...], JobField(Note, "what the counter noted; repeated in the plan")] = ()


#: Classes of a measured run, with the known model that stands for each: None for work of which nothing is known.
MEASURED_CLASSES: dict[str, str | None] = {
    "llm-pretrain": "llama-3-8b",
    "llm-finetune": "llama-3-8b",
    "llm-lora": "llama-3-8b",
    "llm-rl": "llama-3-8b",
    "encoder": "bert-large",
    "cnn": "resnet-50",
    "detection": "mask-rcnn",
    "diffusion": "stable-diffusion-1.5",
    "speech": "whisper-small",
    "recurrent": "lstm-lm",
    "recommender": "dlrm",
    "gnn": "rgat",
    "other": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run that was measured on other machines; hours elsewhere follow by the ratio of predictions.

    Read into the work that takes this long on those machines: that of a known model, or explicit FLOPs.
    """

    on: Annotated[str, JobField(None, "accelerators of the run: a number, x, and a name", example="8 x A100-40GB-SXM")]
    like: Annotated[
        str,
        JobField(None, f"the model, or its class: {', '.join(MEASURED_CLASSES)}", example="llm-finetune"),
    ]
    nodes: Annotated[
        int | None,
        JobField(whole_number(1, 4096), "machines that the accelerators are in; of the usual size unless given"),
    ] = None
    hours: Annotated[
        float | None,
        JobField(
            quantity(hours_of, "hours as a number, or text such as 20h, 3d", 20.0, "20h"),
            "how long the run took, failures included; this, `tokens_per_second` or `samples_per_second`",
        ),
    ] = None
    tokens_per_second: Annotated[float | None, JobField(_COUNT, "of all accelerators together, with `tokens`")] = None
    samples_per_second: Annotated[float | None, JobField(_COUNT, "of all accelerators together, with `samples`")] = None
    tokens: Annotated[float | None, JobField(_COUNT, "how much to train on, with `tokens_per_second`")] = None
    samples: Annotated[float | None, JobField(_COUNT, "how much to train on, with `samples_per_second`")] = None


Workload = Transformer | Preset | Explicit | Profile
