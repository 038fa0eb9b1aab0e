"""How a job trains: method, stage, precision, states and software, each declared with its type, range and help."""

from dataclasses import dataclass
from typing import Annotated

from gpuplan.catalog.parsing.document_fields import YesNo, choice, whole_number
from gpuplan.planner.model.job_field import JobField

#: Methods that train low-rank adapters beside frozen weights.
ADAPTERS = ("lora", "qlora")
#: Placement of adapters: on all attention, feed-forward and expert projections, or on query and value only.
ADAPTER_PLACES = ("all", "query_value")
#: Bytes of optimizer moments per trained parameter. Adam and LAMB store two fp32 moments (Kingma 2015, You 2020), Lion
#: one (Chen 2023), SGD its momentum, 8-bit Adam two of one byte (Dettmers 2022); Adafactor stores one value per row and
#: column (Shazeer 2018).
MOMENT_BYTES: dict[str, float] = {
    "adamw": 8.0,
    "adam": 8.0,
    "adamw_8bit": 2.0,
    "adam_8bit": 2.0,
    "adafactor": 0.1,
    "lion": 4.0,
    "lion_8bit": 1.0,
    "lamb": 8.0,
    "lars": 4.0,
    "sgd": 4.0,
    "momentum": 4.0,
    "rmsprop": 4.0,
    "adagrad": 4.0,
    "muon": 4.0,
}
_OPTIMIZER_ALIASES = {
    "adam_w": "adamw",
    "adamw8bit": "adamw_8bit",
    "8bit_adamw": "adamw_8bit",
    "adam8bit": "adam_8bit",
    "8bit_adam": "adam_8bit",
    "sgd_momentum": "momentum",
    "sgdm": "momentum",
}
#: Dense formats with known matrix rates; `auto` lets the planner choose.
_PRECISIONS = ("auto", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
_PRECISION_ALIASES = {
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "mxfp8": "fp8",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
}
CHECKPOINTING = ("auto", "none", "selective", "full")
#: Full checkpointing with the checkpoints in host memory: a way of training, not one that the estimator chooses.
OFFLOADED = "offloaded"
_CHECKPOINTING_ALIASES = {"unsloth": OFFLOADED, "offload": OFFLOADED, "cpu_checkpointing": OFFLOADED}
#: What stands of the logits at once: all at 32 bit, all at 16 bit (by parts or in one kernel), or none.
CROSS_ENTROPY = ("auto", "full", "chunked", "linear")
_CROSS_ENTROPY_ALIASES = {
    "huggingface": "full",
    "flash-attn": "chunked",
    "liger": "linear",
    "cut": "linear",
    "unsloth": "linear",
    "fused_linear": "linear",
}
#: Classes of training software, whose constants are fitted; `auto` is the first, or `eager` where no stack fuses a model by hand,
#: and a doubt of every estimate.
SOFTWARE = ("fused", "compiled", "eager", "plain")
_SOFTWARE_ALIASES = {
    "tuned": "fused",
    "megatron": "fused",
    "transformer-engine": "fused",
    "torch.compile": "compiled",
    "xla": "compiled",
}


#: Order of the elements of images in memory.
MEMORY_FORMATS = ("auto", "channels_last", "channels_first")
_MEMORY_FORMAT_ALIASES = {
    "nhwc": "channels_last",
    "nchw": "channels_first",
    "contiguous": "channels_first",
}
#: What hides tensor-parallel communication; `auto` is what the software does.
TENSOR_OVERLAPS = ("auto", "none", "asynchronous")
_TENSOR_OVERLAP_ALIASES = {
    "blocking": "none",
    "async": "asynchronous",
    "async-tp": "asynchronous",
    "tp_comm_overlap": "asynchronous",
    "collective-matmul": "asynchronous",
}
#: How code splits a model over accelerators; `auto` is `data` with adapters, whose libraries do no other.
PARALLELISMS = ("auto", "data", "any")
_PARALLELISM_ALIASES = {
    "ddp": "data",
    "fsdp": "data",
    "zero": "data",
    "deepspeed": "data",
    "megatron": "any",
    "nemo": "any",
    "3d": "any",
}
#: Frameworks that code may be written for (`planner.model.frameworks` has the machines of each).
FRAMEWORKS = ("pytorch-cuda", "pytorch-rocm", "jax", "xla", "neuron", "any")
#: Those whose steps XLA compiles.
XLA_FRAMEWORKS = ("jax", "xla", "neuron")
_FRAMEWORK_ALIASES = {
    "pytorch": "pytorch-cuda",
    "torch": "pytorch-cuda",
    "cuda": "pytorch-cuda",
    "rocm": "pytorch-rocm",
    "pytorch-xla": "xla",
    "torch-xla": "xla",
    "torch-neuron": "neuron",
}
#: Stages of training, each with passes of its own (`planner.workload.training_stages`).
STAGES = ("sft", "dpo", "orpo", "kto", "reward", "grpo", "ppo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How the weights are trained."""

    method: Annotated[
        str,
        JobField(
            choice(("full", *ADAPTERS)),
            "all weights, or adapters beside frozen ones (`qlora`: at 4 bit)",
            example="lora",
            group="work",
            in_modal=True,
        ),
    ] = "full"
    stage: Annotated[
        str,
        JobField(
            choice(STAGES),
            "supervised, on preferences (dpo, orpo, kto), of a reward model, or by reinforcement (grpo, ppo)",
            example="dpo",
            group="training",
        ),
    ] = "sft"
    framework: Annotated[
        str,
        JobField(
            choice(FRAMEWORKS, _FRAMEWORK_ALIASES),
            "what the code is written for, which decides the machines it runs on; unless given, that of the accelerators "
            "named, else `any` for explicit work and `pytorch-cuda` for other work",
            optional=True,
            example="any",
            group="work",
            in_modal=True,
        ),
    ] = "any"
    completion_tokens: Annotated[
        int | None,
        JobField(whole_number(1, 100_000_000), "mean tokens of a generated answer, with grpo and ppo", example="1024"),
    ] = None
    rank: Annotated[
        int,
        JobField(
            whole_number(1, 65_536, "rank of the adapters, with lora or qlora"),
            "with `lora` or `qlora`; 16 unless given",
            optional=True,
            label="Rank of adapters",
            example="16",
            group="training",
            in_modal=True,
        ),
    ] = 16
    adapters_on: Annotated[
        str, JobField(choice(ADAPTER_PLACES), "which matrices have adapters; `all` unless given", optional=True)
    ] = "all"
    adapter_dropout: Annotated[
        bool,
        JobField(YesNo, "whether adapters drop out a part of their inputs (lora_dropout), which keeps a copy of each"),
    ] = True
    precision: Annotated[
        str,
        JobField(
            choice(_PRECISIONS, _PRECISION_ALIASES),
            "a named one is strict; `auto` takes the fastest that the accelerator supports, and says so",
            example="bf16",
            group="training",
            in_modal=True,
        ),
    ] = "auto"
    optimizer: Annotated[
        str,
        JobField(choice(tuple(MOMENT_BYTES), _OPTIMIZER_ALIASES), "decides the states per parameter", group="training"),
    ] = "adamw"
    activation_checkpointing: Annotated[
        str,
        JobField(
            choice((*CHECKPOINTING, OFFLOADED), _CHECKPOINTING_ALIASES),
            "`auto` takes the fastest of the next three that fits; `offloaded` is full, with the inputs of blocks in the "
            "host's memory (Unsloth, DeepSpeed's cpu_checkpointing)",
        ),
    ] = "auto"
    states: Annotated[
        str,
        JobField(
            choice(("mixed", "fp32_gradients", "pure_bf16")),
            "16-bit weights with 32-bit master copies, the same with gradients summed in 32 bit, or 16 bit alone",
        ),
    ] = "mixed"
    chunked_cross_entropy: Annotated[
        bool,
        JobField(YesNo, "the same as `cross_entropy: chunked`"),
    ] = False
    cross_entropy: Annotated[
        str,
        JobField(
            choice(CROSS_ENTROPY, _CROSS_ENTROPY_ALIASES),
            "what stands of the logits: `full`, copies in 32 bit (Hugging Face); `chunked`, 16 bit alone (by parts, or in one "
            "kernel); `linear`, none (Liger, Unsloth); `auto` is one 32-bit copy with `fused` software and XLA, else full",
        ),
    ] = "auto"
    offload: Annotated[str, JobField(choice(("none", "optimizer", "parameters")), "what is in the host's memory")] = (
        "none"
    )
    software: Annotated[
        str,
        JobField(
            choice(("auto", *SOFTWARE), _SOFTWARE_ALIASES),
            "`fused` kernels of Megatron or Transformer Engine, `compiled` by XLA or torch.compile, `eager` with fused "
            "attention, or `plain`: attention written out; `auto` takes `fused`, for diffusion and speech models "
            "`eager`, and says what another would take",
        ),
    ] = "auto"
    memory_format: Annotated[
        str,
        JobField(
            choice(MEMORY_FORMATS, _MEMORY_FORMAT_ALIASES),
            "of images in convolutional networks: `channels_last` (NHWC), or `channels_first` (NCHW, PyTorch's own), which "
            "16-bit kernels convert before and after each convolution; `auto` lies between them",
            example="channels_last",
        ),
    ] = "auto"
    parallelism: Annotated[
        str,
        JobField(
            choice(PARALLELISMS, _PARALLELISM_ALIASES),
            "what the code splits over accelerators: `data` (DDP, ZeRO, FSDP), or `any`: the model too (Megatron); `auto` is "
            "`data` with adapters, else `any`",
            example="data",
        ),
    ] = "auto"
    tensor_overlap: Annotated[
        str,
        JobField(
            choice(TENSOR_OVERLAPS, _TENSOR_OVERLAP_ALIASES),
            "whether tensor-parallel communication waits (`none`), or moves in parts behind the matmuls that need it "
            "(`asynchronous`); `auto`: partly hidden, as in measured runs",
            example="asynchronous",
        ),
    ] = "auto"
    micro_batch: Annotated[
        int | None,
        JobField(
            whole_number(1, 1_048_576), "samples per device and pass; the fastest that fits unless given", example="4"
        ),
    ] = None
